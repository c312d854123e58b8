"""Predictions of word sensitivity for random features, infinitely wide or of finite width."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation, activation_named
from wordsens.errors import require_count
from wordsens.theory.edge import closer, jacobian_edge, linear_gain
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
        length = closer(length, at // _POINTS)
        cosine = closer(cosine, at % _POINTS)
    return math.sqrt(float(best))


def orthogonal_change(n: int, depth: int, *, activation: str = "relu") -> float:
    """The same S for one Delta: orthogonal to x_i, of length sqrt(d). Nearly every Delta is so when d is large."""
    length = torch.ones((), dtype=torch.float64)
    squared = _squared(activation_named(activation), n, depth, length, 0 * length)
    return math.sqrt(float(squared))


def rf_sensitivity(
    n: int,
    d: int,
    width: int | None = None,
    depth: int = 1,
    *,
    activation: str = "relu",
    words: int | None = None,
) -> float:
    """A prediction of S for RF (depth 1) and DRF at finite width, with Delta chosen by looking at the weights.

    S ≈ sqrt(edge / n) * contraction. The edge is that of the Jacobian's spectrum, (1 + sqrt(2 d / k))² for one layer
    of ReLU and k features, min over z of (1 + 1/z) (1 + 2 d z / k)^L for L (free probability), with its Tracy-Widom
    shift at finite d and, over `words` words, the expected largest. The contraction is what a Delta of full length
    loses against the linearised map when it does not look at the weights: the ratio of `orthogonal_change` to its
    linearisation. A prediction, not a bound: ours, derived and measured in docs/theory/predictions.md.

    Args:
        n, d: words and coordinates; rows have length sqrt(d), the radius is sqrt(d).
        width: k; None for n d.
        depth: L.
        activation: one of relu, leaky_relu, identity, tanh, gelu, erf.
        words: over how many words the largest is taken; None for all n, as S is defined; 1 for a typical word.

    >>> round(rf_sensitivity(50, 192, words=1) * 50 ** 0.5, 2)
    1.18
    """
    n, d, depth = require_count("n", n, least=2), require_count("d", d), require_count("depth", depth)
    width = n * d if width is None else require_count("width", width)
    words = n if words is None else require_count("words", words)
    law = activation_named(activation)
    edge = jacobian_edge(law, depth=depth, dimension=d, width=width)
    steepness = linear_gain(law) ** depth
    contraction = orthogonal_change(n, depth, activation=activation) / math.sqrt(steepness / n)
    optimised = math.sqrt(edge.largest_of(words) / n) * contraction
    return max(optimised, rf_sensitivity_infinite_width(n, depth, activation=activation))


def _squared(
    activation: Activation,
    n: int,
    depth: int,
    length: Float[Tensor, "*lengths"],
    component: Float[Tensor, "*points"],
) -> Float[Tensor, "*points"]:
    """S² for Delta of norm length sqrt(d) and inner product component d with x_i."""
    moved, product = 1 + (2 * component + length**2) / n, 1 + component / n
    still = torch.ones_like(moved)
    moments = Moments(still, moved, product)
    for _ in range(depth):
        # The next layer's weights have variance 1 / E[act(z)²] over the fan-in, so X stays at second moment 1.
        moments = Moments(
            still,
            mean_square(activation, moments.second) * activation.he_variance,
            dual_kernel(activation, moments) * activation.he_variance,
        )
    return (moments.second + 1 - 2 * moments.product).clamp(min=0)
