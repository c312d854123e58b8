"""The functionals of each map: those of attention and of dense layers, and plain ones for all others."""

from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.functionals import AttentionFunctionals
from wordsens.maps.attention.scores import ClosedForm, offered
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.maps.dense.functionals import DenseFunctionals
from wordsens.maps.functionals.contract import PlainFunctionals, WordFunctionals


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
    if isinstance(phi, RandomAttentionFeatures) and (score := offered(phi.score, ClosedForm)) is not None:
        return AttentionFunctionals(phi, score, rows, thetas, memory_budget=memory_budget)
    if isinstance(phi, DeepRandomFeatures):
        return DenseFunctionals(phi, rows, thetas, memory_budget=memory_budget)
    return PlainFunctionals(phi, rows, thetas, memory_budget=memory_budget)
