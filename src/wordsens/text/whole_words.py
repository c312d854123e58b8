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
    owner: list[int | None] = [None] * len(text)
    found = list(_WORD.finditer(text))
    for index, match in enumerate(found):
        owner[match.start() : match.end()] = [index] * (match.end() - match.start())
    rows: dict[int, list[int]] = {}
    for row, (start, stop) in enumerate(offsets, start=first_row):
        word = next((owner[at] for at in range(start, stop) if owner[at] is not None), None)
        if word is not None:
            rows.setdefault(word, []).append(row)
    return tuple(Word(found[index].group(), tuple(own)) for index, own in sorted(rows.items()))
