"""What tuning says: what was reached, and the table before and after."""

from statistics import fmean
from typing import Any

from wordsens.display.numbers import Estimate, as_sentences
from wordsens.display.view import Table, View
from wordsens.training.held_out import Tuned

CHANCE = 0.5
"""The AUC of chance."""


def answer(tuned: Tuned) -> tuple[str, ...]:
    """The mean AUC before and after, the kinds that the model now tells apart, and the remedy for
    the others."""
    kinds = tuned.after.check.kinds.values()
    apart = [row.kind for row in kinds if row.auc_low > CHANCE]
    mixed = [row.kind for row in kinds if row.auc_low <= CHANCE]
    before, after = (
        fmean(row.auc for row in side.check.kinds.values()) for side in (tuned.before, tuned.after)
    )
    sentences = [
        f"Mean AUC on held-out pairs: {before:.2f} before, {after:.2f} after; recall@1: "
        f"{tuned.before.recall.value:.2f} before, {tuned.after.recall.value:.2f} after."
    ]
    if apart:
        sentences.append(f"It tells {', '.join(apart)} from near-duplicates better than chance.")
    if mixed:
        remedy = "there use the guard (wordsens guard; check --guard counts what it gains)"
        sentences.append(f"Tuning reaches little for {', '.join(mixed)}: {remedy}.")
    return tuple(sentences)


def view(tuned: Tuned) -> View:
    """Where the model is, the table, and last what was reached."""
    rows = tuned.rows()
    columns: dict[str, Any] = {
        "AUC": [row["what"] for row in rows],
        "count": [row["count"] for row in rows],
        **{side: [_estimate(row, side) for row in rows] for side in ("before", "after")},
        "new": [row["new"] or None for row in rows],
        "new before": [row["new_before"] for row in rows],
        "new after": [row["new_after"] for row in rows],
    }
    where = f"the domains {', '.join(tuned.domains)}" if tuned.domains else "a third of the texts"
    note = (
        f"On pairs of {where}, which took no part in the training. New: opposites none of whose "
        "changed words was changed in the training. AUC as in check. recall@1 of "
        f"{tuned.queries} queries, each side of every paraphrase, searched among {tuned.among} "
        "texts. Brackets: 95 % confidence intervals."
    )
    first = f"The tuned model is in {tuned.folder}; trained on up to {tuned.triples} triples."
    changes = as_sentences(*tuned.notes, *tuned.before.check.changes)
    headline = " ".join(filter(None, [first, changes]))
    return View(headline, (Table("", columns, note=note, most=len(rows)), *answer(tuned)))


def _estimate(row: dict[str, Any], side: str) -> Estimate:
    return Estimate(row[side], row[f"{side}_low"], row[f"{side}_high"])
