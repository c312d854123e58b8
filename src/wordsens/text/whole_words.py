"""Words as a reader sees them, whatever pieces a tokenizer makes of them."""

import re
from collections.abc import Sequence

from wordsens.text.matrix import Word

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+(?:['’\-][^\W{_IDEOGRAPHS}]+)*|[^\w\s]")
"""An ideograph or kana; letters and digits, with apostrophes and hyphens inside; or one other sign."""


def reading_words(text: str) -> list[str]:
    """The words of a text as they are written.

    >>> reading_words("He didn't!")
    ['He', "didn't", '!']
    """
    return _WORD.findall(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """The place of each of `reading_words`: where it starts, and where it ends.

    >>> word_spans("He didn't!")
    [(0, 2), (3, 9), (9, 10)]
    """
    return [match.span() for match in _WORD.finditer(text)]


def without(text: str, span: tuple[int, int]) -> str:
    """The text without what stands there, nor the blank before it.

    >>> without("It is not good.", (6, 9)), without("Not good.", (0, 3))
    ('It is good.', 'good.')
    """
    before, after = text[: span[0]], text[span[1] :]
    return (before.rstrip() + after).lstrip() if not after or after[0].isspace() or not before else before + after


def with_word(text: str, span: tuple[int, int], word: str) -> str:
    """The text with the word in the place of what stands there."""
    return text[: span[0]] + word + text[span[1] :]


def whole_words(text: str, offsets: Sequence[tuple[int, int]], first_row: int) -> tuple[Word, ...]:
    """The words of the text with the rows of their tokens; a word without a token of its own is left out.

    A token belongs to the word of its first character that is not a blank. So "didn't" is one word, whether a
    tokenizer makes `didn ' t` or ` didn 't` of it.

    Args:
        text: as it was tokenized.
        offsets: where each token starts and ends in it.
        first_row: the row of the first token.

    >>> [word.text for word in whole_words("He didn't!", [(0, 2), (3, 7), (7, 8), (8, 9), (9, 10)], 1)]
    ['He', "didn't", '!']
    """
    matches = list(_WORD.finditer(text))
    word_at = {place: index for index, match in enumerate(matches) for place in range(match.start(), match.end())}
    rows: dict[int, list[int]] = {}
    for row, (start, stop) in enumerate(offsets, start=first_row):
        word = next((word_at[place] for place in range(start, stop) if place in word_at), None)
        if word is not None:
            rows.setdefault(word, []).append(row)
    return tuple(Word(matches[index].group(), tuple(rows[index])) for index in sorted(rows))
