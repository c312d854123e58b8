"""The contract of an encoder, which turns a text into rows."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.text.matrix import Word


@dataclass(frozen=True)
class Tokenization:
    """A whole text in an encoder's vocabulary, special tokens included; nothing is truncated.

    Attributes:
        ids: the numbers that enter the model.
        tokens: the same tokens as strings, as the vocabulary spells them.
        leading, trailing: how many special tokens the tokenizer put before and after the text's
            own.
        whole_words: the words as a reader sees them, each with the places of its tokens; None where
            the tokenizer does not tell.
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    leading: int
    trailing: int
    whole_words: tuple[Word, ...] | None = None

    @property
    def words(self) -> int:
        """The number of tokens that are the text's own."""
        return len(self.ids) - self.leading - self.trailing

    def first_words(self, count: int) -> "Tokenization":
        """The text's first `count` tokens between the same special tokens."""
        cut = self.words - min(count, self.words)
        stop = len(self.ids) - self.trailing
        return Tokenization(
            self.ids[: stop - cut] + self.ids[stop:],
            self.tokens[: stop - cut] + self.tokens[stop:],
            self.leading,
            self.trailing,
            None
            if self.whole_words is None
            else tuple(w for w in self.whole_words if max(w.rows) < stop - cut),
        )

    def without_front(self, count: int, special: int) -> "Tokenization":
        """Without `count` tokens behind the first `special` ones, as tokenizers cut that keep the
        end of a text: those of a prompt go first."""
        leading = max(special, self.leading - count)
        words = tuple(
            replace(word, rows=tuple(row - count for row in word.rows))
            for word in self.whole_words or ()
            if min(word.rows) - count >= leading
        )
        return Tokenization(
            self.ids[:special] + self.ids[special + count :],
            self.tokens[:special] + self.tokens[special + count :],
            leading,
            self.trailing,
            None if self.whole_words is None else words,
        )


@dataclass(frozen=True)
class EncoderInput:
    """The token numbers of one text; the last `padding` are [PAD], to which the others do not
    attend."""

    ids: tuple[int, ...]
    padding: int = 0


class Encoder(ABC):
    """A model that gives every token of a text a row, at each of its layers.

    Attributes:
        name: what messages and records call the encoder.
        dimension: d, the length of a row.
        layers: the number of layers L; layer 0 is the embedding layer's output, layer L the last.
        context: the most tokens a text may have, special tokens included; None where there is no
            limit.
        padding: the [PAD] token as (number, string), or None where the model has none.
        device: where the model computes.
    """

    name: str
    dimension: int
    layers: int
    context: int | None
    padding: tuple[int, str] | None
    device: torch.device

    @abstractmethod
    def tokenize(self, text: str) -> Tokenization:
        """The whole text as tokens, however long it is."""

    @abstractmethod
    def encode(
        self, batch: Sequence[EncoderInput], *, layer: int
    ) -> list[Float[Tensor, "tokens d"]]:
        """The rows of every input at `layer` (0 to L), one row for each of its token numbers."""

    def vocabulary(self) -> dict[int, str]:
        """Number and string of every token that is not special; InputError where the encoder does
        not list them."""
        raise InputError(
            f"the encoder {self.name} does not list its vocabulary; use one that does, such as "
            "'minilm'"
        )

    def layer_index(self, layer: int) -> int:
        """The layer as a number from 0 to L; negative ones count from the last, -1."""
        if not -self.layers - 1 <= layer <= self.layers:
            raise InputError(
                f"`layer` (={layer}) is not a layer of {self.name}, which has layers 0 "
                "(embeddings) to "
                f"{self.layers}; negative numbers count from the last, -1"
            )
        return layer % (self.layers + 1)
