"""The right edge of the spectrum of a product of random layers' Jacobians, and how its largest eigenvalue scatters."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation

TYPICAL_SHIFT = -1.2065335745820
"""The mean of the Tracy-Widom law of real matrices (beta = 1)."""

# Tracy-Widom (beta = 1) is within a percent of a Gamma variable minus a constant (Chiani, 2014).
_GAMMA_SHAPE, _GAMMA_SCALE, _GAMMA_SHIFT = 46.446, 0.186054, 9.84801
_EULER = 0.57721566490153286


@dataclass(frozen=True)
class SpectralEdge:
    """The largest eigenvalue of a large random matrix of which the limiting spectrum ends like a square root.

    Attributes:
        value: where the limiting spectrum ends.
        scale: the largest eigenvalue is about value + scale * (a Tracy-Widom variable).
    """

    value: float
    scale: float

    def largest_of(self, words: int) -> float:
        """The expected largest of that many independent largest eigenvalues; never below zero."""
        shift = TYPICAL_SHIFT if words == 1 else tracy_widom_quantile(1 - math.exp(-_EULER) / words)
        return max(0.0, self.value + self.scale * shift)


def jacobian_edge(activation: Activation, *, depth: int, dimension: int, width: int) -> SpectralEdge:
    """The edge of J^T J for J = D_L W_L ... D_1 W_1; W_1 is (width, dimension), the other W_l are square.

    W_l has iid N(0, 1/width) entries times sqrt(1 / E act(z)²), D_l is diagonal with entries act'(z), z ~ N(0, 1),
    all independent. In the limit the factors are free and the S-transform of J^T J is a product. Its inverse moment
    function at z > 0 is

        lambda(z) = (1 + 1/z) * (s y / u(y))^L,   y = z dimension / width,   E[u D² / (1 - u D²)] = y,   s = 1 / E
        act(z)²,

    and the edge is its minimum (ours; docs/theory/predictions.md). For ReLU, s y / u = 1 + 2 y, so lambda(z) =
    (1 + 1/z) (1 + 2 y)^L. The Tracy-Widom scale comes from the curvature at the minimum.

    >>> from wordsens.activations import activation_named
    >>> edge = jacobian_edge(activation_named("relu"), depth=1, dimension=100, width=800)   # (1 + sqrt(2 * 100 / 800))²
    >>> round(edge.value, 4)
    2.25
    """

    def logarithm(z: Tensor) -> Tensor:
        y = z * dimension / width
        return torch.log1p(1 / z) + depth * torch.log(activation.he_variance * _inverse_scaled(activation, y))

    # log lambda falls, then rises in log z.
    grid = torch.linspace(-20.0, 20.0, 7, dtype=torch.float64)
    for _ in range(60):
        grid = closer(grid, int(logarithm(grid.exp()).argmin()))
        if float(grid[-1] - grid[0]) < 1e-6:
            break
    centre, step = math.exp(float(grid[0] + grid[-1]) / 2), 1e-3
    beside = torch.tensor([1 - step, 1.0, 1 + step], dtype=torch.float64) * centre
    below, value, above = logarithm(beside).exp().tolist()
    curvature = (below - 2 * value + above) / (step * centre) ** 2
    # The density near the edge is sqrt(2 (value - x) / curvature) / (pi value): compare with sqrt(2 - x) / pi of a GOE.
    scale = (dimension * math.sqrt(2 / curvature) / value) ** (-2 / 3)
    return SpectralEdge(value, scale)


def closer(points: Float[Tensor, " points"], best: int) -> Float[Tensor, " points"]:
    """As many evenly spaced points between the neighbours of the best one."""
    low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
    return torch.linspace(float(low), float(high), len(points), dtype=points.dtype)


def linear_gain(activation: Activation) -> float:
    """E act'(z)² / E act(z)²: how much one wide layer stretches squared distances, linearised. 1 for ReLU."""
    weights, squared = _squared_derivative(activation)
    return float(weights @ squared) * activation.he_variance


def tracy_widom_quantile(probability: float) -> float:
    """A quantile of the Tracy-Widom law of real matrices, by a Gamma approximation (Chiani, 2014)."""
    low, high = 0.0, 200.0
    shape = torch.tensor(_GAMMA_SHAPE, dtype=torch.float64)
    for _ in range(80):
        middle = (low + high) / 2
        at_most = float(torch.special.gammainc(shape, torch.tensor(middle, dtype=torch.float64)))
        low, high = (middle, high) if at_most < probability else (low, middle)
    return _GAMMA_SCALE * (low + high) / 2 - _GAMMA_SHIFT


def _inverse_scaled(activation: Activation, y: Float[Tensor, " points"]) -> Float[Tensor, " points"]:
    """y / u, where u in (0, 1 / max D²) solves E[u D² / (1 - u D²)] = y, D = act'(z), z ~ N(0, 1)."""
    if activation.name in ("relu", "identity"):
        active = 0.5 if activation.name == "relu" else 1.0
        return active + y
    weights, squared = _squared_derivative(activation)
    low = torch.zeros_like(y)
    high = torch.full_like(y, float(1 / squared.max()))
    for _ in range(60):
        middle = (low + high) / 2
        part = middle.unsqueeze(1) * squared
        mean = (part / (1 - part)) @ weights
        low, high = torch.where(mean < y, middle, low), torch.where(mean < y, high, middle)
    # u = 2 y / (low + high) loses nothing where y is tiny: u is then y / E D².
    return 2 * y / (low + high)


def _squared_derivative(activation: Activation) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    """Weights of N(0, 1) and act'² at midpoints of a fine grid, which has no node on the kink at 0."""
    nodes = (torch.arange(4000, dtype=torch.float64) - 1999.5) * (18 / 4000)
    weights = torch.exp(-0.5 * nodes**2)
    return weights / weights.sum(), activation.derivative(nodes).square()
