"""The public names: upper bounds of word sensitivity for a text under a map."""

from collections.abc import Callable, Iterable, Sequence
from typing import SupportsIndex

import numpy as np
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.contract import Certificate
from wordsens.certificates.dispatch import certificate_for
from wordsens.errors import InputError
from wordsens.feature_map import FeatureMap
from wordsens.sensitivity import as_feature_map, as_text, radii, word_indices
from wordsens.text_matrix import TextMatrix


def certify(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
) -> Float[Tensor, " w"]:
    """Upper bounds of sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, one for each word i.

    Certified: no perturbation in the ball exceeds them (docs/theory). `certificate` also says how rigorous they are,
    by which method and with what slack.

    Args:
        phi: a feature map.
        X: the text, (n, d).
        words: the word indices; None for all.
        radius: of the ball, one number or one a word; None for the map's default, sqrt(d).

    Raises:
        InputError: the map has no certificate; a bad text, word or radius.
        ZeroFeaturesError: phi(X) = 0.
    """
    found = certificate(phi, X, words, radius)
    if found is None:
        name = as_feature_map(phi).name
        raise InputError(
            f"`phi` ({name}) has no certificate; random features, deep random features and random attention features "
            "have one, and word_sensitivity gives a lower bound for every map"
        )
    return found.upper


def certificate(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
) -> Certificate | None:
    """The bounds of `certify` with their rigor, slack and method; None where the map has no certificate.

    Args, raises: as for certify.
    """
    text, phi = as_text(X), as_feature_map(phi)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    return certificate_for(phi, rows, chosen, radii(radius, phi, rows, chosen))
