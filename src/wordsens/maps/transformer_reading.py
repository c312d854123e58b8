"""From a text to the tokens that a transformer reads, and to the rows that enter its first layer."""

from collections.abc import Sequence
from typing import Any

import torch

from wordsens.errors import InputError, require_count
from wordsens.maps.transformer_stack import Stack
from wordsens.text.document import Document
from wordsens.text.embedding import Texts, as_documents
from wordsens.text.transformer_encoder import context_of
from wordsens.text.whole_words import whole_words
from wordsens.text_matrix import TextMatrix, Word


class Reader:
    """Tokenizes for one model, special tokens included.

    Args:
        tokenizer: a fast tokenizer.
        stack: the model that reads.
        name: for messages.

    Attributes:
        context: the most tokens the model takes, special ones included; None where there is no limit.
        own_tokens: how many special tokens stand around a text.
        leading_tokens: how many of them stand before it.
    """

    def __init__(self, tokenizer: Any, stack: Stack, name: str):
        self.tokenizer = tokenizer
        self._stack, self._name = stack, name
        self.context = context_of(tokenizer, stack.anatomy.base)
        frame = tokenizer("", add_special_tokens=True)["input_ids"]
        self.own_tokens = len(frame)
        mask = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        self.leading_tokens = mask.index(0) if 0 in mask else 0

    def embed(self, texts: Texts, *, max_words: int | None = None) -> list[TextMatrix]:
        """The rows that enter the first layer, one TextMatrix a text. See `TransformerFeatures.embed`."""
        if max_words is not None:
            require_count("max_words", max_words)
        return [self._embedded(document, f"text {at}", max_words) for at, document in enumerate(as_documents(texts))]

    def tokens(self, text: str, where: str = "the text", max_words: int | None = None) -> tuple[list[int], list[Word]]:
        """The numbers of the tokens, special ones included, and the words with the places of their tokens.

        Raises:
            InputError: no token, or more than the context holds.
        """
        encoded = self.tokenizer(
            text, truncation=False, padding=False, return_offsets_mapping=True, return_special_tokens_mask=True,
            verbose=False,
        )  # fmt: skip
        ids, offsets, special = (encoded[key] for key in ("input_ids", "offset_mapping", "special_tokens_mask"))
        own = [at for at, mark in enumerate(special) if not mark]
        if not own:
            raise InputError(f"{where} gives no token: it is empty or only blanks; leave it out")
        first, stop = own[0], own[-1] + 1
        if max_words is not None and stop - first > max_words:
            cut = first + max_words
            ids = ids[:cut] + ids[stop:]
            stop = cut
        if self.context is not None and len(ids) > self.context:
            around = len(ids) - (stop - first)
            raise InputError(
                f"{where} has {stop - first} tokens and {self._name} adds {around}, but its context is "
                f"{self.context} tokens; pass max_words={self.context - around} or less"
            )
        return ids, list(whole_words(text, offsets[first:stop], first))

    def spelled(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens as the vocabulary spells them."""
        return tuple(self.tokenizer.convert_ids_to_tokens(list(ids)))

    def _embedded(self, document: Document, at: str, max_words: int | None) -> TextMatrix:
        where = at + (f" ({document.source})" if document.source else "")
        ids, words = self.tokens(document.text, where, max_words)
        rows = self._stack.entering(torch.tensor([ids]))[0]
        return TextMatrix(rows, self.spelled(ids), document.label, document.source or at, tuple(words))
