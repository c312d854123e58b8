"""Predictions of word sensitivity for random features: infinitely wide, by the dual kernel; of
finite width, by the edge of the Jacobian's spectrum (docs/theory/predictions.md).
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaincinv
from torch import Tensor

from wordsens.activations import LEAK, Activation, activation_named
from wordsens.errors import require_count
from wordsens.theory.conditions import outside_of_dense, warn_of

_NODES = 64

# The mean of the Tracy-Widom law of real matrices (beta = 1).
TYPICAL_SHIFT = -1.2065335745820

# Tracy-Widom (beta = 1) is within a percent of a Gamma variable minus a constant (Chiani, 2014).
_GAMMA_SHAPE, _GAMMA_SCALE, _GAMMA_SHIFT = 46.446, 0.186054, 9.84801


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
    prediction, not a bound: ours, derived in docs/proofs.md#finite-width,
    measured in docs/theory/predictions.md.

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
    n: int,
    d: int,
    width: int,
    depth: int,
    activation: str,
    words: int,
) -> float:
    """`rf_sensitivity`, whatever the sizes."""
    law = activation_named(activation)
    edge, scale = jacobian_edge(law, depth=depth, dimension=d, width=width)
    largest = max(0.0, edge + scale * largest_shift(words))
    steepness = linear_gain(law) ** depth
    contraction = orthogonal_change(n, depth, activation=activation) / math.sqrt(steepness / n)
    optimised = math.sqrt(largest / n) * contraction
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
    docs/proofs.md#infinite-width). Rows have length sqrt(d); their directions do not matter.

    >>> round(rf_sensitivity_infinite_width(50, 8) * 50 ** 0.5, 3)
    0.899
    """
    n, depth = require_count("n", n, least=2), require_count("depth", depth)
    law = activation_named(activation)

    def negative(point: Float[np.ndarray, " 2"]) -> float:
        length, cosine = torch.from_numpy(point)
        return -n * float(_squared(law, n, depth, length, cosine * length))

    best = minimize(
        negative,
        np.array([1.0, 0.0]),
        bounds=[(0.0, 1.0), (-1.0, 1.0)],
        options={"ftol": 1e-12, "gtol": 1e-9},
    )
    return math.sqrt(-best.fun / n)


def orthogonal_change(n: int, depth: int, *, activation: str = "relu") -> float:
    """The same S for one Delta: orthogonal to x_i, of length sqrt(d). Nearly every Delta is so when
    d is large."""
    zero = torch.zeros((), dtype=torch.float64)
    return math.sqrt(float(_squared(activation_named(activation), n, depth, zero + 1, zero)))


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
    for _ in range(depth):
        # The next layer's weights have variance 1 / E[act(z)²] over the fan-in, so X stays at
        # second moment 1.
        product = dual_kernel(activation, still, moved, product) * activation.he_variance
        moved = dual_kernel(activation, moved, moved, moved) * activation.he_variance
    return (moved + 1 - 2 * product).clamp(min=0)


def dual_kernel(
    activation: Activation,
    first: Float[Tensor, "*points"],
    second: Float[Tensor, "*points"],
    product: Float[Tensor, "*points"],
) -> Float[Tensor, "*points"]:
    """E[act(u) act(v)] of a jointly Gaussian pair with mean zero and the second moments E u², E v²,
    E uv.

    Closed forms for relu, leaky_relu (arc-cosine kernel: Cho and Saul, 2009), erf (Williams, 1997)
    and identity; Gauss-Hermite quadrature with 64 x 64 nodes for the others, which are smooth.

    >>> one = torch.ones((), dtype=torch.float64)
    >>> from wordsens.activations import activation_named
    >>> dual_kernel(activation_named("relu"), one, one, one)
    tensor(0.5000, dtype=torch.float64)
    """
    leak = {"identity": 1.0, "leaky_relu": LEAK, "relu": 0.0}.get(activation.name)
    if leak is not None:
        # act(u) = relu(u) - leak relu(-u), and (-u, -v) has the law of (u, v).
        scale = first.sqrt() * second.sqrt()
        same, opposite = (scale * arc_cosine(sign * product / scale) / 2 for sign in (1, -1))
        return (1 + leak**2) * same - 2 * leak * opposite
    if activation.name == "erf":
        scale = torch.sqrt((1 + 2 * first) * (1 + 2 * second))
        return 2 / math.pi * torch.asin(2 * product / scale)
    return quadrature_kernel(activation, first, second, product)


def quadrature_kernel(
    activation: Activation,
    first: Float[Tensor, "*points"],
    second: Float[Tensor, "*points"],
    product: Float[Tensor, "*points"],
) -> Float[Tensor, "*points"]:
    """E[act(u) act(v)] by Gauss-Hermite quadrature, whatever the activation; exact to rounding for
    smooth ones only."""
    nodes, weights = gauss_hermite(_NODES)
    u = first.sqrt().unsqueeze(-1) * nodes
    along = (product / first.sqrt()).unsqueeze(-1) * nodes
    across = (second - product**2 / first).clamp(min=0).sqrt().unsqueeze(-1)
    inner = [
        activation(along + across * node) * weight
        for node, weight in zip(nodes, weights, strict=True)
    ]
    return (activation(u) * sum(inner)) @ weights


