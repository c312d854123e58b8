"""`certify`: upper bounds of word sensitivity, by the certificate that is registered for the map's
class."""

from collections.abc import Callable, Iterable, Sequence
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.base import UNIT_ROUNDOFF, Certificate
from wordsens.errors import InputError, require_positive
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.attention.scores import Certified, Score, offered
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import feature_norm, require_repeatable
from wordsens.text.matrix import TextMatrix

# Of a product, a quotient and a norm that is summed, beside the error of the features.
_DIGITS = 16 * UNIT_ROUNDOFF

# (phi, rows (n, d) in phi's dtype, words (w,), radius (w,) float64) -> Certificate, or None where
# there is none.
CertificateBuilder = Callable[..., Certificate | None]


def certify(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    *,
    text_depends_on_weights: bool = False,
    lipschitz: float | None = None,
) -> Float[Tensor, " w"]:
    """Upper bounds of sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, one for
    each word i.

    No perturbation in the ball exceeds them (docs/proofs.md); this is certain where the map's
    weights are read. A map whose weights are sampled on demand (RF and DRF past 128 MiB) has bounds
    that hold for all words of this call together with probability 1 - 1e-9 over the draw of its
    weights, if text, words and radius were chosen without looking at the weights or the map's
    outputs; the bounds of m calls all hold with probability at least 1 - m 1e-9. `certificate`
    also says how rigorous they are (`rigor`), by which method.

    Args:
        phi: a feature map.
        X: the text, (n, d).
        words, radius: as for word_sensitivity.
        text_depends_on_weights: whether the text, words or radius were chosen by the map's outputs
            or weights (an optimised text). Then only bounds that hold with certainty are returned.
        lipschitz: for any map: a number L with ‖phi(X') - phi(X)‖ <= L ‖X' - X‖ wherever one word
            of X has moved by at most its radius. The bounds are then L radius / ‖phi(X)‖, whatever
            else phi has, and rest on your L: nothing here checks it, and `certificate(...).rigor`
            says so.

    Raises:
        InputError: the map has no certificate, or none that holds for a text that depends on its
            weights; a bad text, word or radius.
        ZeroFeaturesError: phi(X) = 0.
    """
    bounds = certificate(phi, X, words, radius, lipschitz=lipschitz)
    name = as_feature_map(phi).name
    score = getattr(phi, "score", None)
    if bounds is None and isinstance(score, Score) and offered(score, Certified) is None:
        raise InputError(
            f"`phi` ({name}) has no certificate: its score {type(score).__name__} does not say how "
            "far its weights can "
            "move; derive it from wordsens.maps.attention.scores.Certified and write that class's "
            "abstract methods "
            "(docs/theory/certificates.md), or pass `lipschitz`, a constant of your own"
        )
    if bounds is None:
        raise InputError(
            f"`phi` ({name}) has no certificate; random features, deep random features, random "
            "attention features and one layer of tied attention have one, "
            "word_sensitivity gives a lower bound for every map, "
            "and `lipschitz` takes a constant of your own"
        )
    if bounds.failure_probability is not None and text_depends_on_weights:
        raise InputError(
            f"`phi` ({name}) is sampled on demand, and its bounds hold for a text chosen without "
            "its "
            "weights only; build it with gaussian='dense' for a text that depends on them"
        )
    return bounds.upper


def certificate(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    *,
    text_depends_on_weights: bool = False,
    lipschitz: float | None = None,
) -> Certificate | None:
    """The bounds of `certify` with their rigor and method; None where the map has no certificate.

    Args, raises: as for certify.
    """
    phi, text = as_feature_map(phi), as_text(X)
    rows = phi.accept(text.rows)
    words = word_indices(words, len(text)).to(rows.device)
    reach = radii(radius, phi, rows, words)
    if lipschitz is not None:
        return _lipschitz_certificate(phi, rows, words, reach, lipschitz)
    return certificate_for(phi, rows, words, reach, text_depends_on_weights=text_depends_on_weights)


def certificate_for(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    *,
    text_depends_on_weights: bool = False,
) -> Certificate | None:
    """The upper bounds of these words under this map, or None where the map has no certificate.

    Looked up by the exact class: a subclass may change phi, and the bounds would not know. With
    `text_depends_on_weights`, bounds that hold with a probability over the weights are no bounds,
    and None is given.
    """
    builder = _BUILDERS.get(type(phi)) or _shipped(type(phi))
    bounds = None if builder is None else builder(phi, rows, words, radius)
    probable = bounds is not None and bounds.failure_probability is not None
    return None if probable and text_depends_on_weights else bounds


def register_certificate(map_class: type[FeatureMap], builder: CertificateBuilder) -> None:
    """Let `certify` and the measurements bound maps of exactly this class by `builder`, a
    `CertificateBuilder`.

    >>> from wordsens.maps.function import FunctionFeatures
    >>> class Doubled(FunctionFeatures): pass
    >>> def bound(phi, rows, words, radius):
    ...     return Certificate(words, radius / rows.double().norm() * (1 + 1e-12), "a multiple of the identity")
    >>> register_certificate(Doubled, bound)
    >>> certify(Doubled(lambda X: 2 * X), torch.ones(4, 9, dtype=torch.float64)).tolist()
    [0.5..., 0.5..., 0.5..., 0.5...]
    """  # noqa: E501
    _BUILDERS[map_class] = builder


# Those that were registered.
_BUILDERS: dict[type[FeatureMap], CertificateBuilder] = {}


def _shipped(map_class: type[FeatureMap]) -> CertificateBuilder | None:
    """The builder of a map of the package; a family is loaded for its own maps only."""
    match f"{map_class.__module__}.{map_class.__name__}":
        case "wordsens.maps.dense.RandomFeatures" | "wordsens.maps.dense.DeepRandomFeatures":
            from wordsens.certificates.dense.bounds import certificate_of_words

            return certificate_of_words
        case (
            "wordsens.maps.attention.features.RandomAttentionFeatures"
            | "wordsens.maps.attention.given_weights.AttentionFeatures"
        ):
            from wordsens.certificates.attention.bounds import attention_certificate

            return attention_certificate
        case "wordsens.maps.random_transformer.RandomTransformer":
            from wordsens.certificates.symmetric import symmetric_certificate

            return symmetric_certificate
    return None


def _lipschitz_certificate(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    lipschitz: float,
) -> Certificate:
    """L radius / ‖phi(X)‖ for each word, L stated by the caller; the rounding of ‖phi(X)‖, an
    estimate, is added."""
    constant = require_positive(
        "lipschitz", lipschitz, remedy="give a constant of your map, or None"
    )
    with torch.no_grad():
        norm = feature_norm(require_repeatable(phi, rows), phi.name)
    rounding = phi.relative_rounding(rows)
    if rounding >= 0.5:
        raise InputError(
            f"{phi.name} is too uncertain on this text to bound (its rounding is about "
            f"{rounding:.2g} of its features);"
            " use float64"
        )
    return Certificate(
        words=words,
        upper=constant * radius.double() / norm * (1 + _DIGITS) / (1 - rounding),
        method="radius times a Lipschitz constant over the features' norm",
        rests_on=f"the Lipschitz constant {constant:.6g} that was given holds",
    )
