"""A check of a model by its name, on the pairs that the package brings."""

from typing import Any

from wordsens.app.work.worker import Desk
from wordsens.evaluation.check import CheckOptions, choose_pairs, evaluate
from wordsens.evaluation.similarities import similarities
from wordsens.models.load import as_model, as_pair_model, is_pair_model

SHOWN = 25
"""Pairs that are listed, the worst first."""


def check(desk: Desk, model: str, length: str) -> dict[str, Any]:
    """The kinds of opposites with the worst on top, and the pairs that the model takes most for the same."""
    asked = as_pair_model(model) if is_pair_model(model) else as_model(model)
    pairs, notes = choose_pairs(None, None)
    pairs = [pair for pair in pairs if length in ("all", pair.length)]
    values = similarities(asked, pairs, progress=desk.share)
    found = evaluate(asked, pairs, values, CheckOptions(), notes)
    kinds = sorted(found.kinds, key=lambda row: row.auc)
    listed = sorted(
        ((pair, float(value)) for pair, value in zip(pairs, values, strict=True) if not pair.same),
        key=lambda one: -one[1],
    )[:SHOWN]
    return {
        "answer": list(found.answer),
        "notes": list(found.notes),
        "kinds": [
            [
                row.kind,
                row.pairs,
                row.auc,
                f"{row.auc_low:.2f} to {row.auc_high:.2f}",
                row.median_opposite,
                row.median_same,
            ]
            for row in kinds
        ],
        "pairs": [[value, pair.kind, pair.first, pair.second] for pair, value in listed],
        "count": len(pairs),
    }
