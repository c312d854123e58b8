"""A check of a model by its name, on the pairs that the package brings."""

from typing import Any

from wordsens.app.work.worker import Desk
from wordsens.evaluation.check import CheckOptions, choose_pairs, evaluate
from wordsens.evaluation.similarities import readable, similarities
from wordsens.models.load import load

SHOWN = 25
"""Pairs that are listed, the worst first."""


def check(desk: Desk, model: str, length: str) -> dict[str, Any]:
    """The kinds of opposites with the worst on top, and the pairs that the model takes most for the same."""
    loaded = load(model)
    chosen, notes = choose_pairs(None, None)
    pairs, unread = readable(loaded, [pair for pair in chosen if length in ("all", pair.length)])
    values = similarities(loaded, pairs, progress=desk.share)
    found = evaluate(loaded, pairs, values, CheckOptions(), [*notes, *unread])
    kinds = sorted(found.kinds, key=lambda row: row.auc)
    listed = [row for row in found.all_pairs() if not row["same"]][:SHOWN]
    return {
        "answer": list(found.answer),
        "notes": list(found.notes),
        "kinds": [
            [
                row.kind,
                row.pairs,
                row.auc,
                f"{row.auc_low:.2f} to {row.auc_high:.2f}",
                row.false_hits,
                f"{row.false_hits_low:.2f} to {row.false_hits_high:.2f}",
            ]
            for row in kinds
        ],
        "pairs": [[row[name] for name in ("similarity", "kind", "first", "second")] for row in listed],
        "count": len(pairs),
    }