@lru_cache(maxsize=16)
def gauss_hermite(count: int) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Nodes and weights with sum(weights * f(nodes)) ≈ E f(z), z ~ N(0, 1); exact up to degree 2
    count - 1."""
    nodes, weights = (
        torch.from_numpy(array) for array in np.polynomial.hermite_e.hermegauss(count)
    )
    return nodes, weights / weights.sum()


def arc_cosine(cosine: Float[Tensor, "*points"]) -> Float[Tensor, "*points"]:
    """2 E[relu(u) relu(v)] of Gaussians of unit variance with this correlation, (sin a + (pi - a)
    cos a) / pi for the angle a."""
    cosine = cosine.clamp(-1, 1)
    angle = torch.acos(cosine)
    return (torch.sqrt(1 - cosine**2) + cosine * (math.pi - angle)) / math.pi


def jacobian_edge(
    activation: Activation,
    *,
    depth: int,
    dimension: int,
    width: int,
) -> tuple[float, float]:
    """The edge of the limiting spectrum of J^T J for J = D_L W_L ... D_1 W_1, and a scale: the
    largest eigenvalue is about edge + scale * (a Tracy-Widom variable). W_1 is (width, dimension),
    the other W_l are square.

    W_l has iid N(0, 1/width) entries times sqrt(1 / E act(z)²), D_l is diagonal with entries
    act'(z), z ~ N(0, 1), all independent. In the limit the factors are free and the S-transform of
    J^T J is a product. Its inverse moment function at z > 0 is

        lambda(z) = (1 + 1/z) * (s y / u(y))^L,   y = z dimension / width,
        E[u D² / (1 - u D²)] = y,   s = 1 / E act(z)²,

    and the edge is its minimum (ours; docs/proofs.md#finite-width), looked for over u. For ReLU,
    s y / u = 1 + 2 y, so lambda(z) = (1 + 1/z) (1 + 2 y)^L. The scale comes from the curvature at
    the minimum.

    >>> from wordsens.activations import activation_named
    >>> edge, scale = jacobian_edge(activation_named("relu"), depth=1, dimension=100, width=800)
    >>> round(edge, 4)                                              # (1 + sqrt(2 * 100 / 800))²
    2.25
    """
    weights, squared = _squared_derivative(activation)
    relative = squared / squared.max()

    def point(x: float) -> tuple[float, float]:
        """log z and log lambda at u = sigmoid(x) / max D²."""
        u = torch.tensor(x, dtype=torch.float64).sigmoid()
        # 1 - u D², without cancellation where u D² is nearly 1.
        left = (1 - relative) + relative * torch.tensor(-x, dtype=torch.float64).sigmoid()
        y = weights @ (u * relative / left)
        z = y * width / dimension
        gain = y * squared.max() / u * activation.he_variance
        return float(z.log()), float(torch.log1p(1 / z) + depth * gain.log())

    # log lambda falls, then rises in x.
    least: Any = minimize_scalar(lambda x: point(x)[1], bounds=(-40, 40), options={"xatol": 1e-9})
    step = 1e-3
    (low, below), (_, value), (high, above) = (point(least.x + by * step) for by in (-1, 0, 1))
    # d² lambda / dz² at its minimum, times z² / lambda.
    curvature = 4 * (below - 2 * value + above) / (high - low) ** 2
    z = math.exp((low + high) / 2)
    edge = math.exp(value)
    # Near the edge the density is sqrt(2 (edge - x) / lambda'') / (pi edge); that of a GOE is
    # sqrt(2 - x) / pi. Their ratio gives the scale.
    return edge, (dimension * z * math.sqrt(2 / (curvature * edge)) / edge) ** (-2 / 3)


def linear_gain(activation: Activation) -> float:
    """E act'(z)² / E act(z)²: how much one wide layer stretches squared distances, linearised. 1
    for ReLU."""
    weights, squared = _squared_derivative(activation)
    return float(weights @ squared) * activation.he_variance


def largest_shift(words: int) -> float:
    """The expected largest of that many independent Tracy-Widom variables of real matrices."""
    if words == 1:
        return TYPICAL_SHIFT
    return tracy_widom_quantile(1 - math.exp(-np.euler_gamma) / words)


def tracy_widom_quantile(probability: float) -> float:
    """A quantile of the Tracy-Widom law of real matrices, by a Gamma approximation (Chiani,
    2014)."""
    return _GAMMA_SCALE * float(gammaincinv(_GAMMA_SHAPE, probability)) - _GAMMA_SHIFT


def _squared_derivative(
    activation: Activation,
) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    """Weights of N(0, 1) and act'² at midpoints of a fine grid, which has no node on the kink at
    0."""
    nodes = (torch.arange(4000, dtype=torch.float64) - 1999.5) * (18 / 4000)
    weights = torch.exp(-0.5 * nodes**2)
    return weights / weights.sum(), activation.derivative(nodes).square()
