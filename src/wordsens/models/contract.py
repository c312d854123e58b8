"""The contract of a model: texts to vectors, and what a model can do beside that."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures


class Model(ABC):
    """Anything that gives every text a vector.

    Attributes:
        name: for tables and records.
        can_differentiate: whether `features` gives a map with gradients; not so for a black box.
    """

    name: str
    can_differentiate: bool = False

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """One vector a text: float64 on the CPU, finite, none of them zero, and d the same in every call.

        Raises:
            InputError: the texts are no texts, or the model's answer is not that.
        """

    @abstractmethod
    def identity(self) -> str:
        """A digest of what decides the numbers: weights, configuration, tokenizer, pooling, prompts.

        Of a black box: of its answers to a few fixed sentences, rounded to four digits of their largest number.
        """

    @property
    def layers(self) -> int | None:
        """How many layers `encode_layers` gives, the embedding layer being the first; None where it cannot."""
        return None

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        """The vectors that the model's own pooling makes of every layer, the embedding layer first.

        Raises:
            InputError: a model whose layers cannot be seen.
        """
        raise InputError(
            f"the layers of {self.name} cannot be seen: it gives one vector a text, for pairs, removals, swaps and "
            "lengths; for layers pass the transformer (a name, a folder, or a pair (model, tokenizer))"
        )

    def features(self) -> TransformerFeatures:
        """The model as a map from the rows that enter its first layer.

        Raises:
            InputError: a model without gradients.
        """
        raise InputError(
            f"where gradients are needed {self.name} cannot be used: it gives one vector a text, for pairs, removals, "
            "swaps and lengths; pass the transformer (a name, a folder, or a pair (model, tokenizer))"
        )
