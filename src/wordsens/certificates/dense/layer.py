"""Bounds of how far a Gaussian layer can move its output, when nothing is known of its weights but
its pre-activations.

Lemmas 1 to 4 of docs/proofs.md#dense-certificates, and the means of hinges and slopes that they
need.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation

_GRID = 48
_TURNS = (1.5, 2.5, 4.0, 6.0)

# Trials of theta, in units of its best value were act not to bend.
_SHARES = (0.7, 0.85, 1.0)

# E |g| and E g_+ of a standard Gaussian.
ABSOLUTE_MEAN = math.sqrt(2 / math.pi)
POSITIVE_MEAN = 1 / math.sqrt(2 * math.pi)
# exp(-40² / 2) is 0 in float64: hinges from here on are.
_NOTHING = 40.0
_CELLS, _CELL = 16, 0.5
# A hinge this many deviations away is below 1e-20, as is the chance of y > 9.
_INVISIBLE = 9.0

# The slope below 0 of the activations that have slope 1 above it and no other.
LEAKS = {"identity": 1.0, "relu": 0.0, "leaky_relu": 0.01}
_SECANT_NODES = 65
# Below this distance a quotient of rounded differences is worth less than the derivative plus its
# growth.
_SHORT = 1e-4

# sup |act''|: where act''' = 0. tanh: at tanh(z)² = 1/3; erf: at z² = 1/2; gelu: (2 - z²) phi(z) at
# z = 0.
CURVATURE = {
    "tanh": 4 / (3 * math.sqrt(3)),
    "erf": 4 / math.sqrt(math.pi) * math.sqrt(0.5) * math.exp(-0.5),
    "gelu": 2 / math.sqrt(2 * math.pi),
}


@dataclass(frozen=True)
class InputChange:
    """The known limits of the set T of changes of a layer's input, over all Delta in the ball.

    Attributes:
        norm: rho, at least sup ‖delta‖ over T.
        width: W with E sup <g, delta>² <= W² for a standard Gaussian g.
        along: s, at least sup |<delta, phi>| / ‖phi‖², phi the input itself; it may exceed 1.
        base: ‖phi‖.
    """

    norm: float
    width: float
    along: float
    base: float


@dataclass(frozen=True)
class GaussianLayer:
    """A layer act(V phi): what is known of it, and the law of the rest.

    Attributes:
        activation: act.
        deviation: sigma, of V's iid entries.
        preactivation: h = V phi, (k,), float64.
        output: ‖act(h)‖.
    """

    activation: Activation
    deviation: float
    preactivation: Float[Tensor, " k"]
    output: float


def expected_change(layer: GaussianLayer, change: InputChange) -> float:
    """An upper bound of E sup ‖act(h + V delta) - act(h)‖ over delta in T, V given V phi = h (Lemma
    1).

    sqrt of the least over e of sigma² W² / e + P(e), where P bounds E sup of the sum over units of
    sup_t q_k(t) - (t - v_k)² / e, v_k = s h_k + sigma rho g_k, for convex q_k(t) >= (act(h_k + t) -
    act(h_k))². Everything is computed in units of rho, so that no square over- or underflows.
    """
    steepest = layer.activation.lipschitz**2
    trials = [
        fraction / steepest
        for fraction in torch.linspace(-6, 6, _GRID, dtype=torch.float64).sigmoid().tolist()
    ]
    edges = {e: (layer.deviation * change.width / change.norm) ** 2 / e for e in trials}
    if layer.activation.name == "relu":
        relu_sum = _relu_sum(layer, change)
        return change.norm * math.sqrt(
            min(edge + relu_sum(e) / (1 - e) for e, edge in edges.items())
        )
    best = math.inf
    for multiple in _TURNS:
        turn = multiple * layer.deviation + change.along / change.norm * layer.preactivation.abs()
        slope = steepest_secant(layer.activation, layer.preactivation, turn * change.norm)
        sums = (
            edge + _general_sum(layer, change, e, turn, slope)
            for e, edge in edges.items()
            if edge < best
        )
        best = min(best, min(sums, default=math.inf))
    return change.norm * math.sqrt(best)


def _relu_sum(layer: GaussianLayer, change: InputChange) -> Callable[[float], float]:
    """e -> (1 - e) P(e) / rho² for ReLU: active units move freely but stop at 0, inactive ones must
    cross 0 first."""
    h, sigma, base = layer.preactivation, layer.deviation, change.base
    tau, along = sigma * change.norm, change.along / change.norm
    active = h[h > 0]
    count = len(active)
    crossing = sigma**2 * float(reached_square((1 - change.along) * h[h <= 0].abs() / tau).sum())
    mean, excess = sigma**2 * count, (layer.output / base) ** 2
    stretched = max(0.0, excess - mean) + sigma**2 * math.sqrt(count / 2)
    traded = mean + min(along * base, 1.0) ** 2 * stretched
    traded += 2 * min(along, 1 / (2 * base)) * sigma * ABSOLUTE_MEAN * layer.output

    def bound(e: float) -> float:
        stop = active * (1 - e) / tau
        stopped_squares = sigma**2 * float(second_hinge(stop).sum())
        stopped_products = sigma * float((active * first_hinge(stop)).sum())
        untraded = mean - stopped_squares + (along * layer.output) ** 2
        untraded += 2 * along * (sigma * ABSOLUTE_MEAN * layer.output + stopped_products)
        return crossing + min(traded, untraded)

    return bound


def _general_sum(
    layer: GaussianLayer,
    change: InputChange,
    e: float,
    turn: Float[Tensor, " k"],
    slope: Float[Tensor, " k"],
) -> float:
    """P(e) / rho² from q(t) = (c |t|)² up to a turning point T, (c T + L (|t| - T))² past it.

    c is `slope`, T / rho `turn`, L act's Lipschitz constant.
    """
    h, sigma, lipschitz = layer.preactivation, layer.deviation, layer.activation.lipschitz
    along, base = change.along / change.norm, change.base
    shift = along * h.abs()
    weight = slope**2 / (1 - e * slope**2)
    offset = (lipschitz - slope) * turn
    threshold = turn * (1 - e * lipschitz**2) + e * lipschitz * offset
    tail = (
        lipschitz**2
        / (1 - e * lipschitz**2)
        * beyond(sigma, shift - offset / lipschitz, threshold - shift)
    )
    square = float((weight * h**2).sum())
    mean = sigma**2 * float(weight.sum())
    spread = sigma**2 * math.sqrt(2 * float((weight**2).sum()))
    cross = sigma * ABSOLUTE_MEAN * math.sqrt(float((weight * h).square().sum()))
    stretched = max(0.0, square / base**2 - mean) + spread / 2
    total = mean + min(along * base, 1.0) ** 2 * stretched + 2 * min(along, 1 / (2 * base)) * cross
    return total + float(torch.where(slope < lipschitz, tail, 0 * tail).sum())


def expected_width(layer: GaussianLayer, change: InputChange) -> float:
    """An upper bound of E sup <g, act(h + V delta) - act(h)> over delta in T (Lemma 3); V given V
    phi = h, g Gaussian, act taken as nothing but a Lipschitz function.

    The mean over g exceeds it by margin sigma L rho with probability at most exp(-margin² / 2).
    """
    length = float(torch.linalg.vector_norm(layer.preactivation))
    free = layer.deviation * math.sqrt(len(layer.preactivation)) * change.width
    return layer.activation.lipschitz * (change.along * ABSOLUTE_MEAN * length + free)


def likely_along(layer: GaussianLayer, change: InputChange, margin: float) -> float:
    """A bound of sup |<phi', act(h + V delta) - act(h)>| / ‖phi'‖² over delta in T, phi' = act(h)
    (Lemma 4); it fails, over the draw of V given V phi = h, with probability at most 2 exp(-margin²
    / 2)."""
    h, sigma, output = layer.preactivation, layer.deviation, layer.output
    features = layer.activation(h)
    tau, reach = sigma * change.norm, sigma * change.width
    steady = sigma * layer.activation.lipschitz * change.norm * margin / output
    if layer.activation.name in LEAKS:
        crossing = features.abs() * reached((1 - change.along) * h.abs() / tau)
        bent = (1 - LEAKS[layer.activation.name]) * tau * float(crossing.sum()) / output**2
        return change.along + (reach + POSITIVE_MEAN * tau) / output + bent + steady
    linear = features * layer.activation.derivative(h)
    bend = 0.5 * CURVATURE[layer.activation.name] * features.abs()
    length, best = float(torch.linalg.vector_norm(linear)), math.inf
    for share in _SHARES:
        theta = share * reach / length
        left = 1 - 2 * theta * bend
        if not float(left.min()) > 0:
            continue
        swing = change.along * h.abs()
        curved = bend / left * (swing**2 + 2 * ABSOLUTE_MEAN * tau * swing + tau**2)
        total = (
            reach * length / (2 * share)
            + 0.5 * theta * float((linear**2 / left).sum())
            + float(curved.sum())
        )
        total += change.along * abs(float((linear * h / left).sum()))
        total += POSITIVE_MEAN * tau * float(torch.linalg.vector_norm(linear / left))
        best = min(best, total)
    return best / output**2 + steady


def steepest_secant(
    activation: Activation, preactivation: Float[Tensor, " k"], reach: Float[Tensor, " k"]
) -> Float[Tensor, " k"]:
    """An upper bound c of |act(h + t) - act(h)| / |t| over 0 < |t| <= T, for every unit; h
    `preactivation`, T `reach`.

    ReLU: 1 where h >= 0; max(0, 1 - |h| / T) where h < 0, since such a unit must first cross 0.
    leaky_relu: likewise above its leak. Smooth activations: the largest secant slope on a grid of
    t, plus what it can grow between grid points, the slope's derivative being at most sup |act''| /
    2; never more than the Lipschitz constant. Rounding of the result: a few units of the last
    place, which the caller's slack covers.
    """
    if activation.name in LEAKS:
        leak = LEAKS[activation.name]
        beyond = 1 - preactivation.abs() / torch.where(reach > 0, reach, torch.ones_like(reach))
        crossing = leak + (1 - leak) * beyond.clamp(0, 1)
        return torch.where(
            preactivation >= 0, torch.ones_like(crossing), torch.where(reach > 0, crossing, leak)
        )
    curvature = CURVATURE.get(activation.name)
    if curvature is None:
        return torch.full_like(preactivation, activation.lipschitz)
    base = activation(preactivation)
    steepest = activation.derivative(preactivation).abs()
    for fraction in torch.linspace(-1, 1, _SECANT_NODES, dtype=torch.float64).tolist():
        step = fraction * reach
        rise = (activation(preactivation + step) - base).abs()
        slope = rise / torch.where(step != 0, step.abs(), torch.ones_like(step))
        steepest = torch.maximum(steepest, slope)
    # The secant slope changes by at most sup |act''| / 2 per unit of t, and grid points are 2 reach
    # / 64 apart.
    by_grid = steepest + 0.5 * curvature * reach / (_SECANT_NODES - 1)
    by_derivative = activation.derivative(preactivation).abs() + 0.5 * curvature * reach
    slope = torch.where(reach > _SHORT, torch.minimum(by_grid, by_derivative), by_derivative)
    return slope.clamp(max=activation.lipschitz)


def reached(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g_+ - b)_+ for a standard Gaussian g; b may be negative."""
    return first_hinge(b.clamp(min=0)) + (-b).clamp(min=0)


