"""English words that can replace one another, compiled for this package: the lists of the folder
`words`."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

from wordsens.files import packaged_text

# From a word or phrase in lower case to what can replace it.
Table = Mapping[str, Sequence[str]]

# Verbs behind which a "not" makes the negation of a statement.
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

# Of these, the ones that open a question: "Can I not ...?".
ASKING = ("can", "could", "will", "would", "should", "must", "may")

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

# Verbs whose "A to B" has a direction.
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


def lines_of(name: str) -> list[str]:
    """The lines of a file of the folder `words`, without comments."""
    content = packaged_text(f"evaluation/words/{name}")
    return [
        line.strip() for line in content.splitlines() if line.strip() and not line.startswith("#")
    ]


@cache
def sections(name: str) -> list[tuple[str, str]]:
    """The groups of words of a file, each with the heading above it."""
    parts = re.split(r"(?:^| )(\w+):", " ".join(lines_of(name)))[1:]
    return [
        (heading, group.strip())
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
        for group in body.strip(" ,").split(",")
    ]


def inflected(part: str, word: str) -> dict[str, str]:
    """The forms of a word of that part of speech, by name.

    >>> list(inflected("verb", "deny").values())
    ['deny', 'denies', 'denied', 'denied', 'denying']
    """
    if part not in ("noun", "verb"):
        return {part: word}
    y_turns = word.endswith("y") and word[-2] not in "aeiou"
    hisses = word.endswith(("s", "sh", "ch", "x", "z"))
    with_s = word[:-1] + "ies" if y_turns else word + ("es" if hisses else "s")
    if part == "noun":
        return {"singular": word, "plural": _irregular("plural").get(word, [with_s])[0]}
    doubles = word in _irregular("double") or re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", word)
    stem = word + word[-1] if doubles else word.removesuffix("e")
    past = word[:-1] + "ied" if y_turns else stem + "ed"
    pasts = _irregular("past").get(word, [past])
    ing = word[:-2] + "ying" if word.endswith("ie") else stem + "ing"
    return {
        "base": word,
        "third": with_s,
        "past": pasts[0],
        "participle": pasts[-1],
        "ing": ing,
    }


@cache
def _irregular(heading: str) -> dict[str, list[str]]:
    """The irregular forms under a heading, by word."""
    listed = [group.split() for part, group in sections("irregular.txt") if part == heading]
    return {word: forms for word, *forms in listed}


def _opposites(heading: str) -> list[tuple[str, str]]:
    """The pairs under the heading, in all their forms."""
    pairs = [pair.split("/") for part, pair in sections("near_misses.txt") if part == heading]
    return [
        forms
        for pair in pairs
        for forms in zip(*(inflected(heading, word).values() for word in pair), strict=True)
    ]


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


def _exchanged(heading: str) -> dict[str, str]:
    """Both directions of every pair under the heading; the first that names a word decides what
    replaces it."""
    return {word: others[0] for word, others in groups(_opposites(heading)).items()}


ANTONYMS = {**_exchanged("verb"), **_exchanged("pairs"), **_exchanged("phrases")}
QUANTITIES = _exchanged("quantities")
TIMES = _exchanged("times")


@cache
def antonyms() -> Table:
    """The antonyms of the near misses, and those of antonyms.txt."""
    pairs = " ".join(lines_of("antonyms.txt")).split(",")
    # Phrases have a slash between them, words a blank.
    table = groups(pair.strip().split("/" if "/" in pair else None) for pair in pairs)
    return table | {
        word: tuple(dict.fromkeys((other, *table.get(word, ()))))
        for word, other in ANTONYMS.items()
    }


@cache
def synonyms() -> Table:
    """The groups of synonyms.txt."""
    return groups(line.split(", ") for line in lines_of("synonyms.txt"))


@cache
def negations() -> Table:
    """Words whose exchange negates."""
    return groups(_opposites("negations"))


def exchange(sentence: str, table: Table, chance: random.Random) -> str | None:
    """The sentence with one word or phrase of the table for another, in its case; None where it
    holds none.

    >>> exchange("The lift is open.", {"open": ("shut",)}, random.Random(0))
    'The lift is shut.'
    """
    matches = list(pattern_of(tuple(table)).finditer(sentence))
    if not matches:
        return None
    match = chance.choice(matches)
    other = chance.choice(table[match[0].lower()]).replace("no-one", "no one")
    return sentence[: match.start()] + in_case(match[0], other) + sentence[match.end() :]


def in_case(word: str, other: str) -> str:
    """The other word with a capital where the word has one."""
    return other[0].upper() + other[1:] if word[0].isupper() else other


@lru_cache(maxsize=16)
def pattern_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the words, the longest first."""
    return re.compile(rf"(?<![\w'-])({any_of(words)})(?![\w'-])", re.IGNORECASE)


def any_of(words: Iterable[str]) -> str:
    """The alternatives of a pattern, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
