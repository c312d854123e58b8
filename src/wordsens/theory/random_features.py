"""Predictions of word sensitivity for random features: infinitely wide, by the dual kernel; of
finite width, by the edge of the Jacobian's spectrum (docs/theory/predictions.md).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import gammaincinv
from torch import Tensor

from wordsens.activations import LEAK, Activation, activation_named
from wordsens.errors import require_count
from wordsens.theory.conditions import outside_of_dense, warn_of

_NODES = 64

# The activations whose dual kernel needs no quadrature.
CLOSED_FORMS = ("identity", "relu", "leaky_relu", "erf")

# The mean of the Tracy-Widom law of real matrices (beta = 1).
TYPICAL_SHIFT = -1.2065335745820

# Tracy-Widom (beta = 1) is within a percent of a Gamma variable minus a constant (Chiani, 2014).
_GAMMA_SHAPE, _GAMMA_SCALE, _GAMMA_SHIFT = 46.446, 0.186054, 9.84801


@dataclass(frozen=True)
class Moments:
    """Second moments of a pair of pre-activations (u, v) that are jointly Gaussian with mean zero:
    E u², E v², E uv."""

    first: Float[Tensor, "*points"]
    second: Float[Tensor, "*points"]
    product: Float[Tensor, "*points"]


@dataclass(frozen=True)
class SpectralEdge:
    """The largest eigenvalue of a large random matrix of which the limiting spectrum ends like a
    square root.

    Attributes:
        value: where the limiting spectrum ends.
        scale: the largest eigenvalue is about value + scale * (a Tracy-Widom variable).
    """

    value: float
    scale: float

    def largest_of(self, words: int) -> float:
        """The expected largest of that many independent largest eigenvalues; never below zero."""
        shift = (
            TYPICAL_SHIFT
            if words == 1
            else tracy_widom_quantile(1 - math.exp(-np.euler_gamma) / words)
        )
        return max(0.0, self.value + self.scale * shift)


def rf_sensitivity(
    n: int,
    d: int,
    width: int | None = None,
    depth: int = 1,
    *,
    activation: str = "relu",
    words: int | None = None,
) -> float:
    """A prediction of S for RF (depth 1) and DRF at finite width, with Delta chosen by looking at
    the weights.

    S ≈ sqrt(edge / n) * contraction. The edge is that of the Jacobian's spectrum, (1 + sqrt(2 d /
    k))² for one layer of ReLU and k features, min over z of (1 + 1/z) (1 + 2 d z / k)^L for L (free
    probability), with its Tracy-Widom shift at finite d and, over `words` words, the expected
    largest. The contraction is what a Delta of full length loses against the linearised map when it
    does not look at the weights: the ratio of `orthogonal_change` to its linearisation. A
    prediction, not a bound: ours, derived and measured in docs/theory/predictions.md.

    Args:
        n, d: words and coordinates; rows have length sqrt(d), the radius is sqrt(d).
        width: k; None for n d.
        depth: L.
        activation: one of relu, leaky_relu, identity, tanh, gelu, erf.
        words: over how many words the largest is taken; None for all n, as S is defined; 1 for a
            typical word.

    Warns (PredictionWarning) of sizes at which it was not compared with measurements.

    >>> round(rf_sensitivity(50, 192, words=1) * 50 ** 0.5, 2)
    1.18
    """
    n, d, depth = (
        require_count("n", n, least=2),
        require_count("d", d),
        require_count("depth", depth),
    )
    width = n * d if width is None else require_count("width", width)
    words = n if words is None else require_count("words", words)
    value = finite_width_sensitivity(n, d, width, depth, activation, words)
    warn_of(outside_of_dense(n, d, width, depth, activation))
    return value


def finite_width_sensitivity(
    n: int, d: int, width: int, depth: int, activation: str, words: int
) -> float:
    """`rf_sensitivity`, whatever the sizes."""
    law = activation_named(activation)
    edge = jacobian_edge(law, depth=depth, dimension=d, width=width)
    steepness = linear_gain(law) ** depth
    contraction = orthogonal_change(n, depth, activation=activation) / math.sqrt(steepness / n)
    optimised = math.sqrt(edge.largest_of(words) / n) * contraction
    return max(optimised, rf_sensitivity_infinite_width(n, depth, activation=activation))


def rf_sensitivity_infinite_width(n: int, depth: int = 1, *, activation: str = "relu") -> float:
    """A prediction of S for RF (depth 1) and DRF as the width grows while Delta does not look at
    the weights.

    The features' inner products then follow the dual kernel K, and S depends on Delta only through
    its length and its component along x_i: with Delta of length m sqrt(d) and inner product p d
    with x_i,

        ‖X^i(Delta)‖² / ‖X‖² = 1 + (2 p + m²) / n,    <X^i(Delta), X> / ‖X‖² = 1 + p / n,

    and S² = (K' - 2 K'' + K) / K after `depth` layers. For ReLU, S² = r'² + 1 - 2 r' kappa^depth(c)
    with the arc-cosine kernel kappa. The prediction is the largest value over |p| <= m <= 1 (ours;
    docs/theory/predictions.md). Rows have length sqrt(d); their directions do not matter.

    >>> round(rf_sensitivity_infinite_width(50, 8) * 50 ** 0.5, 3)
    0.899
    """
    n, depth = require_count("n", n, least=2), require_count("depth", depth)
    law = activation_named(activation)

    def negative(point: Float[np.ndarray, " 2"]) -> float:
        length, cosine = torch.from_numpy(point)
        return -float(_squared(law, n, depth, length, cosine * length))

    lengths, cosines = (torch.linspace(low, 1, 13, dtype=torch.float64) for low in (0.0, -1.0))
    values = _squared(law, n, depth, lengths.unsqueeze(1), cosines * lengths.unsqueeze(1))
    longest = int(values.argmax())
    start = np.array([float(lengths[longest // 13]), float(cosines[longest % 13])])
    best = minimize(
        negative, start, bounds=[(0.0, 1.0), (-1.0, 1.0)], options={"ftol": 1e-12, "gtol": 1e-9}
    )
    return math.sqrt(max(float(values.max()), -best.fun))


def orthogonal_change(n: int, depth: int, *, activation: str = "relu") -> float:
    """The same S for one Delta: orthogonal to x_i, of length sqrt(d). Nearly every Delta is so when
    d is large."""
    length = torch.ones((), dtype=torch.float64)
    squared = _squared(activation_named(activation), n, depth, length, 0 * length)
    return math.sqrt(float(squared))


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
        # The next layer's weights have variance 1 / E[act(z)²] over the fan-in, so X stays at
        # second moment 1.
        moments = Moments(
            still,
            mean_square(activation, moments.second) * activation.he_variance,
            dual_kernel(activation, moments) * activation.he_variance,
        )
    return (moments.second + 1 - 2 * moments.product).clamp(min=0)


def dual_kernel(activation: Activation, moments: Moments) -> Float[Tensor, "*points"]:
    """E[act(u) act(v)].

    Closed forms for relu, leaky_relu (arc-cosine kernel: Cho and Saul, 2009), erf (Williams, 1997)
    and identity; Gauss-Hermite quadrature with 64 x 64 nodes for the others, which are smooth.

    >>> one = torch.ones((), dtype=torch.float64)
    >>> from wordsens.activations import activation_named
    >>> dual_kernel(activation_named("relu"), Moments(one, one, one))
    tensor(0.5000, dtype=torch.float64)
    """
    if activation.name == "identity":
        return moments.product
    if activation.name == "relu":
        return _relu_kernel(moments, 1.0)
    if activation.name == "leaky_relu":
        # act(u) = relu(u) - leak relu(-u), and (-u, -v) has the law of (u, v).
        return (1 + LEAK**2) * _relu_kernel(moments, 1.0) - 2 * LEAK * _relu_kernel(moments, -1.0)
    if activation.name == "erf":
        scale = torch.sqrt((1 + 2 * moments.first) * (1 + 2 * moments.second))
        return 2 / math.pi * torch.asin(2 * moments.product / scale)
    return quadrature_kernel(activation, moments)


def quadrature_kernel(activation: Activation, moments: Moments) -> Float[Tensor, "*points"]:
    """E[act(u) act(v)] by Gauss-Hermite quadrature, whatever the activation; exact to rounding for
    smooth ones only."""
    nodes, weights = gauss_hermite(_NODES)
    first, second = moments.first.sqrt(), moments.second.sqrt()
    along = moments.product / first
    across = (moments.second - along**2).clamp(min=0).sqrt()
    total = torch.zeros_like(second)
    for node, weight in zip(nodes, weights, strict=True):
        inner = activation(along.unsqueeze(-1) * node + across.unsqueeze(-1) * nodes) @ weights
        total = total + weight * activation(first * node) * inner
    return total


def mean_square(
    activation: Activation, variance: Float[Tensor, "*points"]
) -> Float[Tensor, "*points"]:
    """E[act(u)²] for u ~ N(0, variance); by one-dimensional quadrature where there is no closed
    form."""
    if activation.name in CLOSED_FORMS:
        return dual_kernel(activation, Moments(variance, variance, variance))
    nodes, weights = gauss_hermite(_NODES)
    return activation(variance.sqrt().unsqueeze(-1) * nodes).square() @ weights


@lru_cache(maxsize=16)
def gauss_hermite(count: int) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Nodes and weights with sum(weights * f(nodes)) ≈ E f(z), z ~ N(0, 1); exact up to degree 2
    count - 1."""
    nodes, weights = (
        torch.from_numpy(array) for array in np.polynomial.hermite_e.hermegauss(count)
    )
    return nodes, weights / weights.sum()


def _relu_kernel(moments: Moments, sign: float) -> Float[Tensor, "*points"]:
    """E[relu(u) relu(sign v)] = |u| |v| (sin a + (pi - a) cos a) / (2 pi), a the angle between u
    and sign v."""
    scale = torch.sqrt(moments.first * moments.second)
    cosine = (sign * moments.product / scale).clamp(-1, 1)
    return (
        scale
        * (torch.sqrt(1 - cosine**2) + cosine * (math.pi - torch.acos(cosine)))
        / (2 * math.pi)
    )


def jacobian_edge(
    activation: Activation, *, depth: int, dimension: int, width: int
) -> SpectralEdge:
    """The edge of J^T J for J = D_L W_L ... D_1 W_1; W_1 is (width, dimension), the other W_l are
    square.

    W_l has iid N(0, 1/width) entries times sqrt(1 / E act(z)²), D_l is diagonal with entries
    act'(z), z ~ N(0, 1), all independent. In the limit the factors are free and the S-transform of
    J^T J is a product. Its inverse moment function at z > 0 is

        lambda(z) = (1 + 1/z) * (s y / u(y))^L,   y = z dimension / width,   E[u D² / (1 - u D²)] = y,   s = 1 / E
        act(z)²,

    and the edge is its minimum (ours; docs/theory/predictions.md). For ReLU, s y / u = 1 + 2 y, so
    lambda(z) = (1 + 1/z) (1 + 2 y)^L. The Tracy-Widom scale comes from the curvature at the
    minimum.

    >>> from wordsens.activations import activation_named
    >>> edge = jacobian_edge(activation_named("relu"), depth=1, dimension=100, width=800)   # (1 + sqrt(2 * 100 / 800))²
    >>> round(edge.value, 4)
    2.25
    """  # noqa: E501

    def logarithm(z: Tensor) -> Tensor:
        y = z * dimension / width
        return torch.log1p(1 / z) + depth * torch.log(
            activation.he_variance * _inverse_scaled(activation, y)
        )

    # log lambda falls, then rises in log z.
    least: Any = minimize_scalar(
        lambda log: float(logarithm(torch.tensor([log]).double().exp())), bounds=(-20, 20)
    )
    centre, step = math.exp(least.x), 1e-3
    beside = torch.tensor([1 - step, 1.0, 1 + step], dtype=torch.float64) * centre
    below, value, above = logarithm(beside).exp().tolist()
    curvature = (below - 2 * value + above) / (step * centre) ** 2
    # The density near the edge is sqrt(2 (value - x) / curvature) / (pi value): compare with sqrt(2
    # - x) / pi of a GOE.
    scale = (dimension * math.sqrt(2 / curvature) / value) ** (-2 / 3)
    return SpectralEdge(value, scale)


def linear_gain(activation: Activation) -> float:
    """E act'(z)² / E act(z)²: how much one wide layer stretches squared distances, linearised. 1
    for ReLU."""
    weights, squared = _squared_derivative(activation)
    return float(weights @ squared) * activation.he_variance


def tracy_widom_quantile(probability: float) -> float:
    """A quantile of the Tracy-Widom law of real matrices, by a Gamma approximation (Chiani,
    2014)."""
    return _GAMMA_SCALE * float(gammaincinv(_GAMMA_SHAPE, probability)) - _GAMMA_SHIFT


def _inverse_scaled(
    activation: Activation, y: Float[Tensor, " points"]
) -> Float[Tensor, " points"]:
    """y / u, where u in (0, 1 / max D²) solves E[u D² / (1 - u D²)] = y, D = act'(z), z ~ N(0,
    1)."""
    if activation.name in ("relu", "identity"):
        active = 0.5 if activation.name == "relu" else 1.0
        return active + y
    weights, squared = _squared_derivative(activation)
    most = float(1 / squared.max())

    def excess(log: float, target: float) -> float:
        part = most * math.exp(log) * squared
        return math.log(float((part / (1 - part)) @ weights) / target)

    logs = [brentq(excess, -80.0, -1e-14, args=(target,)) for target in y.tolist()]
    return y / (most * y.new_tensor(logs).exp())


def _squared_derivative(
    activation: Activation,
) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    """Weights of N(0, 1) and act'² at midpoints of a fine grid, which has no node on the kink at
    0."""
    nodes = (torch.arange(4000, dtype=torch.float64) - 1999.5) * (18 / 4000)
    weights = torch.exp(-0.5 * nodes**2)
    return weights / weights.sum(), activation.derivative(nodes).square()
