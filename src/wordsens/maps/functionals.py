"""The functionals of each map: those of attention and of dense layers, and plain ones for all others."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.functionals import AttentionFunctionals
from wordsens.maps.attention.scores import ClosedForm, offered
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap, map_row
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.maps.dense.functionals import DenseFunctionals
from wordsens.maps.word_functionals import PlainFunctionals, WordFunctionals


def word_functionals(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    thetas: Float[Tensor, "m p"],
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> WordFunctionals:
    """The fastest way the map has to evaluate linear functionals of its features.

    Args:
        phi: the map.
        rows: X, (n, d).
        thetas: (m, p), over the flattened features.
        memory_budget: bytes for intermediate results.
    """
    thetas = thetas.to(dtype=phi.dtype, device=phi.device)
    own = map_row(_FUNCTIONALS, phi)
    made = None if own is None else own(phi, rows, thetas, memory_budget)
    return PlainFunctionals(phi, rows, thetas, memory_budget=memory_budget) if made is None else made


def _of_attention(
    phi: RandomAttentionFeatures, rows: Float[Tensor, "n d"], thetas: Float[Tensor, "m p"], memory_budget: int
) -> WordFunctionals | None:
    score = offered(phi.score, ClosedForm)
    return None if score is None else AttentionFunctionals(phi, score, rows, thetas, memory_budget=memory_budget)


def _of_dense(
    phi: DeepRandomFeatures, rows: Float[Tensor, "n d"], thetas: Float[Tensor, "m p"], memory_budget: int
) -> WordFunctionals:
    return DenseFunctionals(phi, rows, thetas, memory_budget=memory_budget)


_FUNCTIONALS: dict[type[FeatureMap], Callable[..., WordFunctionals | None]] = {
    RandomAttentionFeatures: _of_attention,
    DeepRandomFeatures: _of_dense,
}
"""A map's functionals: function of (phi, rows, thetas, memory_budget), for a class and those derived from it; None
where a map of the class has none faster than the plain ones."""
