"""Transformers as models, through their maps."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.answers import Answers, require_texts
from wordsens.models.contract import Model
from wordsens.models.digest import features_digest


class TransformerModel(Model):
    """A pooled transformer.

    Args:
        phi: with a pool, and a tokenizer.
        name: for tables and records.
        batch_size: texts of equally many tokens that run together, at most.
    """

    can_differentiate = True

    def __init__(self, phi: TransformerFeatures, *, name: str, batch_size: int = 32):
        self.name = name
        self._phi, self._batch_size = phi, batch_size
        self._answers = Answers(name)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        return self._answers.rows(listed, self._phi.encode(listed, batch_size=self._batch_size))

    @property
    def layers(self) -> int | None:
        return self._phi.stack.layers + 1

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        return self._phi.encode_layers(require_texts(texts), batch_size=self._batch_size)

    def features(self) -> TransformerFeatures:
        return self._phi

    def identity(self) -> str:
        return features_digest(self._phi)
