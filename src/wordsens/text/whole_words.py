"""Words as a reader sees them, independent of a tokenizer's tokens."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

import regex

from wordsens.text.matrix import Word

Span = tuple[int, int]

# An ideograph or kana with its marks; a repeated sign; or what lies between two of Unicode's word
# boundaries.
_PIECE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc]\p{M}*|(\p{P})\1+|(?:\X(?!\b))*\X",
    regex.WORD | regex.V1,
)

_HYPHENS = "-‐‑"


def word_spans(text: str) -> list[Span]:
    """Where each word of the text starts and stops.

    Words end at Unicode's default word boundaries, which keep combining marks, joined emoji and
    soft hyphens inside a word. An ideograph or kana is one word. Words joined by a hyphen are one
    word. A punctuation mark, or a run of the same mark (...), is one word. Scripts that are written
    without blanks (Thai, Khmer, Burmese) are split into grapheme clusters.

    >>> word_spans("He didn't!")
    [(0, 2), (3, 9), (9, 10)]
    """
    spans: list[Span] = []
    for match in _PIECE.finditer(text):
        start, stop = match.span()
        if not _visible(match.group()):
            continue
        if len(spans) > 1 and _hyphenated(text, spans[-2], spans[-1], start):
            start = spans[-2][0]
            del spans[-2:]
        spans.append((start, stop))
    return spans


TAKEN_APART = (
    "words of Thai, Lao, Khmer or Burmese are split into characters, since no blanks separate "
    "them: each number is for a part of a word"
)


def takes_apart(text: str) -> bool:
    """True if the text has words that `word_spans` splits: of a script whose words only a
    dictionary can separate.

    >>> takes_apart("ไม่ดี"), takes_apart("我不 light-headed")
    (True, False)
    """
    return regex.search(r"\p{Line_Break=Complex_Context}", text) is not None


def reading_words(text: str) -> list[str]:
    """The words of a text, in order, as they are written.

    >>> reading_words("यह अच्छा नहीं है"), reading_words("我不 light-headed")
    (['यह', 'अच्छा', 'नहीं', 'है'], ['我', '不', 'light-headed'])
    """
    return [text[start:stop] for start, stop in word_spans(text)]


def lettered_spans(text: str) -> list[Span]:
    """The places of the words that have a letter or digit."""
    return [span for span in word_spans(text) if any(sign.isalnum() for sign in text[slice(*span)])]


def _visible(piece: str) -> bool:
    return any(
        unicodedata.category(sign)[0] not in "ZC" or unicodedata.category(sign) == "Co"
        for sign in piece
    )


def _hyphenated(text: str, word: Span, hyphen: Span, next_start: int) -> bool:
    """True if the hyphen joins the word and the one that starts after it."""
    return (
        text[slice(*hyphen)] in _HYPHENS
        and word[1] == hyphen[0]
        and hyphen[1] == next_start
        and text[word[1] - 1].isalnum()
        and text[next_start].isalnum()
    )


def without(text: str, span: Span) -> str:
    """The text without the characters of the span and without the blank before them.

    >>> without("It is not good.", (6, 9)), without("Not good.", (0, 3))
    ('It is good.', 'good.')
    """
    before, after = text[: span[0]], text[span[1] :]
    return (
        (before.rstrip() + after).lstrip()
        if not after or after[0].isspace() or not before
        else before + after
    )


def first_words(text: str, most: int) -> str:
    """The beginning of the text, up to the end of word number `most`."""
    spans = lettered_spans(text)
    return text if len(spans) <= most else text[: spans[most - 1][1]]


def with_word(text: str, span: Span, word: str) -> str:
    """The text with the word in place of the characters of the span."""
    return text[: span[0]] + word + text[span[1] :]


def whole_words(text: str, offsets: Sequence[Span], first_row: int) -> tuple[Word, ...]:
    """The words of the text with the rows of their tokens; a word without a token is left out.

    A word has the rows of all tokens that contain one of its characters: "didn't" is one word,
    whether a tokenizer splits it as `didn ' t` or as ` didn 't`. A token with characters of several
    words belongs to each of them, and they are marked as `shared`.

    Args:
        text: the text that was tokenized.
        offsets: start and end of each token in the text.
        first_row: the row of the first token.

    >>> [word.text for word in whole_words("He didn't!", [(0, 2), (3, 7), (7, 8), (8, 9), (9, 10)], 1)]
    ['He', "didn't", '!']
    >>> [(word.text, word.rows, word.shared) for word in whole_words("不好吗", [(0, 2), (2, 3)], 1)]
    [('不', (1,), True), ('好', (1,), True), ('吗', (2,), False)]
    """  # noqa: E501
    spans = word_spans(text)
    starts, stops = [start for start, _ in spans], [stop for _, stop in spans]
    rows: dict[int, list[int]] = {}
    shared: set[int] = set()
    for row, (start, stop) in enumerate(offsets, start=first_row):
        covered = range(bisect_right(stops, start), bisect_left(starts, stop))
        for word in covered:
            rows.setdefault(word, []).append(row)
        if len(covered) > 1:
            shared.update(covered)
    return tuple(
        Word(text[slice(*spans[at])], tuple(rows[at]), *spans[at], shared=at in shared)
        for at in sorted(rows)
    )


def words_at(words: Iterable[Word] | None, spans: Sequence[Span]) -> list[Word | None]:
    """The word at each of these places of the text; None if the model did not read it."""
    known: Mapping[Span, Word] = {(word.start, word.stop): word for word in words or ()}
    return [known.get(span) for span in spans]
