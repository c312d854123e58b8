"""English words that may stand for one another, compiled for this package: the lists of the folder
`words`."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

from wordsens.files import packaged_text

Table = Mapping[str, Sequence[str]]
"""From a word or phrase in lower case to what may stand in its place."""

AUXILIARIES = (
    "is",
    "are",
    "was",
    "were",
    "can",
    "could",
    "will",
    "would",
    "should",
    "must",
    "may",
    "might",
)
"""Verbs behind which a "not" makes the negation of a statement."""

ASKING = ("can", "could", "will", "would", "should", "must", "may")
"""Of these, the ones that open a question: "Can I not ...?"."""

PRONOUNS = ("I", "you", "we", "they", "he", "she", "it")

NEGATED = {
    "isn't": "is",
    "aren't": "are",
    "wasn't": "was",
    "weren't": "were",
    "can't": "can",
    "cannot": "can",
    "couldn't": "could",
    "won't": "will",
    "wouldn't": "would",
    "shouldn't": "should",
    "mustn't": "must",
    "don't": "do",
    "doesn't": "does",
    "didn't": "did",
    "hasn't": "has",
    "haven't": "have",
    "hadn't": "had",
}

MOVING_VERBS = (
    "convert",
    "migrate",
    "switch",
    "move",
    "upgrade",
    "change",
    "translate",
    "transfer",
    "copy",
    "sync",
)
"""Verbs whose "A to B" has a direction."""


def lines_of(name: str) -> list[str]:
    """The lines of a file of the folder `words`, without comments."""
    content = packaged_text(f"evaluation/words/{name}")
    return [
        line.strip() for line in content.splitlines() if line.strip() and not line.startswith("#")
    ]


@cache
def _of_near_misses() -> dict[str, list[tuple[str, str]]]:
    """The pairs of each heading of near_misses.txt."""
    by_heading = re.split(r"(\w+):", " ".join(lines_of("near_misses.txt")))[1:]
    pairs = {}
    for heading, listed in zip(by_heading[::2], by_heading[1::2], strict=True):
        pairs[heading] = [
            (one, other) for one, other in (pair.strip().split("/") for pair in listed.split(","))
        ]
    return pairs


def _exchanged(*headings: str) -> dict[str, str]:
    """Both directions of every listed pair; the first that names a word decides what it turns
    into."""
    opposites: dict[str, str] = {}
    for heading in headings:
        for first, second in _of_near_misses()[heading]:
            forms = (
                zip(_forms(first), _forms(second), strict=True)
                if heading == "verbs"
                else [(first, second)]
            )
            for one, other in forms:
                opposites.setdefault(one, other)
                opposites.setdefault(other, one)
    return opposites


def _forms(verb: str) -> list[str]:
    """Base, third person, past and -ing form of a regular verb, and of "lend"."""
    if verb == "lend":
        return ["lend", "lends", "lent", "lending"]
    stem = verb.removesuffix("e")
    if verb.endswith("y"):
        return [verb, stem[:-1] + "ies", stem[:-1] + "ied", verb + "ing"]
    stem = {"cancel": "cancell"}.get(verb, stem)
    return [verb, verb + ("es" if verb.endswith(("s", "sh")) else "s"), stem + "ed", stem + "ing"]


ANTONYMS = {**_exchanged("verbs"), **_exchanged("pairs"), **_exchanged("phrases")}
QUANTITIES = _exchanged("quantities")
TIMES = _exchanged("times")


def groups(listed: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """From every word of a group to the others of it; a word in several groups has the others of
    all.

    >>> groups([("on", "off"), ("at least", "at most")])["at least"]
    ('at most',)
    """
    table: dict[str, list[str]] = {}
    for group in listed:
        for word in group:
            table.setdefault(word, []).extend(other for other in group if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in table.items()}


@cache
def antonyms() -> Table:
    """The antonyms of the near misses, and those of antonyms.txt."""
    further = groups(pair.split() for pair in " ".join(lines_of("antonyms.txt")).split(","))
    first = {word: (other,) for word, other in ANTONYMS.items()}
    return {
        word: tuple(dict.fromkeys((*first.get(word, ()), *further.get(word, ()))))
        for word in {**first, **further}
    }


@cache
def synonyms() -> Table:
    """The groups of synonyms.txt."""
    return groups(line.split(", ") for line in lines_of("synonyms.txt"))


@cache
def negations() -> Table:
    """Words whose exchange negates."""
    return groups(_of_near_misses()["negations"])


def exchange(sentence: str, table: Table, chance: random.Random) -> str | None:
    """The sentence with one word or phrase of the table for another, in its case; None where it
    holds none.

    >>> exchange("The lift is open.", {"open": ("shut",)}, random.Random(0))
    'The lift is shut.'
    """
    matches = list(_pattern(tuple(table)).finditer(sentence))
    if not matches:
        return None
    match = chance.choice(matches)
    other = chance.choice(table[match[0].lower()]).replace("no-one", "no one")
    if match[0][0].isupper():
        other = other[0].upper() + other[1:]
    return sentence[: match.start()] + other + sentence[match.end() :]


@lru_cache(maxsize=8)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Of any of the words, the longest first."""
    listed = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![\w'-])({listed})(?![\w'-])", re.IGNORECASE)
