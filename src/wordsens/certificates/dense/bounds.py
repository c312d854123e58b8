"""Upper bounds of word sensitivity for random features and deep random features.

docs/proofs.md#dense-certificates: "Bounds that read the weights" (`by_weights`); "Bounds from the
Gaussian law" (`by_law`, `chain_bound`).
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.activations import ACTIVATIONS
from wordsens.certificates.base import UNIT_ROUNDOFF, Certificate, operator_norm, rounding
from wordsens.certificates.dense.layer import (
    LEAKS,
    GaussianLayer,
    InputChange,
    expected_change,
    expected_width,
    likely_along,
    steepest_secant,
)
from wordsens.certificates.dense.pullback import ALONG, NORM, WIDTH, Functional, Pullback
from wordsens.errors import InputError
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.mapping import feature_norm

# The probability, at most, that a Gaussian certificate fails: over the draw of the weights, the
# words of one call.
FAILURE_PROBABILITY = 1e-9

# To which lengths are rounded up: by at most 2e-12 and 2e-6, far more than rows of one length
# differ by.
_BITS = {torch.float64: 40, torch.float32: 20}

# Smaller balls are bounded as this one is by the law, so that no product of a radius underflows.
_LEAST_RADIUS = 1e-290


def certificate_of_words(
    phi: DeepRandomFeatures,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Certificate | None:
    """The certificate that `certify` gives; None for activations of which too little is known."""
    shipped = ACTIVATIONS.get(phi.activation.name) is phi.activation
    if phi.activation.lipschitz == math.inf or (phi.gaussian == "lazy" and not shipped):
        return None
    bounds = by_law if phi.gaussian == "lazy" else by_weights
    return bounds(phi, rows, words.unsqueeze(1), radius)


def by_weights(
    phi: DeepRandomFeatures,
    rows: Float[Tensor, "n d"],
    groups: Int[Tensor, "m g"],
    radius: Float[Tensor, " m"],
) -> Certificate:
    """Upper bounds of the sensitivity of RF or DRF to each group of words that move at once,
    ‖Delta‖_F <= radius over the group (docs/proofs.md#dense-certificates). They read the matrices
    of a dense map, and hold for certain.

    rho_0 = radius, rho_l = ‖diag(c_l) V_l‖_op rho_(l-1), c_l the steepest secants of act within
    reach; upper = rho_L / ‖phi(X)‖.

    A group is to V_1 what one word of g d coordinates is (ours). Words with a ball of radius r each
    are inside the joint ball of radius r sqrt(g). `words` of the result are the groups' first
    words.

    Raises:
        InputError: features so close to zero that no bound can be certified.
        ZeroFeaturesError: phi(X) = 0.
    """
    d = rows.shape[1]
    inputs, errors = rows.flatten().double(), 0.0
    change = radius.double().clone()
    for index, weight in enumerate(phi.weights):
        preactivation, error = _preactivation(weight, inputs, errors)
        if index == 0:
            norms = []
            for group, reach in zip(groups.tolist(), change.tolist(), strict=True):
                block = torch.cat([weight[:, word * d : (word + 1) * d] for word in group], dim=1)
                norms.append(_norm_of_slopes(phi, block, preactivation, error, reach))
            change = change * change.new_tensor(norms)
        else:
            reach = float(change.max())
            change = change * _norm_of_slopes(phi, weight, preactivation, error, reach)
        inputs = phi.activation(preactivation)
        # What is known to within `error` moves act by its slope there; act itself is off by a few
        # units of rounding.
        slopes = (steepest_secant(phi.activation, preactivation, error) + 1e-13).clamp(
            max=phi.activation.lipschitz
        )
        errors = slopes * error + 8 * UNIT_ROUNDOFF * (inputs.abs() + 1)
    norm = feature_norm(inputs, phi.name)
    missing = float(torch.linalg.vector_norm(errors)) * (1 + 1e-6) + 1e-12 * norm
    if missing >= norm:
        raise InputError(
            f"{phi.name} maps this text so close to zero that no bound can be certified; use "
            "another text"
        )
    return Certificate(
        words=groups[:, 0],
        upper=change / (norm - missing) * (1 + 1e-12),
        method="operator norms of the weights, inactive units counted only as far as they can "
        "cross",
    )


def _preactivation(
    weight: Tensor, inputs: Float[Tensor, " columns"], errors: Float[Tensor, " columns"] | float
) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    """V phi in float64 and a bound of each entry's error, that of phi included. The weights are
    read in pieces."""
    values, bounds = [], []
    for piece in weight.split(max(1, (32 << 20) // (8 * weight.shape[1]))):
        piece = piece.double()
        size = piece.abs()
        values.append(piece @ inputs)
        bound = rounding(weight.shape[1] + 4) * (size @ inputs.abs())
        bounds.append(bound + (size @ errors if isinstance(errors, Tensor) else 0.0))
    return torch.cat(values), torch.cat(bounds) * (1 + 1e-6)


def _norm_of_slopes(
    phi: DeepRandomFeatures,
    block: Float[Tensor, "k columns"],
    preactivation: Float[Tensor, " k"],
    error: Float[Tensor, " k"],
    change: float,
) -> float:
    """A bound of ‖diag(c) V‖_op for inputs within `change`."""
    block = block.double()
    reach = torch.linalg.vector_norm(block, dim=1) * change * (1 + rounding(block.shape[1] + 8))
    # The pre-activation is known to within `error`: of an activation with slope 1 above 0 and a
    # smaller one below, take the end nearer to crossing; of others, allow for it in the slope.
    name = phi.activation.name
    nearest = preactivation if name not in LEAKS else preactivation + error
    slopes = steepest_secant(phi.activation, nearest, reach)
    if name not in LEAKS:
        slopes = slopes + 2 * error
    slopes = (slopes + 1e-13).clamp(max=phi.activation.lipschitz)
    return operator_norm(block * slopes.unsqueeze(1)) * (1 + rounding(max(block.shape) + 16))


def by_law(
    phi: DeepRandomFeatures,
    rows: Float[Tensor, "n d"],
    groups: Int[Tensor, "m g"],
    radius: Float[Tensor, " m"],
    *,
    failure_probability: float = FAILURE_PROBABILITY,
) -> Certificate:
    """The same bounds, which read no matrix: they use the law of what is not yet known of the
    Gaussian weights given the pre-activations of X.

    They hold with probability 1 - failure_probability over the draw of the weights, all these
    groups together, for rows, words and radius that were chosen without looking at the weights.
    They are tighter, most of all for deep maps: sup ‖delta‖ and the Gaussian width are bounded
    layer after layer.

    Raises:
        InputError: a probability that is not between 0 and 1.
        ZeroFeaturesError: phi(X) = 0.
    """
    if not 0 < failure_probability < 1:
        raise InputError(
            f"`failure_probability` (={failure_probability!r}) must be between 0 and 1"
        )
    hidden, layers = rows.flatten(), []
    bases = [float(torch.linalg.vector_norm(hidden, dtype=torch.float64))]
    for layer in phi.layers:
        preactivation = layer.multiply(hidden)
        hidden = phi.activation(preactivation)
        bases.append(feature_norm(hidden, phi.name))
        layers.append(
            GaussianLayer(
                phi.activation, layer.standard_deviation, preactivation.double(), bases[-1]
            )
        )
    # The bound of one group rests on this many events of probability exp(-margin² / 2): in every
    # layer one for the norm; in all but the last two for the width, and one for either sign of s.
    events = len(groups) * (5 * phi.depth - 4)
    margin = math.sqrt(2 * math.log(events / failure_probability))
    lengths = torch.linalg.vector_norm(rows[groups].double().flatten(start_dim=1), dim=1)
    coordinates = groups.shape[1] * rows.shape[1]
    # float32 features carry errors of this order, which the bounds must cover as well.
    slack = 1e-9 + 8 * math.sqrt(rows.numel()) * torch.finfo(phi.dtype).eps
    bits = _BITS[rows.dtype]
    known: dict[tuple[float, float], float] = {}
    uppers = []
    for length, reach in zip(lengths.tolist(), radius.tolist(), strict=True):
        # Rows are scaled to one length up to rounding: rounding that up lets equal words share
        # their bound.
        case = (_rounded_up(length, bits), max(_rounded_up(reach, bits), _LEAST_RADIUS))
        if case not in known:
            known[case] = chain_bound(
                layers, bases, length=case[0], radius=case[1], dimension=coordinates, margin=margin
            )
        uppers.append(known[case] / bases[-1] * (1 + slack))
    return Certificate(
        words=groups[:, 0],
        upper=torch.tensor(uppers, dtype=torch.float64, device=rows.device),
        method="comparison of Gaussian processes, given the pre-activations of the text",
        failure_probability=failure_probability,
    )


def _rounded_up(value: float, bits: int) -> float:
    """The value rounded up to so many bits; values a rounding below and above such a number to one
    and the same."""
    exponent = math.frexp(value * (1 + 2.0**-10))[1]
    return math.ldexp(math.ceil(math.ldexp(value, bits - exponent) + 0.25), exponent - bits)


def chain_bound(
    layers: Sequence[GaussianLayer],
    bases: Sequence[float],
    *,
    length: float,
    radius: float,
    dimension: int,
    margin: float,
) -> float:
    """A bound of ‖phi(X^i(Delta)) - phi(X)‖ over ‖Delta‖ <= radius, from the weights' law given X's
    pre-activations.

    ‖delta‖, s(delta) and the Gaussian width are bounded for the changes of every layer in turn:
    each by the layer's own lemmas and, for ReLU, through all layers below at once; the smaller
    holds. O(L k + L²) for L layers of k units.

    Args:
        layers: from the text upwards; `bases` are ‖X‖ and each layer's ‖features‖.
        length: ‖x_i‖, of a group the norm of its rows.
        radius, dimension: of the ball.
        margin: see `by_law`.
    """
    start = InputChange(
        norm=radius,
        width=radius * math.sqrt(dimension),
        along=radius * length / bases[0] ** 2,
        base=bases[0],
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
        width = math.inf if last else expected_width(layer, change) + steepest
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
