"""Predictions of word sensitivity for random features that are infinitely wide."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation, activation_named
from wordsens.errors import require_count
from wordsens.theory.kernels import Moments, dual_kernel, mean_square

_POINTS = 13
_ROUNDS = 10


def rf_sensitivity_infinite_width(n: int, depth: int = 1, *, activation: str = "relu") -> float:
    """A prediction of S for RF (depth 1) and DRF as the width grows while Delta does not look at the weights.

    The features' inner products then follow the dual kernel K, and S depends on Delta only through its length and
    its component along x_i: with Delta of length m sqrt(d) and inner product p d with x_i,

        ‖X^i(Delta)‖² / ‖X‖² = 1 + (2 p + m²) / n,    <X^i(Delta), X> / ‖X‖² = 1 + p / n,

    and S² = (K' - 2 K'' + K) / K after `depth` layers. For ReLU, S² = r'² + 1 - 2 r' kappa^depth(c) with the
    arc-cosine kernel kappa. The prediction is the largest value over |p| <= m <= 1 (ours;
    docs/theory/predictions.md). Rows have length sqrt(d); their directions do not matter.

    >>> round(rf_sensitivity_infinite_width(50, 8) * 50 ** 0.5, 3)
    0.899
    """
    n, depth = require_count("n", n, least=2), require_count("depth", depth)
    law = activation_named(activation)
    length = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    cosine = torch.linspace(-1, 1, _POINTS, dtype=torch.float64)
    best = torch.zeros((), dtype=torch.float64)
    for _ in range(_ROUNDS):
        squared = _squared(law, n, depth, length.unsqueeze(1), cosine.unsqueeze(0) * length.unsqueeze(1))
        at, best = int(squared.argmax()), torch.maximum(best, squared.max())
        length = _closer(length, at // _POINTS)
        cosine = _closer(cosine, at % _POINTS)
    return math.sqrt(float(best))


def orthogonal_change(n: int, depth: int, *, activation: str = "relu") -> float:
    """The same S for one Delta: orthogonal to x_i, of length sqrt(d). Nearly every Delta is so when d is large."""
    one = torch.ones((), dtype=torch.float64)
    squared = _squared(activation_named(activation), n, depth, one, 0 * one)
    return math.sqrt(float(squared))


def _closer(values: Float[Tensor, " points"], at: int) -> Float[Tensor, " points"]:
    """As many points between the neighbours of the best one."""
    low, high = values[max(at - 1, 0)], values[min(at + 1, len(values) - 1)]
    return torch.linspace(float(low), float(high), len(values), dtype=values.dtype)


def _squared(
    activation: Activation,
    n: int,
    depth: int,
    length: Float[Tensor, "*lengths"],
    component: Float[Tensor, "*points"],
) -> Float[Tensor, "*points"]:
    """S² for Delta of norm length sqrt(d) and inner product component d with x_i."""
    moved, product = 1 + (2 * component + length**2) / n, 1 + component / n
    one = torch.ones_like(moved)
    moments = Moments(one, moved, product)
    for _ in range(depth):
        # The next layer's weights have variance 1 / E[act(z)²] over the fan-in, so X stays at second moment 1.
        moments = Moments(
            one,
            mean_square(activation, moments.second) * activation.he_variance,
            dual_kernel(activation, moments) * activation.he_variance,
        )
    return (moments.second + 1 - 2 * moments.product).clamp(min=0)
