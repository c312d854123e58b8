"""One word in detail: the effect of its witness, deleting it, the best real word in its place."""

from dataclasses import asdict
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.tasks.measure import built
from wordsens.app.work.worker import Desk
from wordsens.maps.attention_pair import AttentionMap, attention_pair
from wordsens.maps.base import FeatureMap
from wordsens.maps.transformer.features import TransformerFeatures, loaded_model
from wordsens.report.attention import weight_matrices
from wordsens.sensitivity.removals import row_removal
from wordsens.sensitivity.several_texts import on_demand
from wordsens.sensitivity.swap_search import ShortlistPlan
from wordsens.sensitivity.swaps import best_swaps
from wordsens.sensitivity.witness_effect import perturbation_effect
from wordsens.text.matrix import TextMatrix

SWAPS = ShortlistPlan(anchors=12, rounds=3, verified=40, promoted=4)
"""Of a trained model: a fifth of the usual evaluations, for an answer while the reader waits."""


def word_detail(desk: Desk, request: dict[str, Any], row: int, witness: list[float]) -> dict[str, Any]:
    """Tell what is known of the word in that row of the text, part by part; the answer is the last part."""
    asked = MeasureRequest(**request)
    phi, text = built(asked)
    delta = torch.tensor([witness], dtype=torch.float64)
    if not on_demand(phi):
        effect = perturbation_effect(phi, text, torch.tensor([row]), delta)
        moved = () if effect is None else effect[0]
        told = [[text.word(one.row), one.change, one.before, one.after] for one in moved]
        desk.tell({"moved": told, "matrices": _matrices(phi, text, row, delta[0])})
    desk.tell({"removal": row_removal(phi, text, row)})
    return _swap(desk, phi, text, row)


def _matrices(phi: FeatureMap, text: TextMatrix, row: int, witness: torch.Tensor) -> list[dict[str, Any]]:
    """The attention before and after; none where the map has no attention."""
    if not isinstance(phi, AttentionMap) or getattr(phi, "layer", 1) == 0:
        return []
    rows = phi.accept(text.rows)
    moved = rows.clone()
    moved[row] += witness.to(rows)
    pair = attention_pair(
        phi,
        TextMatrix(rows, text.tokens),
        TextMatrix(moved, text.tokens),
        layer=getattr(phi, "layer", 1),
        head=getattr(phi, "head", None),
    )
    titles = "Attention before", "Attention after", ""
    return [asdict(one) for one in weight_matrices(pair, titles, changed=(row,))[:2]]


def _swap(desk: Desk, phi: FeatureMap, text: TextMatrix, row: int) -> dict[str, Any]:
    """The best real word: every entry for the random maps, a shortlist for a trained model."""
    if on_demand(phi):
        return {}
    if isinstance(phi, TransformerFeatures):
        found = best_swaps(phi, text, phi.vocabulary(), [row], method=SWAPS, progress=desk.tick)
    else:
        vocabulary = loaded_model("minilm", torch.float32, "cpu").vocabulary(rescale=True)
        found = best_swaps(phi, text, vocabulary, [row], progress=desk.tick)
    return {"swap": float(found.per_word[0]), "swappedFor": found.swapped_for[0], "swapExact": found.exact}
