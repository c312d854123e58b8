"""What tuning says: what was reached, and the table before and after."""

from statistics import fmean
from typing import Any

from wordsens.display.numbers import as_sentences
from wordsens.display.view import Table, View
from wordsens.training.tuning import Tuned

# The AUC of chance.
CHANCE = 0.5


def answer(tuned: Tuned) -> tuple[str, ...]:
    """The mean AUC before and after, and the remedy for the kinds that the model does not tell from
    near-duplicates better than chance."""
    scores: dict[str, Any] = tuned.columns()
    kinds, before, after = scores["kind"][:-1], scores["before"], scores["after"]
    means = [fmean(area.value for area in side[:-1]) for side in (before, after)]
    sentences = [
        f"Mean AUC on held-out pairs: {means[0]:.2f} before, {means[1]:.2f} after; recall@1: "
        f"{before[-1].value:.2f} before, {after[-1].value:.2f} after."
    ]
    mixed = [kind for kind, area in zip(kinds, after, strict=False) if area.low <= CHANCE]
    if mixed:
        remedy = "there use the guard (wordsens guard; check --guard counts what it gains)"
        sentences.append(f"Tuning reaches little for {', '.join(mixed)}: {remedy}.")
    return tuple(sentences)


def view(tuned: Tuned) -> View:
    """Where the model is, the table, and last what was reached."""
    scores: dict[str, Any] = tuned.columns()
    counts = [score.n for score in scores["before"]]
    columns = {"kind": scores["kind"], "count": counts, **scores}
    where = f"the domains {', '.join(tuned.domains)}" if tuned.domains else "a third of the texts"
    note = (
        f"AUC as in check, on pairs of {where}, which took no part in the training. New: the AUC "
        "after, of opposites none of whose changed words was changed in a triple that was seen. "
        f"recall@1 of {counts[-1]} queries, each side of every paraphrase, searched among "
        f"{tuned.among} texts. Brackets: 95 % confidence intervals."
    )
    trained = f"trained on {tuned.seen} of {tuned.triples} triples"
    headline = f"The tuned model is in {tuned.folder}; {trained}. {as_sentences(*tuned.notes)}"
    return View(headline.strip(), (Table("", columns, note=note, most=len(counts)), *answer(tuned)))
