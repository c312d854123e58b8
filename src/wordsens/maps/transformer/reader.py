"""From a text to the tokens that a transformer reads, and to the rows that enter its first layer."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from wordsens.errors import InputError, require_characters, require_count
from wordsens.maps.transformer.settings import SentenceSettings
from wordsens.maps.transformer.stack import Stack
from wordsens.text.document import Document
from wordsens.text.embedding import Texts, as_documents
from wordsens.text.matrix import TextMatrix, Word
from wordsens.text.transformer_encoder import context_of, require_known_tokens, require_rows
from wordsens.text.whole_words import whole_words


class Reader:
    """Tokenizes for one model, special tokens included.

    Args:
        tokenizer: a fast tokenizer.
        stack: the model that reads.
        name: for messages.

    Attributes:
        context: the most tokens the model takes, special ones included; None where there is no limit.
        own_tokens: how many tokens stand around a text: special ones, and those of a prompt.
        leading_tokens: how many of them stand before it.
        prompt: what is put before every text.
        cuts: whether a text that is too long is cut to the context, as sentence-transformers does, or refused.
    """

    def __init__(self, tokenizer: Any, stack: Stack, name: str):
        self.tokenizer = tokenizer
        self._stack, self._name = stack, name
        self.context = context_of(tokenizer, stack.anatomy.base)
        frame = tokenizer("", add_special_tokens=True)["input_ids"]
        self.own_tokens = len(frame)
        mask = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        self.leading_tokens = mask.index(0) if 0 in mask else 0
        self.prompt, self.cuts = "", False

    def following(self, settings: SentenceSettings) -> "Reader":
        """A reader that does to a text what the model's sentence-transformers files say: prompt, limit, case."""
        other = copy.copy(self)
        if settings.lowercase:
            other.tokenizer = _lowercasing(self.tokenizer)
        other.prompt, other.cuts = settings.prompt, True
        limits = [limit for limit in (self.context, settings.most_tokens) if limit is not None]
        other.context = min(limits, default=None)
        prompted = len(other.tokenizer(settings.prompt, add_special_tokens=False, verbose=False)["input_ids"])
        other.leading_tokens, other.own_tokens = self.leading_tokens + prompted, self.own_tokens + prompted
        return other

    def embed(self, texts: Texts, *, max_words: int | None = None) -> list[TextMatrix]:
        """The rows that enter the first layer, one TextMatrix a text. See `TransformerFeatures.embed`."""
        if max_words is not None:
            require_count("max_words", max_words)
        return [self._embedded(document, f"text {at}", max_words) for at, document in enumerate(as_documents(texts))]

    def tokens(self, text: str, where: str = "the text", max_words: int | None = None) -> tuple[list[int], list[Word]]:
        """The numbers of the tokens, special ones included, and the words with the places of their tokens.

        Raises:
            InputError: no token, more than the context holds, or hardly one that the vocabulary knows.
        """
        whole = self.prompt + require_characters(where, text)
        encoded = self.tokenizer(
            whole, truncation=False, padding=False, return_offsets_mapping=True, return_special_tokens_mask=True,
            verbose=False,
        )  # fmt: skip
        ids, offsets, special = (encoded[key] for key in ("input_ids", "offset_mapping", "special_tokens_mask"))
        given = [at for at, mark in enumerate(special) if not mark and offsets[at][1] > len(self.prompt)]
        if not given:
            raise InputError(f"{where} gives no token: it is empty or only blanks; leave it out")
        first, stop = given[0], given[-1] + 1
        require_known_tokens(ids[first:stop], self.tokenizer, where, self._name)
        require_rows(ids, self._stack.anatomy.base, self.tokenizer, f"{where} in {self._name}")
        around = len(ids) - (stop - first)
        room = None if self.context is None else self.context - around
        if self.cuts and room is not None:
            if room < 1:
                raise InputError(
                    f"the prompt of {self._name} ({self.prompt!r}) leaves no room in its {self.context} tokens"
                )
            max_words = room if max_words is None else min(max_words, room)
        if max_words is not None and stop - first > max_words:
            cut = first + max_words
            ids = ids[:cut] + ids[stop:]
            stop = cut
        if room is not None and stop - first > room:
            raise InputError(
                f"{where} has {stop - first} tokens and {self._name} adds {around}, but its context is "
                f"{self.context} tokens; pass max_words={room} or less"
            )
        # Offsets count from the prompt's first character; a word belongs to the text alone.
        places = [(max(0, a - len(self.prompt)), b - len(self.prompt)) for a, b in offsets[first:stop]]
        return ids, list(whole_words(text, places, first))

    def numbers(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of every text's tokens. See `tokens`."""
        return [self.tokens(text, f"text {at}")[0] for at, text in enumerate(texts)]

    def count(self, text: str) -> int:
        """The number of tokens the model reads for the text, prompt and special ones included, if it is not cut."""
        return len(self.tokenizer(self.prompt + require_characters("the text", text), verbose=False)["input_ids"])

    def spelled(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens as the vocabulary spells them."""
        return tuple(self.tokenizer.convert_ids_to_tokens(list(ids)))

    def _embedded(self, document: Document, at: str, max_words: int | None) -> TextMatrix:
        where = at + (f" ({document.source})" if document.source else "")
        ids, words = self.tokens(document.text, where, max_words)
        rows = self._stack.entering(torch.tensor([ids]))[0]
        return TextMatrix(rows, self.spelled(ids), document.label, document.source or at, tuple(words))


def _lowercasing(tokenizer: Any) -> Any:
    """A copy of the tokenizer that puts texts into lower case before all else."""
    from tokenizers import normalizers

    other = copy.deepcopy(tokenizer)
    inner = other.backend_tokenizer
    steps = [normalizers.Lowercase(), *([] if inner.normalizer is None else [inner.normalizer])]
    inner.normalizer = normalizers.Sequence(steps)
    return other
