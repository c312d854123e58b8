"""Means of hinges of Gaussian variables, in closed form."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

ABSOLUTE_MEAN = math.sqrt(2 / math.pi)
POSITIVE_MEAN = 1 / math.sqrt(2 * math.pi)
"""E |g| and E g_+ of a standard Gaussian."""
_NOTHING = 40.0
"""exp(-40² / 2) is 0 in float64: hinges from here on are."""
_CELLS, _CELL = 16, 0.5
_INVISIBLE = 9.0
"""A hinge this many deviations away is below 1e-20, as is the chance of y > 9."""


def reached(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g_+ - b)_+ for a standard Gaussian g; b may be negative."""
    return first_hinge(b.clamp(min=0)) + (-b).clamp(min=0)


def reached_square(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g_+ - b)_+²; b may be negative."""
    past = (-b).clamp(min=0)
    return second_hinge(b.clamp(min=0)) + 2 * POSITIVE_MEAN * past + past**2


def reached_smoothly(b: Float[Tensor, " units"], ramp: float) -> Float[Tensor, " units"]:
    """E f(g_+ - b), f the hinge rounded over [-ramp, ramp]: f(x) = ((x + ramp)_+² - (x - ramp)_+²) / (4 ramp)."""
    return (reached_square(b - ramp) - reached_square(b + ramp)) / (4 * ramp)


def first_hinge(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g - b)_+ for a standard Gaussian g."""
    b = b.clamp(max=_NOTHING)
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    return (density - b * torch.special.ndtr(-b)).clamp(min=0)


def second_hinge(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g - b)_+²."""
    b = b.clamp(max=_NOTHING)
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    return ((1 + b**2) * torch.special.ndtr(-b) - b * density).clamp(min=0)


def beyond(tau: float, shift: Float[Tensor, " units"], threshold: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E of (tau |g| + shift)² where tau |g| >= threshold."""
    b = (threshold / tau).clamp(min=0)
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    tail = torch.special.ndtr(-b)
    return 2 * (tau**2 * (b * density + tail) + 2 * tau * shift * density + shift**2 * tail)


def chords() -> tuple[list[float], list[float], tuple[float, float]]:
    """Edges of cells of y = g_+, weights, and E of y and y² beyond the last edge.

    E F(y) <= sum(weights * F(edges)) for convex F with F(0) = 0, up to what is beyond the last edge.
    """
    edges = [_CELL * index for index in range(_CELLS + 1)]
    density = [math.exp(-0.5 * y * y) / math.sqrt(2 * math.pi) for y in edges]
    above = [0.5 * math.erfc(y / math.sqrt(2)) for y in edges]
    weights = [0.0] * len(edges)
    for cell in range(len(edges) - 1):
        mass, mean = above[cell] - above[cell + 1], density[cell] - density[cell + 1]
        right = (mean - mass * edges[cell]) / (edges[cell + 1] - edges[cell])
        weights[cell] += mass - right
        weights[cell + 1] += right
    return edges, weights, (density[-1], edges[-1] * density[-1] + above[-1])


def weighed_hinges(far: Float[Tensor, " units"], shift: float, ramp: float) -> float:
    """At least the sum of E y f(shift y + g_+ - far), y a g_+ of its own, f the hinge rounded over [-ramp, ramp]."""
    edges, weights, (first, second) = chords()
    near = far[far < _INVISIBLE * (1 + shift) + ramp]
    sums = [float(reached_smoothly(near - shift * y, ramp).sum()) for y in edges]
    inside = sum(weight * y * total for weight, y, total in zip(weights, edges, sums, strict=True))
    # Past the last edge f(x + shift y) <= f(x) + shift y.
    return inside + first * sums[0] + shift * second * len(far)


def shifted_squares(far: Float[Tensor, " units"], shift: float) -> float:
    """At least the sum of E (shift y + g_+ - far)_+², y a g_+ of its own."""
    edges, weights, (first, second) = chords()
    near = far[far < _INVISIBLE * (1 + shift)]
    sums = [float(reached_square(near - shift * y).sum()) for y in edges]
    inside = sum(weight * (total - sums[0]) for weight, total in zip(weights, sums, strict=True))
    # Past the last edge (x + shift y)_+² <= 2 x_+² + 2 (shift y)².
    return sums[0] + inside + 2 * first * sums[0] + 2 * shift**2 * second * len(far)
