"""Upper bounds of word sensitivity for attention."""

from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.contract import Certificate
from wordsens.maps.attention import RandomAttentionFeatures


def attention_certificate(
    phi: RandomAttentionFeatures, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Certificate | None:
    """None: no bound yet."""
    return None
