"""What a text is read as: tokens, and what the numbers, times and dates among them mean."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["word", "name", "negation", "number", "time", "date", "symbol", "filler"]

# A date as (year or None, month, day), a time as (None, hour, minute).
Moment = tuple[int | None, int, int]


# The relation of two tokens that mean the same in one of their readings.
AMBIGUOUS = "ambiguous"


class Amount(NamedTuple):
    """A number in the first unit of its dimension ("" for none). `written` keeps the versions 2.1
    and 2.10 apart, and the fractions 1/2 and 2/4."""

    dimension: str
    value: float
    written: str = ""


# 'One ticket' is 'a ticket', and '1 ticket' is, but 'part 1' is not 'part'.
ONE = Amount("", 1.0)


@dataclass(slots=True)
class Token:
    """A word, or what several characters or words stand for.

    Attributes:
        word: in lower case, with contractions written out.
        start, end: its characters in the text.
        initial: whether it begins a sentence.
        key: equal for tokens that mean the same.
        amount: of a number, with the name of its `unit`.
        moments: all that a time or a date may mean.
        text: as written.
        form: the inflection, where a phrase stands for the word: "gave up" for "quit".
        light: whether it is a function word, such as an article or a preposition.
        capital: of a word, whether it has one; None where that says nothing, as at the beginning.
        marker: the last preposition or conjunction between it and the content word before it.
        before, after: the words beside it, "#" for a number; "" where the sentence begins or ends.
        comma: the word behind a comma or the end of a sentence that parts it from the content word
            before it; "" without one.
        passive: whether a form of "be" stands between them.
        place: how many content words are before it.
    """

    word: str
    start: int
    end: int
    kind: Kind = "word"
    initial: bool = False
    key: Hashable = ""
    amount: Amount | None = None
    unit: str = ""
    moments: tuple[Moment, ...] = ()
    text: str = ""
    form: str = ""
    light: bool = False
    capital: bool | None = None
    marker: str = ""
    before: str = ""
    after: str = ""
    comma: str = ""
    passive: bool = False
    place: int = 0


class Reading(NamedTuple):
    """The tokens of a text: all in their order; those with content; negations; function words; and
    whether it is a question.
    """

    tokens: list[Token]
    content: list[Token]
    negations: list[Token]
    light: list[Token]
    asks: bool