def reached_square(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g_+ - b)_+²; b may be negative."""
    past = (-b).clamp(min=0)
    return second_hinge(b.clamp(min=0)) + 2 * POSITIVE_MEAN * past + past**2


def reached_smoothly(b: Float[Tensor, " units"], ramp: float) -> Float[Tensor, " units"]:
    """E f(g_+ - b), f the hinge rounded over [-ramp, ramp]: f(x) = ((x + ramp)_+² - (x - ramp)_+²)
    / (4 ramp)."""
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


def beyond(
    tau: float, shift: Float[Tensor, " units"], threshold: Float[Tensor, " units"]
) -> Float[Tensor, " units"]:
    """E of (tau |g| + shift)² where tau |g| >= threshold."""
    b = (threshold / tau).clamp(min=0)
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    tail = torch.special.ndtr(-b)
    return 2 * (tau**2 * (b * density + tail) + 2 * tau * shift * density + shift**2 * tail)


def chords() -> tuple[list[float], list[float], tuple[float, float]]:
    """Edges of cells of y = g_+, weights, and E of y and y² beyond the last edge.

    E F(y) <= sum(weights * F(edges)) for convex F with F(0) = 0, up to what is beyond the last
    edge.
    """
    edges = _CELL * torch.arange(_CELLS + 1, dtype=torch.float64)
    density = torch.exp(-0.5 * edges**2) / math.sqrt(2 * math.pi)
    above = torch.special.ndtr(-edges)
    mass, mean = above[:-1] - above[1:], density[:-1] - density[1:]
    right = (mean - mass * edges[:-1]) / _CELL
    weights = torch.zeros_like(edges)
    weights[:-1] += mass - right
    weights[1:] += right
    beyond_last = float(density[-1]), float(edges[-1] * density[-1] + above[-1])
    return edges.tolist(), weights.tolist(), beyond_last


def weighed_hinges(far: Float[Tensor, " units"], shift: float, ramp: float) -> float:
    """At least the sum of E y f(shift y + g_+ - far), y a g_+ of its own, f the hinge rounded over
    [-ramp, ramp]."""
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
