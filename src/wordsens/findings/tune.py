"""What tuning says: what was reached, and the table before and after."""

from typing import Any

import numpy as np

from wordsens.display.content import Display, Table, as_sentences
from wordsens.training.held_out import Tuned

COIN = 0.5
"""The AUC of chance."""


def answer(tuned: Tuned) -> tuple[str, ...]:
    """The mean AUC before and after, the kinds that the model tells now, and the remedy for the
    others."""
    kinds = tuned.after.check.kinds.values()
    apart = [row.kind for row in kinds if row.auc_low > COIN]
    mixed = [row.kind for row in kinds if row.auc_low <= COIN]
    before, after = (
        np.mean([row.auc for row in side.check.kinds.values()])
        for side in (tuned.before, tuned.after)
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


def display(tuned: Tuned) -> Display:
    """Where the model is, the table, and last what was reached."""
    rows = tuple(
        (
            *(
                row["what"],
                row["count"],
                _interval(row, "before"),
                _interval(row, "after"),
                row["new"] or None,
            ),
            *(_number(row["new_before"]), _number(row["new_after"])),
        )
        for row in tuned.rows()
    )
    where = f"the domains {', '.join(tuned.domains)}" if tuned.domains else "a third of the texts"
    note = (
        f"On pairs of {where}, which took no part in the training. new: opposites none of whose "
        "changed words was "
        "changed in the training; the others share some. AUC as in check. recall@1 of "
        f"{tuned.queries} queries, either side of a paraphrase, each looked for among "
        f"{tuned.among} texts."
    )
    headings = ("AUC", "count", "before [95 %]", "after [95 %]", "new", "new before", "new after")
    first = f"The tuned model is in {tuned.folder}; trained on up to {tuned.triples} triples."
    table = Table("", headings, rows, note, most=len(rows))
    changes = as_sentences(*tuned.notes, *tuned.before.check.changes)
    return Display((" ".join(filter(None, [first, changes])),), (table, " ".join(answer(tuned))))


def _interval(row: dict[str, Any], side: str) -> str:
    return f"{row[side]:.3f} [{row[f'{side}_low']:.2f}, {row[f'{side}_high']:.2f}]"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"
