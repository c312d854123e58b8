"""The words that change a sentence's meaning, and those that keep it; English, put together for this package."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from wordsens.evaluation.near_misses.lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.files import packaged_text

Table = Mapping[str, Sequence[str]]
"""From a word or phrase in lower case to what may stand in its place."""

_NUMBERS = """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
NUMBERS, TENS, DAYS, MONTHS = (listed.split() for listed in (_NUMBERS, _TENS, _DAYS, _MONTHS))

_QUANTITIES = (
    "all some none", "most few", "many few", "every no", "each no", "everyone no-one someone", "everybody somebody",
    "everything nothing something", "once twice", "half all", "both neither", "at least/at most", "more than/less than",
    "seconds minutes hours days weeks months years", "second minute hour day week month year", "daily weekly monthly",
    "hundred thousand million", "hundreds thousands millions", "kilometres metres", "miles yards",
    "single double triple",
    "a lot of/little", "the first/the second/the third", "only one/several", "a couple of/a dozen",
)  # fmt: skip
_TIMES = (
    "before after", "yesterday today tomorrow", "earlier later", "morning afternoon evening night", "last next",
    "first last", "summer winter", "spring autumn", "now then", "soon later", "until from", "since until",
    "always never",
    "still/no longer", "early late", "previous next", "already/not yet", "used to/now", "past future", "during after",
    "begins ends", "will did", "then before", "while after", "when before", "today/a year ago", "ago later",
)  # fmt: skip
_NEGATIONS = (
    "with without", "somebody nobody", "someone no-one", "something nothing", "somewhere nowhere", "always never",
    "every no", "a no", "any no", "and/but not", "only/not only", "if unless", "also not", "ever never",
    "still/no longer",
    "anything nothing", "everybody nobody", "everything nothing", "everyone no-one", "both neither", "either neither",
)  # fmt: skip


def groups(listed: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """From every word of a group to the others of it; a word in several groups has the others of all.

    >>> groups(["on off", "at least/at most"])["at least"]
    ('at most',)
    """
    found: dict[str, list[str]] = {}
    for group in listed:
        words = group.strip().split("/" if "/" in group else None)
        for word in words:
            found.setdefault(word, []).extend(other for other in words if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in found.items()}


@cache
def antonyms() -> Table:
    """The antonyms of the near misses, and those of antonyms.txt."""
    listed = " ".join(lines("antonyms.txt")).split(",")
    return _joined({word: (other,) for word, other in ANTONYMS.items()}, groups(listed))


@cache
def synonyms() -> Table:
    """The groups of synonyms.txt."""
    return groups(line.replace(", ", "/") for line in lines("synonyms.txt"))


@cache
def quantities() -> Table:
    """Words of quantity, number words and units."""
    return _joined(
        {word: (other,) for word, other in QUANTITIES.items()},
        groups(_QUANTITIES),
        groups([" ".join([*NUMBERS, *TENS])]),
    )


@cache
def times() -> Table:
    """Words of time: order, days, months, parts of the day."""
    named = [" ".join(names).lower() for names in (DAYS, MONTHS)]
    return _joined({word: (other,) for word, other in TIMES.items()}, groups(_TIMES), groups(named))


@cache
def negations() -> Table:
    """Words whose exchange negates."""
    return groups(_NEGATIONS)


def exchange(sentence: str, table: Table, chance: random.Random) -> str | None:
    """The sentence with one word or phrase of the table for another, in its case; None where it holds none.

    >>> exchange("The lift is open.", {"open": ("shut",)}, random.Random(0))
    'The lift is shut.'
    """
    found = list(_pattern(table).finditer(sentence))
    if not found:
        return None
    match = chance.choice(found)
    other = chance.choice(table[match[0].lower()]).replace("no-one", "no one")
    if match[0][0].isupper():
        other = other[0].upper() + other[1:]
    return sentence[: match.start()] + other + sentence[match.end() :]


def lines(name: str) -> Iterator[str]:
    """The lines of a file of this folder, without its comments."""
    content = packaged_text(f"training/adapter/words/{name}")
    return (line for line in content.splitlines() if line.strip() and not line.startswith("#"))


def _joined(*tables: Table) -> Table:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: tuple(dict.fromkeys(other for table in tables for other in table.get(name, ()))) for name in names}


_patterns: dict[int, re.Pattern[str]] = {}


def _pattern(table: Table) -> re.Pattern[str]:
    """Of any of the table's words, the longest first. The tables live as long as the process."""
    if id(table) not in _patterns:
        words = "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True))
        _patterns[id(table)] = re.compile(rf"(?<![\w'-])({words})(?![\w'-])", re.IGNORECASE)
    return _patterns[id(table)]
