"""The change of a text that regression searches: (phi(X^G(Delta)) - phi(X)) . theta of several
theta, and its gradients.

`Change.functionals` evaluates them; attention and dense layers do so without building the perturbed
texts.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.base import AutogradChange, Change, FeatureMap
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.dense_change import DenseChange, WholeBlocksChange


def functionals_change(
    phi: FeatureMap, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], memory_budget: int
) -> Change:
    """The change with the fastest functionals that the map has."""
    rows = phi.accept(rows)
    if isinstance(phi, DeepRandomFeatures):
        return WholeBlocksChange(
            phi.layers, phi.activation, rows, groups, phi.name, memory_budget=memory_budget
        )
    if isinstance(phi, RandomAttentionFeatures):
        return phi.change(rows, groups, memory_budget=memory_budget)
    return AutogradChange(phi, rows, groups, memory_budget=memory_budget)


def nearly_linear(change: Change) -> bool:
    """Whether a search should finish one group before it takes up the next, and be short: the
    matrices are large, and the features nearly linear in a few words."""
    return isinstance(change, DenseChange) and not change.small


def functional_values(
    change: Change,
    thetas: Float[Tensor, "m p"],
    perturbations: Float[Tensor, "b g d"],
    places: Int[Tensor, " b"],
) -> Float[Tensor, "b m"]:
    """The functionals of any number of pairs of a group and a Delta, within the memory budget."""
    size = max(1, change.pairs_at_once())
    chunks = zip(perturbations.split(size), places.split(size), strict=True)
    return torch.cat([change.functionals(*chunk, thetas, None)[0] for chunk in chunks])
