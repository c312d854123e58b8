"""A model as the evaluation sees it: texts in, vectors out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor

from wordsens.maps.transformer.features import TransformerFeatures


class Model(ABC):
    """Texts to vectors."""

    name: str
    can_differentiate: bool = False
    layers: int | None = None

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Tensor:
        """One float64 vector a text, (m, d)."""

    def encode_layers(self, texts: Sequence[str]) -> Tensor:
        """The vectors of every layer, (layers, m, d)."""
        raise NotImplementedError

    def features(self) -> TransformerFeatures:
        """The map behind the model."""
        raise NotImplementedError

    @abstractmethod
    def identity(self) -> str:
        """A string that changes when the model does."""


class PairModel(ABC):
    """Two texts to a score."""

    name: str

    @abstractmethod
    def score(self, first: Sequence[str], second: Sequence[str]) -> Tensor:
        """One number a pair, (m,)."""
