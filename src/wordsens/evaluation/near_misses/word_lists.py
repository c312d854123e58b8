"""Tables of words that may stand for one another: antonyms, negations, synonyms; English, compiled for this package."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from wordsens.evaluation.near_misses.lists import ANTONYMS
from wordsens.files import packaged_text

Table = Mapping[str, Sequence[str]]
"""From a word or phrase in lower case to what may stand in its place."""

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
    table: dict[str, list[str]] = {}
    for group in listed:
        words = group.strip().split("/" if "/" in group else None)
        for word in words:
            table.setdefault(word, []).extend(other for other in words if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in table.items()}


@cache
def antonyms() -> Table:
    """The antonyms of the near misses, and those of antonyms.txt."""
    further = groups(" ".join(_lines("antonyms.txt")).split(","))
    words = dict.fromkeys([*ANTONYMS, *further])
    first = {word: (other,) for word, other in ANTONYMS.items()}
    return {word: tuple(dict.fromkeys((*first.get(word, ()), *further.get(word, ())))) for word in words}


@cache
def synonyms() -> Table:
    """The groups of synonyms.txt."""
    return groups(line.replace(", ", "/") for line in _lines("synonyms.txt"))


@cache
def negations() -> Table:
    """Words whose exchange negates."""
    return groups(_NEGATIONS)


def exchange(sentence: str, table: Table, chance: random.Random) -> str | None:
    """The sentence with one word or phrase of the table for another, in its case; None where it holds none.

    >>> exchange("The lift is open.", {"open": ("shut",)}, random.Random(0))
    'The lift is shut.'
    """
    matches = list(_pattern(table).finditer(sentence))
    if not matches:
        return None
    match = chance.choice(matches)
    other = chance.choice(table[match[0].lower()]).replace("no-one", "no one")
    if match[0][0].isupper():
        other = other[0].upper() + other[1:]
    return sentence[: match.start()] + other + sentence[match.end() :]


def _lines(name: str) -> list[str]:
    content = packaged_text(f"evaluation/near_misses/words/{name}")
    return [line for line in content.splitlines() if line.strip() and not line.startswith("#")]


_patterns: dict[int, re.Pattern[str]] = {}


def _pattern(table: Table) -> re.Pattern[str]:
    """Of any of the table's words, the longest first. The tables live as long as the process."""
    if id(table) not in _patterns:
        words = "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True))
        _patterns[id(table)] = re.compile(rf"(?<![\w'-])({words})(?![\w'-])", re.IGNORECASE)
    return _patterns[id(table)]
