"""The certificate of each kind of map."""

import math
from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor

from wordsens.activations import ACTIVATIONS
from wordsens.certificates import EFFORTS
from wordsens.certificates.attention.bounds import attention_certificate
from wordsens.certificates.contract import Certificate
from wordsens.certificates.dense.bounds import dense_certificate
from wordsens.errors import require_choice
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.given_weights import AttentionFeatures
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures, RandomFeatures

CertificateBuilder = Callable[..., Certificate | None]
"""(phi, rows (n, d) in the map's dtype, words (w,), radius (w,) float64, effort, target) -> Certificate, or None."""


def _of_dense(
    phi: RandomFeatures | DeepRandomFeatures,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    effort: str,
    target: Float[Tensor, " w"] | None,
) -> Certificate | None:
    """All words cost the same, and there is one effort. None for activations of which too little is known."""
    del effort, target
    shipped = ACTIVATIONS.get(phi.activation.name) is phi.activation
    if phi.activation.lipschitz == math.inf or (phi.gaussian == "lazy" and not shipped):
        return None
    return dense_certificate(phi, rows, words, radius)


_BUILDERS: dict[type[FeatureMap], CertificateBuilder] = {
    RandomAttentionFeatures: attention_certificate,
    AttentionFeatures: attention_certificate,
    RandomFeatures: _of_dense,
    DeepRandomFeatures: _of_dense,
}


def certificate_for(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    *,
    text_depends_on_weights: bool = False,
    effort: str = "normal",
    target: Float[Tensor, " w"] | None = None,
) -> Certificate | None:
    """The upper bounds of these words under this map, or None where the map has no certificate.

    Looked up by the exact class: a subclass may change phi, and the bounds would not know. With
    `text_depends_on_weights`, bounds that hold with a probability over the weights are no bounds, and None is given.
    A `thorough` effort goes on until a bound is at most its word's `target`.
    """
    require_choice("effort", effort, EFFORTS)
    builder = _BUILDERS.get(type(phi))
    found = None if builder is None else builder(phi, rows, words, radius, effort, target)
    probable = found is not None and found.failure_probability is not None
    return None if probable and text_depends_on_weights else found
