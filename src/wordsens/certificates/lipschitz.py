"""Upper bounds for any map, from a Lipschitz constant that the caller states."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.contract import Certificate
from wordsens.errors import InputError, require_positive
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import feature_norm, require_repeatable

_DIGITS = 8 * torch.finfo(torch.float64).eps
"""Of a product, a quotient and a norm that is summed, beside the error of the features."""


def lipschitz_certificate(
    phi: FeatureMap, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"], radius: Float[Tensor, " w"], lipschitz: float
) -> Certificate:
    """L radius / ‖phi(X)‖ for each word: ‖phi(X^i(Delta)) - phi(X)‖ <= L ‖Delta‖ (ours, one line).

    It rests on L, the caller's, which nothing here checks. ‖phi(X)‖ is computed; what its rounding may be wrong by
    (`FeatureMap.relative_rounding`, an estimate for a map of which nothing is known) is added to the bounds.

    Args:
        lipschitz: L, positive: of phi between X and X with one word moved by at most its radius, in the Euclidean norms
            of all entries.

    Raises:
        InputError: L that is not positive and finite; features that are too uncertain to bound.
        ZeroFeaturesError: phi(X) = 0.
    """
    constant = require_positive("lipschitz", lipschitz, remedy="give a constant of your map, or None")
    with torch.no_grad():
        norm = feature_norm(require_repeatable(phi, rows), phi.name)
    rounding = phi.relative_rounding(rows)
    if rounding >= 0.5:
        raise InputError(
            f"{phi.name} is too uncertain on this text to bound (its rounding is about {rounding:.2g} of its features);"
            " use float64"
        )
    slack = (1 + _DIGITS) / (1 - rounding) - 1
    return Certificate(
        words=words,
        upper=constant * radius.double() / norm * (1 + slack),
        slack=slack,
        method="radius times a Lipschitz constant over the features' norm",
        rests_on=f"the Lipschitz constant {constant:.6g} that was given holds",
    )
