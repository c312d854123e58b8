"""The tokens of a text (numbers, spellings, places), and its words as a reader sees them."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordsens.errors import InputError
from wordsens.text.matrix import Word
from wordsens.text.whole_words import Span, whole_words

# How tokenizers mark a token that begins a word: of bytes, and of sentence pieces; WordPiece marks
# the others instead.
_BYTES_BEGIN, _PIECE_BEGINS, _CONTINUES = "Ġ", "▁", "##"

MOST_UNKNOWN = 0.8
"""A text with a larger share of unknown tokens is refused: its rows do not represent its words. In
a script that the vocabulary lacks, all tokens of a text are unknown except digits and punctuation
marks, about a tenth of ordinary prose; texts with rare names stay far below."""


@dataclass(frozen=True)
class Tokenization:
    """A text in a model's vocabulary, special tokens included.

    Attributes:
        ids: the numbers that enter the model.
        tokens: the same tokens as the vocabulary spells them.
        leading, trailing: the number of tokens before and after the text's own: special ones, and
            those of a prompt.
        offsets: start and end of each token in the text; None if the tokenizer does not give them.
        whole_words: the words as a reader sees them, each with the places of its tokens; None if
            the tokenizer gives no offsets.
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    leading: int
    trailing: int
    offsets: tuple[Span, ...] | None = None
    whole_words: tuple[Word, ...] | None = None

    @property
    def words(self) -> int:
        """The number of the text's own tokens."""
        return len(self.ids) - self.leading - self.trailing

    @property
    def own(self) -> slice:
        """The places of the text's own tokens."""
        return slice(self.leading, len(self.ids) - self.trailing)

    def first_words(self, count: int) -> "Tokenization":
        """The text's first `count` tokens between the same special tokens."""
        return self.without(self.leading + count, self.own.stop)

    def without(self, start: int, stop: int) -> "Tokenization":
        """The same without the tokens from `start` to `stop`; a word that loses a token is left
        out."""
        if start >= stop:
            return self
        kept = [place for place in range(len(self.ids)) if not start <= place < stop]
        new = {place: row for row, place in enumerate(kept)}
        words = self.whole_words and tuple(
            replace(word, rows=tuple(new[row] for row in word.rows))
            for word in self.whole_words
            if new.keys() >= set(word.rows)
        )
        return Tokenization(
            tuple(self.ids[place] for place in kept),
            tuple(self.tokens[place] for place in kept),
            sum(place < self.leading for place in kept),
            self.trailing,
            self.offsets and tuple(self.offsets[place] for place in kept),
            words,
        )


def tokenization_of(
    text: str,
    ids: Sequence[int],
    tokens: Sequence[str],
    special: Sequence[int],
    offsets: Sequence[Span] | None,
    *,
    prompt: str = "",
) -> Tokenization:
    """The Tokenization of a text after a prompt, from a tokenizer's output.

    Args:
        special: 1 for each token that is not the text's own, else 0.
        offsets: start and end of each token in prompt and text; None if the tokenizer does not give
            them.
    """
    leading = _leading_ones(special)
    trailing = 0 if leading == len(ids) else _leading_ones(special[::-1])
    if offsets is None:
        return Tokenization(tuple(ids), tuple(tokens), leading, trailing)
    own = slice(leading, len(ids) - trailing)
    spans = wide_offsets(offsets[own], len(prompt + text))
    of_prompt = _leading_ones([int(bool(prompt) and stop <= len(prompt)) for _, stop in spans])
    # Offsets count from the prompt's first character; a word belongs to the text alone.
    spans = [(max(0, start - len(prompt)), max(0, stop - len(prompt))) for start, stop in spans]
    words = whole_words(text, spans[of_prompt:], leading + of_prompt)
    places = (*[(0, 0)] * leading, *spans, *[(0, 0)] * trailing)
    return Tokenization(tuple(ids), tuple(tokens), leading + of_prompt, trailing, places, words)


def require_known(
    tokenization: Tokenization, unknown: int | None, *, where: str, name: str
) -> None:
    """InputError for a text with a larger share of unknown tokens than MOST_UNKNOWN.

    Args:
        unknown: the number of the unknown token; None for a tokenizer without one.
    """
    places = range(len(tokenization.ids))[tokenization.own]
    lost = [place for place in places if tokenization.ids[place] == unknown]
    if len(lost) > MOST_UNKNOWN * tokenization.words:
        raise InputError(
            f"{where}: {len(lost)} of its {tokenization.words} tokens are unknown to {name} "
            f"({tokenization.tokens[lost[0]]}), so its rows do not represent its words; use a "
            "model for this language, or one whose tokenizer files are complete"
        )


