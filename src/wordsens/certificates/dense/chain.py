"""How far one word can move the features of a chain of Gaussian layers, bounded layer after layer."""

import math
from collections.abc import Sequence

from wordsens.certificates.dense.layer_change import GaussianLayer, InputChange, expected_change
from wordsens.certificates.dense.layer_width import likely_along, likely_width
from wordsens.certificates.dense.pullback import ALONG, NORM, WIDTH, Functional, Pullback


def events(depth: int) -> int:
    """How many events of probability exp(-margin² / 2) the bound of one word rests on.

    One a layer for the norm; in all layers but the last two for the width, and one for either sign of s.
    """
    return 5 * depth - 4


def chain_bound(
    layers: Sequence[GaussianLayer],
    bases: Sequence[float],
    *,
    length: float,
    radius: float,
    dimension: int,
    margin: float,
) -> float:
    """A bound of ‖phi(X^i(Delta)) - phi(X)‖ over ‖Delta‖ <= radius, from the weights' law given X's pre-activations.

    ‖delta‖, s(delta) and the Gaussian width are bounded for the changes of every layer in turn: each by the layer's own
    lemmas and, for ReLU, through all layers below at once; the smaller holds. O(L k + L²) for L layers of k units.

    Args:
        layers: from the text upwards.
        bases: ‖X‖ and each layer's ‖features‖.
        length: ‖x_i‖, of a group the norm of its rows.
        radius: of the ball.
        dimension: of the ball.
        margin: see `events`.
    """
    start = InputChange(
        norm=radius, width=radius * math.sqrt(dimension), along=radius * length / bases[0] ** 2, base=bases[0]
    )
    change, below = start, list[Pullback]()

    def jointly(functional: Functional) -> float:
        constants, deviations = [], []
        for layer in reversed(below):
            functional, constant, deviation = layer(functional)
            constants.append(constant)
            deviations.append(deviation)
        mean = functional.over_ball(radius, length, bases[0], dimension) + math.fsum(constants)
        return mean + margin * math.hypot(*deviations)

    several = len(layers) > 1 and layers[0].activation.name == "relu"
    for index, layer in enumerate(layers):
        steepest = layer.deviation * layer.activation.lipschitz * change.norm * margin
        norm = expected_change(layer, change) + steepest
        if not math.isfinite(norm):
            return math.inf
        last = index + 1 == len(layers)
        width = math.inf if last else likely_width(layer, change, margin)
        along = math.inf if last else likely_along(layer, change, margin)
        if several:
            below.append(Pullback(layer, change, margin))
            several = below[-1].usable
        if several:
            norm = min(norm, jointly(NORM))
            width = width if last else min(width, jointly(WIDTH))
            along = along if last else min(along, jointly(ALONG))
        if last:
            return norm
        units = len(layer.preactivation)
        change = InputChange(
            norm=norm,
            width=min(math.hypot(width, norm), norm * math.sqrt(units)),
            along=min(along, norm / layer.output),
            base=layer.output,
        )
    return change.norm
