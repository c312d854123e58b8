"""Bounds of how far a Gaussian layer can move its output, when nothing is known of its weights but its pre-activations.

docs/theory/certificates-dense.md states and proves what is computed here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation
from wordsens.certificates.dense.hinges import ABSOLUTE_MEAN, beyond, first_hinge, reached_square, second_hinge
from wordsens.certificates.dense.slopes import steepest_secant

_GRID = 48
_TURNS = (1.5, 2.5, 4.0, 6.0)


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
    """An upper bound of E sup ‖act(h + V delta) - act(h)‖ over delta in T, V given V phi = h (Lemma 1).

    sqrt of the least over e of sigma² W² / e + P(e), where P bounds E sup of the sum over units of
    sup_t q_k(t) - (t - v_k)² / e, v_k = s h_k + sigma rho g_k, for convex q_k(t) >= (act(h_k + t) - act(h_k))².
    Everything is computed in units of rho, so that no square over- or underflows.
    """
    steepest = layer.activation.lipschitz**2
    trials = [fraction / steepest for fraction in torch.linspace(-6, 6, _GRID, dtype=torch.float64).sigmoid().tolist()]
    edges = {e: (layer.deviation * change.width / change.norm) ** 2 / e for e in trials}
    if layer.activation.name == "relu":
        relu_sum = _relu_sum(layer, change)
        return change.norm * math.sqrt(min(edge + relu_sum(e) / (1 - e) for e, edge in edges.items()))
    best = math.inf
    for multiple in _TURNS:
        turn = multiple * layer.deviation + change.along / change.norm * layer.preactivation.abs()
        slope = steepest_secant(layer.activation, layer.preactivation, turn * change.norm)
        sums = (edge + _general_sum(layer, change, e, turn, slope) for e, edge in edges.items() if edge < best)
        best = min(best, min(sums, default=math.inf))
    return change.norm * math.sqrt(best)


def _relu_sum(layer: GaussianLayer, change: InputChange) -> Callable[[float], float]:
    """e -> (1 - e) P(e) / rho² for ReLU: active units move freely but stop at 0, inactive ones must cross 0 first."""
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
        saved = sigma**2 * float(second_hinge(stop).sum())
        returned = sigma * float((active * first_hinge(stop)).sum())
        kept = mean - saved + (along * layer.output) ** 2
        kept += 2 * along * (sigma * ABSOLUTE_MEAN * layer.output + returned)
        return crossing + min(traded, kept)

    return bound


def _general_sum(
    layer: GaussianLayer, change: InputChange, e: float, turn: Float[Tensor, " k"], slope: Float[Tensor, " k"]
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
    tail = lipschitz**2 / (1 - e * lipschitz**2) * beyond(sigma, shift - offset / lipschitz, threshold - shift)
    square = float((weight * h**2).sum())
    mean = sigma**2 * float(weight.sum())
    spread = sigma**2 * math.sqrt(2 * float((weight**2).sum()))
    cross = sigma * ABSOLUTE_MEAN * math.sqrt(float((weight * h).square().sum()))
    stretched = max(0.0, square / base**2 - mean) + spread / 2
    total = mean + min(along * base, 1.0) ** 2 * stretched + 2 * min(along, 1 / (2 * base)) * cross
    return total + float(torch.where(slope < lipschitz, tail, 0 * tail).sum())
