"""Bounds of the width, and of the extent along its features, of the set of a Gaussian layer's output changes.

docs/theory/certificates-dense.md states and proves what is computed here (Lemmas 3 and 4).
"""

import math

import torch

from wordsens.certificates.dense.hinges import ABSOLUTE_MEAN, POSITIVE_MEAN, reached
from wordsens.certificates.dense.layer_change import GaussianLayer, InputChange
from wordsens.certificates.dense.slopes import CURVATURE, LEAKS

_SHARES = (0.7, 0.85, 1.0)
"""Trials of theta, in units of its best value were act not to bend."""


def likely_width(layer: GaussianLayer, change: InputChange, margin: float) -> float:
    """A bound of E_g sup <g, act(h + V delta) - act(h)> over delta in T, g Gaussian (Lemma 3).

    It fails, over the draw of V given V phi = h, with probability at most exp(-margin² / 2).
    """
    return expected_width(layer, change) + layer.deviation * change.norm * layer.activation.lipschitz * margin


def expected_width(layer: GaussianLayer, change: InputChange) -> float:
    """An upper bound of E sup <g, act(h + V delta) - act(h)> over delta in T; V given V phi = h, g Gaussian.

    act is taken as nothing but a Lipschitz function.
    """
    length = float(torch.linalg.vector_norm(layer.preactivation))
    free = layer.deviation * math.sqrt(len(layer.preactivation)) * change.width
    return layer.activation.lipschitz * (change.along * ABSOLUTE_MEAN * length + free)


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
