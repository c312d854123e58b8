"""The effect of a witness row by row: the rows of the features that it moves, and their attention
to the word."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.maps.arguments import as_text
from wordsens.maps.attention_pair import AttentionMap
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import feature_norm
from wordsens.text.matrix import TextMatrix


class MovedRow(NamedTuple):
    """One row j of the features under a witness at word i.

    Attributes:
        row: j.
        change: ‖row j of phi(X^i(Delta)) - row j of phi(X)‖ / ‖phi(X)‖; the squares of all rows'
            changes sum to the square of the whole change.
        before, after: how much row j takes from word i, the mean over the heads; None for maps
            without attention.
    """

    row: int
    change: float
    before: float | None
    after: float | None


@torch.no_grad()
def witness_effect(
    phi: FeatureMap,
    X: TextMatrix | Tensor,
    words: Int[Tensor, " w"],
    perturbations: Float[Tensor, "w d"],
    *,
    rows: int = 5,
) -> tuple[tuple[MovedRow, ...], ...] | None:
    """The rows that each word's perturbation moves most, the most moved first; ours, beside eq. 1.

    None for features without one row per word: of dense layers, and of pooled models. One
    evaluation of phi per word.

    `perturbations` are Delta of each word, such as the witnesses of `word_sensitivity`; at most
    this many `rows` for each word.

    >>> from wordsens import RandomAttentionFeatures, gaussian_text, word_sensitivity
    >>> phi, X = RandomAttentionFeatures(8, seed=0), gaussian_text(4, 8, seed=0)
    >>> r = word_sensitivity(phi, X, search="quick")
    >>> moved = witness_effect(phi, X, r.words, r.perturbations)[0]
    >>> abs(sum(row.change**2 for row in moved) - float(r.per_word[0]) ** 2) < 1e-9
    True
    """
    require_count("rows", rows)
    text = phi.accept(as_text(X).rows)
    base = phi(text)
    if base.ndim < 2 or base.shape[-2] != len(text):
        return None
    norm, attention, effects = feature_norm(base, phi.name), _attention(phi, text), []
    for word, delta in zip(words.tolist(), perturbations, strict=True):
        moved = text.clone()
        moved[word] += delta.to(text.dtype)
        change = (phi(moved) - base).double().movedim(-2, 0).flatten(start_dim=1).norm(dim=1) / norm
        most = change.argsort(descending=True)[:rows].tolist()
        columns = [
            [None] * len(most) if weights is None else weights[most, word].tolist()
            for weights in (attention, _attention(phi, moved))
        ]
        effects.append(tuple(map(MovedRow, most, change[most].tolist(), *columns)))
    return tuple(effects)


def _attention(phi: FeatureMap, rows: Tensor) -> Tensor | None:
    """The attention of the map's own layer and head, or the mean over its heads; None where it
    gives none."""
    layer, head = getattr(phi, "layer", 1), getattr(phi, "head", None)
    if not isinstance(phi, AttentionMap) or layer == 0:
        return None
    try:
        weights = phi.attention_of(rows, layer)
    except InputError:  # a transformer that was not loaded to give them
        return None
    return weights.mean(dim=0) if head is None else weights[head]
