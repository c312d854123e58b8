"""The public names: upper bounds of word sensitivity for a text under a map."""

from collections.abc import Callable, Iterable, Sequence
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.contract import Certificate
from wordsens.certificates.lipschitz import lipschitz_certificate
from wordsens.certificates.table import certificate_for
from wordsens.errors import InputError, require_positive
from wordsens.maps.arguments import as_text, radii, word_indices
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.text.matrix import TextMatrix


def certify(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    *,
    effort: str = "normal",
    attained: Float[Tensor, " w"] | None = None,
    gap: float | None = None,
    text_depends_on_weights: bool = False,
    lipschitz: float | None = None,
) -> Float[Tensor, " w"]:
    """Upper bounds of sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, one for each word i.

    No perturbation in the ball exceeds them (docs/theory): with certainty, where the map's weights are read. A map
    whose weights are sampled on demand (RF and DRF past 128 MiB) has bounds that hold with probability 1 - 1e-9 over
    the draw of its weights, all words of this call together, for a text, words and a radius that were chosen without
    looking at the weights or the map's outputs; m calls: 1 - m 1e-9. `certificate` also says how rigorous
    they are (`rigor`), by which method and with what slack.

    Args:
        phi: a feature map.
        X: the text, (n, d).
        words: the word indices; None for all.
        radius: of the ball, one number or one a word; None for the map's default, sqrt(d).
        effort: "normal", or "thorough", which for attention optimises one weight a row: tighter, at O(n³) some 150
            times a word (docs/theory/certificates-attention). Other maps have one effort.
        attained, gap: a lower bound for each of the words (`per_word`), and the ratio upper / attained at which a
            thorough effort leaves a word; None to optimise all.
        text_depends_on_weights: whether the text, words or radius were chosen by the map's outputs or weights (an
            optimised text). Then only bounds that hold with certainty are returned.
        lipschitz: for any map: a number L with ‖phi(X') - phi(X)‖ <= L ‖X' - X‖ wherever one word of X has moved by at
            most its radius. The bounds are then L radius / ‖phi(X)‖, whatever else phi has, and rest on your L: nothing
            here checks it, and `certificate(...).rigor` says so.

    Raises:
        InputError: the map has no certificate, or none that holds for a text that depends on its
            weights; a bad text, word or radius.
        ZeroFeaturesError: phi(X) = 0.
    """
    found = certificate(phi, X, words, radius, effort=effort, attained=attained, gap=gap, lipschitz=lipschitz)
    name = as_feature_map(phi).name
    if found is not None and found.failure_probability is not None and text_depends_on_weights:
        raise InputError(
            f"`phi` ({name}) is sampled on demand, and its bounds hold for a text chosen without its "
            "weights only; build it with gaussian='dense' for a text that depends on them"
        )
    if found is None:
        raise InputError(
            f"`phi` ({name}) has no certificate; random features, deep random features and random attention features "
            "have one, word_sensitivity gives a lower bound for every map, and `lipschitz` takes a constant of your own"
        )
    return found.upper


def certificate(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    *,
    effort: str = "normal",
    attained: Float[Tensor, " w"] | None = None,
    gap: float | None = None,
    text_depends_on_weights: bool = False,
    lipschitz: float | None = None,
) -> Certificate | None:
    """The bounds of `certify` with their rigor, slack and method; None where the map has no (such) certificate.

    Args, raises: as for certify.
    """
    text, phi = as_text(X), as_feature_map(phi)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    reach = radii(radius, phi, rows, chosen)
    if lipschitz is not None:
        return lipschitz_certificate(phi, rows, chosen, reach, lipschitz)
    return certificate_for(
        phi,
        rows,
        chosen,
        reach,
        text_depends_on_weights=text_depends_on_weights,
        effort=effort,
        target=_target(attained, gap, chosen),
    )


def _target(attained: Tensor | None, gap: float | None, words: Int[Tensor, " w"]) -> Float[Tensor, " w"] | None:
    """gap * attained, if both are given."""
    if (attained is None) != (gap is None):
        raise InputError(f"`gap` (={gap!r}) is of upper over `attained`, which goes with it; give both or none")
    if attained is None or gap is None:
        return None
    values = require_positive("gap", gap) * torch.as_tensor(attained).to(words.device, torch.float64).flatten()
    if len(values) != len(words) or not bool(torch.isfinite(values).all()):
        raise InputError(
            f"`attained` ({len(values)} values) must have a finite value for each of the {len(words)} words; give the "
            "`per_word` of a search of the same words"
        )
    return values
