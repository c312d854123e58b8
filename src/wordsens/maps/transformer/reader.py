"""From a text, or a pair of texts, to the tokens that a transformer reads."""

from collections.abc import Sequence
from typing import Any

from wordsens.errors import InputError, require_characters
from wordsens.text.encoder import Tokenization
from wordsens.text.matrix import Word
from wordsens.text.pretrained import require_fast_tokenizer
from wordsens.text.transformer_encoder import characters_within, context_of, embedding_rows, tokenized
from wordsens.text.whole_words import whole_words

SIDES = ("first", "second")


class Reader:
    """Tokenizes for one model, special tokens included.

    Args:
        tokenizer: a fast tokenizer.
        model: the transformer that reads.
        name: for messages.
        prompt: what is put before every text.
        most_tokens: the most tokens of a text, beside the model's own limit.
        cuts: whether a text that is too long is cut, as sentence-transformers does, or refused; may be changed.

    Attributes:
        context: the most tokens the model takes, special ones included; None where there is no limit.
        frame: the special tokens before and after every text.
        leading_tokens, own_tokens: how many tokens stand before a text, and how many around it, those of a prompt
            included.
    """

    def __init__(
        self,
        tokenizer: Any,
        model: Any,
        name: str,
        *,
        prompt: str = "",
        most_tokens: int | None = None,
        cuts: bool = False,
    ):
        require_fast_tokenizer(tokenizer, name)
        self.tokenizer, self.prompt, self.cuts = tokenizer, prompt, cuts
        self._table, self._name = embedding_rows(model), name
        limits = [limit for limit in (context_of(tokenizer, model), most_tokens) if limit is not None]
        self.context = min(limits, default=None)
        ids = tokenizer("", add_special_tokens=True)["input_ids"]
        mask = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        leading = mask.index(0) if 0 in mask else 0
        self.frame = tuple(ids[:leading]), tuple(ids[leading:])
        prompted = len(tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"])
        self.leading_tokens, self.own_tokens = leading + prompted, len(ids) + prompted

    def tokens(self, text: str, where: str = "the text", max_words: int | None = None) -> Tokenization:
        """The text's tokens, special ones included.

        Raises:
            InputError: no token, more than the context holds, or hardly one that the vocabulary knows.
        """
        whole = tokenized(text, self.tokenizer, self._table, where=where, name=self._name, prompt=self.prompt)
        if whole.words == 0:
            raise InputError(f"{where} gives no token: it is empty or only blanks; leave it out")
        around = whole.leading + whole.trailing
        room = None if self.context is None else self.context - around
        if self.cuts and room is not None:
            if room < 1:
                raise InputError(
                    f"the prompt of {self._name} ({self.prompt!r}) leaves no room in its {self.context} tokens"
                )
            max_words = room if max_words is None else min(max_words, room)
        if max_words is not None:
            whole = whole.first_words(max_words)
        if room is not None and whole.words > room:
            raise InputError(
                f"{where} has {whole.words} tokens and {self._name} adds {around}, but its context is "
                f"{self.context} tokens; pass max_words={room} or less"
            )
        return whole

    def pair(self, first: str, second: str, side: int) -> tuple[list[int], list[int] | None, tuple[Word, ...]]:
        """The tokens of two texts that are read together, their types, and the words of the one that moves."""
        encoded = self.tokenizer(
            first,
            second,
            truncation=self.context is not None,
            max_length=self.context,
            return_offsets_mapping=True,
            verbose=False,
        )
        moving = [at for at, text in enumerate(encoded.sequence_ids(0)) if text == side]
        if not moving:
            raise InputError(f"`{SIDES[side]}` gives no token: it is empty or only blanks, so no word of it can move")
        start, stop = moving[0], moving[-1] + 1
        words = whole_words((first, second)[side], encoded["offset_mapping"][start:stop], start)
        return encoded["input_ids"], encoded.get("token_type_ids"), words

    def numbers(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of every text's tokens. See `tokens`."""
        return [list(self.tokens(text, f"text {at}").ids) for at, text in enumerate(texts)]

    def count(self, text: str) -> int:
        """The number of tokens the model reads for the text, prompt and special ones included, if it is not cut."""
        return len(self.tokenizer(self.prompt + require_characters("the text", text), verbose=False)["input_ids"])

    def characters_read(self, text: str) -> int:
        """How many leading characters of the text fit into the context."""
        return characters_within(text, self.tokenizer, self.context, prompt=self.prompt)

    def spelled(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens as the vocabulary spells them."""
        return tuple(self.tokenizer.convert_ids_to_tokens(list(ids)))