def spelled(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    """Tokens as the vocabulary spells them. Those of bytes, as RoBERTa, GPT-2 and Llama 3 have, are
    decoded; a piece of a character is left as it is."""
    tokens: list[str] = tokenizer.convert_ids_to_tokens(list(ids))
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if decoder is None or b'"ByteLevel"' not in decoder.__getstate__():
        return tuple(tokens)
    from tokenizers.decoders import ByteLevel  # of an extra

    def decoded(token: str) -> str:
        word = token.lstrip("Ġ")
        said = ByteLevel().decode([word])
        readable = not word.isascii() and said.isprintable() and "\ufffd" not in said
        return token[: len(token) - len(word)] + said if readable else token

    return tuple(map(decoded, tokens))


def whole_word_tokens(tokenizer: Any, *, rows: int | None = None, every: int = 1) -> dict[int, str]:
    """Number and spelling, without the tokenizer's marks, of the tokens that are whole words of
    letters.

    Args:
        tokenizer: of the Hugging Face library.
        rows: rows of the model's table; tokens past it, which were added to the tokenizer alone,
            are left out.
        every: only every k-th token is considered, for a sample.
    """
    from tokenizers.decoders import ByteLevel  # of an extra

    numbers, reserved = tokenizer.get_vocab(), set(tokenizer.all_special_ids)
    counts = {
        mark: sum(token.startswith(mark) for token in numbers)
        for mark in (_BYTES_BEGIN, _PIECE_BEGINS)
    }
    mark = max(counts, key=counts.__getitem__)
    marked = counts[mark] > 0
    allowed: dict[int, str] = {}
    for token, number in sorted(numbers.items(), key=lambda entry: entry[1])[::every]:
        begins = token.startswith(mark) if marked else not token.startswith(_CONTINUES)
        if not begins or number in reserved or (rows is not None and number >= rows):
            continue
        bare = token.lstrip(mark)
        if marked and mark == _BYTES_BEGIN:
            # Each letter of such a token stands for a byte; a piece of a character is no word.
            bare = ByteLevel().decode([bare])
        # Letters and, from the second character on, the vowel signs that many scripts put on them.
        letters = [sign.isalpha() or unicodedata.category(sign)[0] == "M" for sign in bare]
        if bare[:1].isalpha() and all(letters):
            allowed[number] = bare
    return allowed


def wide_offsets(offsets: Sequence[Span], length: int) -> list[Span]:
    """The places of tokens in a text of that length. A place without width, as some tokenizers
    give, is extended to the start of the next one. Places that all begin at one point are returned
    unchanged.

    >>> wide_offsets([(0, 0), (4, 4), (9, 11)], 11)
    [(0, 4), (4, 9), (9, 11)]
    """
    if len(offsets) != 1 and len({start for start, _ in offsets}) < 2:
        return list(offsets)
    starts = [*(start for start, _ in offsets[1:]), length]
    return [
        (start, stop if stop > start else max(start, following))
        for (start, stop), following in zip(offsets, starts, strict=True)
    ]


def longest_part(text: str, fits: Callable[[str], bool], *, left: bool) -> Span:
    """Start and end of the longest beginning of the text that fits, or with `left` of its longest
    end."""
    if left:
        return bisect_left(range(len(text)), True, key=lambda start: fits(text[start:])), len(text)
    stop = bisect_right(range(len(text)), False, key=lambda stop: not fits(text[: stop + 1]))
    return 0, stop


def require_rows(ids: Sequence[int], rows: int | None, tokenizer: Any, where: str) -> None:
    """InputError for a text with a token beyond the model's table, which was added to the tokenizer
    only."""
    if rows is not None and max(ids, default=0) >= rows:
        token = tokenizer.convert_ids_to_tokens(max(ids))
        raise InputError(
            f"{where}: the token {token!r} has the number {max(ids)}, but the model's table has "
            f"{rows} rows; use the tokenizer that belongs to the model, or resize the table"
        )


def _leading_ones(mask: Sequence[int]) -> int:
    return next((index for index, entry in enumerate(mask) if entry != 1), len(mask))
