"""How wide, and how far along its features, the set of a Gaussian layer's output changes can be.

docs/theory/certificates-dense.md states and proves what is computed here (Lemmas 3 and 4).
"""

import math

import torch

from wordsens.certificates.dense.layer_change import (
    ABSOLUTE_MEAN,
    POSITIVE_MEAN,
    GaussianLayer,
    InputChange,
    reached,
    reached_square,
)
from wordsens.certificates.dense.slopes import CURVATURE, LEAKS

_RAMP = 1.0
"""Half the length of the rounded hinge's ramp, in units of sigma rho: best of .5 to 2.4 for n = 50, d = 192, 768."""
_SHARES = (0.7, 0.85, 1.0)
_FEW = (2.0, 3.0, 4.5, 7.0, 10.0)
"""Trials of theta, in units of its best value were no unit to cross, and were crossing units alone to count."""


def likely_width(layer: GaussianLayer, change: InputChange, margin: float) -> float:
    """A bound of E_g sup <g, act(h + V delta) - act(h)> over delta in T, g Gaussian (Lemma 3).

    It fails, over the draw of V given V phi = h, with probability at most 2 exp(-margin² / 2).
    """
    free = layer.deviation * change.norm * layer.activation.lipschitz * margin
    plain = _plain_width(layer, change) + free
    if layer.activation.name != "relu":
        return plain
    return min(plain, _steady_width(layer, change, margin))


def expected_width(layer: GaussianLayer, change: InputChange) -> float:
    """An upper bound of E sup <g, act(h + V delta) - act(h)> over delta in T; V given V phi = h, g Gaussian."""
    plain = _plain_width(layer, change)
    return min(plain, _relu_width(layer, change, 0.0)) if layer.activation.name == "relu" else plain


def likely_along(layer: GaussianLayer, change: InputChange, margin: float) -> float:
    """A bound of sup |<phi', act(h + V delta) - act(h)>| / ‖phi'‖² over delta in T, phi' = act(h) (Lemma 4).

    It fails, over the draw of V given V phi = h, with probability at most 2 exp(-margin² / 2).
    """
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
        total = reach * length / (2 * share) + 0.5 * theta * float((linear**2 / left).sum()) + float(curved.sum())
        total += change.along * abs(float((linear * h / left).sum()))
        total += POSITIVE_MEAN * tau * float(torch.linalg.vector_norm(linear / left))
        best = min(best, total)
    return best / output**2 + steady


def _plain_width(layer: GaussianLayer, change: InputChange) -> float:
    """The mean, act taken as nothing but a Lipschitz function."""
    length = float(torch.linalg.vector_norm(layer.preactivation))
    free = layer.deviation * math.sqrt(len(layer.preactivation)) * change.width
    return layer.activation.lipschitz * (change.along * ABSOLUTE_MEAN * length + free)


def _steady_width(layer: GaussianLayer, change: InputChange, margin: float) -> float:
    """The mean with a rounded hinge, whose slope is small where the hinge is: what is above the mean is then little."""
    tau = layer.deviation * change.norm
    most = (math.sqrt(_crossing_width(layer, change)) + 0.5 * margin * math.sqrt(POSITIVE_MEAN / _RAMP)) ** 2
    return _relu_width(layer, change, _RAMP) + margin * tau * math.sqrt(1 + POSITIVE_MEAN * most / _RAMP)


def _relu_width(layer: GaussianLayer, change: InputChange, ramp: float) -> float:
    """The mean for ReLU: active units count as linear, inactive ones by what they have beyond 0."""
    h, tau = layer.preactivation, layer.deviation * change.norm
    count, width = int((h > 0).sum()), change.width / change.norm
    separate = change.along * ABSOLUTE_MEAN * layer.output + tau * POSITIVE_MEAN * math.sqrt(count)
    joint = change.norm * math.hypot(layer.output / change.base, layer.deviation * math.sqrt(count))
    ideal = width / math.sqrt(max(count, 1))
    trials = [share * ideal for share in _SHARES]
    free = min(0.5 * width**2 / at + 0.5 * at * count + _crossing(layer, change, at, ramp) for at in trials)
    return min(separate, joint) + tau * free


def _crossing_width(layer: GaussianLayer, change: InputChange) -> float:
    """The mean of the inactive units' part alone, in units of sigma rho."""
    width = change.width / change.norm
    ideal = width / math.sqrt(max(len(layer.preactivation), 1))
    return min(0.5 * width**2 / at + _crossing(layer, change, at, _RAMP) for at in (few * ideal for few in _FEW))


def _crossing(layer: GaussianLayer, change: InputChange, theta: float, ramp: float) -> float:
    """E of the sum over inactive units of y f(theta y / 2 + gamma_+ - (1 - s) a), y = g_+, in units of sigma rho.

    f is the hinge, or the hinge rounded over [-ramp, ramp]: f(x) = ((x + ramp)_+² - (x - ramp)_+²) / (4 ramp).
    """
    h, tau = layer.preactivation, layer.deviation * change.norm
    far = (1 - change.along) * h[h <= 0].abs() / tau
    edges, weights, beyond = _chords()
    sums = []
    for y in edges:
        b = far - 0.5 * theta * y
        hinge = (reached_square(b - ramp) - reached_square(b + ramp)) / (4 * ramp) if ramp else reached(b)
        sums.append(float(hinge.sum()))
    crossing = sum(weight * y * total for weight, y, total in zip(weights, edges, sums, strict=True))
    # Past the last edge f(x + theta y / 2) <= f(x) + theta y / 2.
    return crossing + beyond[0] * sums[0] + 0.5 * theta * beyond[1] * len(far)


def _chords() -> tuple[list[float], list[float], tuple[float, float]]:
    """Edges of cells of y = g_+, weights, and E of y and y² beyond the last edge.

    E F(y) <= sum(weights * F(edges)) for convex F with F(0) = 0, up to what is beyond the last edge.
    """
    edges = [0.5 * index for index in range(17)]
    density = [math.exp(-0.5 * y * y) / math.sqrt(2 * math.pi) for y in edges]
    above = [0.5 * math.erfc(y / math.sqrt(2)) for y in edges]
    weights = [0.0] * len(edges)
    for cell in range(len(edges) - 1):
        mass, mean = above[cell] - above[cell + 1], density[cell] - density[cell + 1]
        right = (mean - mass * edges[cell]) / (edges[cell + 1] - edges[cell])
        weights[cell] += mass - right
        weights[cell + 1] += right
    return edges, weights, (density[-1], edges[-1] * density[-1] + above[-1])
