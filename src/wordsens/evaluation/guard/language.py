"""What the guard knows of English: the lists of the folder `words/guard`, and what they say of a
word or of two."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from wordsens.files import packaged_text

NEGATION = "not"
"""What every word of negation is read as."""

_NO_GROUPS: frozenset[int] = frozenset()


class WordEntry(NamedTuple):
    """What the lists say of a word.

    Attributes:
        key: equal for words that differ in inflection or spelling only.
        light: an article, auxiliary, preposition or the like, which may come and go.
        marker: a preposition or conjunction, which says what part the next words play.
        listed: a synonym, antonym or one of a group is known, so it is no name.
    """

    key: str
    light: bool
    marker: bool
    listed: bool


class Choice(NamedTuple):
    """A place among words that exclude each other: the kind of the change, the group, and the class
    within it."""

    kind: str
    group: int
    member: int


class Language:
    """The lists; the first lines of each file say what it holds."""

    def __init__(self) -> None:
        self.grammar = {role: said.split() for role, said in self._pairs("grammar", ":")}
        self.be = frozenset(self.grammar["be"])
        persons = ("first-person", "second-person", "third-person")
        self.persons = {word: person for person in persons for word in self.grammar[person]}
        self.questions, self.parts, self.links, self.restrictions, self.limits, self.exclusion = (
            {word: said for said in self.grammar[role] for word in said.split("/")}
            for role in ("questions", "parts", "links", "restrictions", "limits", "exclusion")
        )
        self.places = {word: place for place in ("near", "far") for word in self.grammar[place]}
        self.joining = frozenset(self.grammar["joining"])
        self._spellings = [
            (re.compile(pattern), instead) for pattern, instead in self._pairs("spellings", " = ")
        ]
        self._irregular = {
            form: base for base, forms in self._pairs("irregular", ":") for form in forms.split()
        }
        self.infinitive_or_gerund = {
            self.key(verb) for verb in self.grammar.get("infinitive-or-gerund", ())
        }
        """Keys of verbs that mean one thing with an infinitive and another with a gerund."""
        self.contractions = {
            written: tuple(read.split()) for written, read in self._pairs("contractions")
        }
        self._clitics = [
            written for written in self.contractions if written.startswith("'") or written == "n't"
        ]
        self.numbers = {
            word: (said.rstrip("0123456789."), float(said.lstrip("#x")))
            for word, said in self._pairs("numbers")
        }
        self.fractions = {word: 1 / float(parts) for word, parts in self._pairs("fractions")}
        self.units: dict[str, tuple[str, float]] = {}
        for head, names in self._pairs("units", ":"):
            dimension, factor = head.split()
            self.units |= dict.fromkeys(names.split(), (dimension, float(factor)))
        self.clock = {tuple(words.split()): what for words, what in self._pairs("clock")}
        currencies = [
            unit
            for unit, (dimension, _) in self.units.items()
            if dimension in self.grammar["currencies"]
        ]
        self.numeric = {
            *self.numbers,
            *self.fractions,
            *(words[0] for words in self.clock),
            *currencies,
        }
        """Words with which a quantity or a time may begin."""
        self.months = {word: int(number) for word, number in self._pairs("months")}
        self._phrases = {
            self._expanded(left): self._expanded(right) for left, right in self._pairs("phrases")
        }
        self._fillers = {word for line in self._lines("fillers") for word in line.split()}
        self._markers = {word for line in self._lines("markers") for word in line.split()}
        groups = [line.split() for line in self._lines("confusables")]
        self._confusable = _both_ways(
            (a, b) for group in groups for a in group for b in group if a != b
        )
        self._synonyms: dict[str, set[int]] = {}
        for group, line in enumerate(self._lines("synonyms")):
            for word in self._single(line.split(",")):
                self._synonyms.setdefault(self.key(word), set()).add(group)
        self._choices: dict[str, list[Choice]] = {}
        for group, (kind, listed) in enumerate(self._pairs("exclusive", ":")):
            for member, words in enumerate(listed.split(",")):
                for word in self._single(words.split("/")):
                    self._choices.setdefault(self.key(word), []).append(Choice(kind, group, member))
        self.opposites = _both_ways(
            (self.key(left), self.key(other.strip()))
            for left, right in self._pairs("antonyms")
            for other in right.split(",")
        )
        self.complements = _both_ways(
            (self.key(word), self.key(other))
            for word, *others in (said.split("/") for said in self.grammar["complements"])
            for other in others
        )
        self.phrases: dict[tuple[str, ...], list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for left in sorted(self._phrases, key=len, reverse=True):
            self.phrases.setdefault(left[:2], []).append((left, self._phrases[left]))
        self.word = lru_cache(maxsize=100_000)(self._word)

    def key(self, word: str) -> str:
        """What words that differ in inflection or spelling have in common: 'cancelled', 'cancel'
        and 'canceled'."""
        word = self._irregular.get(word, word)
        if self._irregular.get(word) == word:
            return word
        word = self.spelt(word)
        for rule in self.grammar["endings"]:
            ending, _, instead = rule.partition(">")
            if word.endswith(ending) and len(word) - len(ending) + len(instead) >= 3 < len(word):
                if not word.endswith(tuple(self.grammar["no-endings"])):
                    word = word.removesuffix(ending) + instead
                break
        if len(word) > 3:
            word = word.removesuffix("e")
        return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word

    def spelt(self, word: str) -> str:
        """The American spelling of a word."""
        for pattern, instead in self._spellings:
            word = pattern.sub(instead, word)
        return word

    def _word(self, word: str) -> WordEntry:
        key = self.key(word)
        listed = key in self.opposites or key in self._choices
        light = word in self._fillers or (word in self._markers and not listed)
        return WordEntry(
            key,
            light,
            word in self._markers,
            listed or key in self._synonyms or word in self.months,
        )

    def expanded(self, word: str) -> tuple[str, ...]:
        """The words that a contraction stands for; the word itself if it is none."""
        whole = self.contractions.get(word)
        if whole is not None:
            return whole
        if "'" not in word:
            return (word,)
        for clitic in self._clitics:
            if word.endswith(clitic) and len(word) > len(clitic):
                return (word.removesuffix(clitic), *self.contractions[clitic])
        word = word.removesuffix("'s")
        return self.contractions.get(word, (word,))

    def _expanded(self, phrase: str) -> tuple[str, ...]:
        return tuple(read for word in phrase.split() for read in self.expanded(word))

    @lru_cache(maxsize=100_000)  # noqa: B019 - a language lives as long as the process
    def relation(self, one: str, other: str) -> str | None:
        """Of two keys: "same", the kind of the change, or None where the lists say nothing."""
        if one == other:
            return "same"
        kinds = {
            first.kind if first.member != second.member else "same"
            for first in self._choices.get(one, ())
            for second in self._choices.get(other, ())
            if first.group == second.group
        }
        if other in self.opposites.get(one, ()):
            return min(kinds - {"same"}, default="antonym")
        if not self._synonyms.get(one, _NO_GROUPS).isdisjoint(
            self._synonyms.get(other, _NO_GROUPS)
        ):
            return "same"
        if kinds:
            return "same" if "same" in kinds else min(kinds)
        return "antonym" if self.complementary(one, other) else None

    def complementary(self, one: str, other: str) -> bool:
        """Whether a prefix or a suffix makes one key the opposite of the other: able, unable;
        harmful, harmless."""
        short, long = sorted((one, other), key=len)
        if (
            len(short) > 2
            and long.endswith(short)
            and long.removesuffix(short) in self.grammar["prefixes"]
        ):
            return True
        return any(
            one.endswith(a) and other.endswith(b) and one.removesuffix(a) == other.removesuffix(b)
            for pair in self.grammar["suffixes"]
            for a, b in (pair.split("/"), pair.split("/")[::-1])
        )

    def misspelt(self, one: str, other: str) -> bool:
        """Whether one word is a slip of the other: two letters exchanged or doubled in words of
        five letters and more, one left out or another vowel in longer ones; not at the ends, where
        inflection makes other words."""
        if (
            min(len(one), len(other)) < 5
            or max(len(one), len(other)) > 30
            or other in self._confusable.get(one, ())
        ):
            return False
        if one[0] != other[0] or one[-1] != other[-1] or not (one + other).isascii():
            return False
        short, long = sorted((_undoubled(one), _undoubled(other)), key=len)
        at = next(
            (k for k, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
        )
        if len(short) == len(long) and short[at : at + 2] == long[at : at + 2][::-1]:
            return short[at + 2 :] == long[at + 2 :]
        if min(len(one), len(other)) < 7:
            return False
        if len(short) < len(long):
            return short[at:] == long[at + 1 :]
        return short[at] in "aeiou" and long[at] in "aeiou" and short[at + 1 :] == long[at + 1 :]

    def past(self, word: str) -> bool:
        """Whether a word may be the past of a verb."""
        return word.endswith("ed") or self._irregular.get(word, word) != word

    def kind(self, key: str) -> str | None:
        """The kind of the words that exclude this one, if any does."""
        return self._choices[key][0].kind if key in self._choices else None

    def _single(self, listed: Iterable[str]) -> list[str]:
        """The words of a group; those of several words become phrases that are read as the first
        single one, or, where the group has none, as the first of them joined by hyphens."""
        words = [word.strip() for word in listed]
        single = [word for word in words if " " not in word] or [words[0].replace(" ", "-")]
        for word in words:
            if " " in word:
                self._phrases.setdefault(self._expanded(word), (single[0],))
        return single

    def _lines(self, name: str) -> Iterator[str]:
        for line in packaged_text(f"evaluation/words/guard/{name}.txt").splitlines():
            if line.strip() and not line.startswith("#"):
                yield unicodedata.normalize("NFC", line.strip())

    def _pairs(self, name: str, sign: str = "=") -> Iterator[tuple[str, str]]:
        for line in self._lines(name):
            left, _, right = line.partition(sign)
            yield left.strip(), right.strip()


def _both_ways(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    partners: dict[str, set[str]] = {}
    for one, other in pairs:
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    return partners


def _undoubled(word: str) -> str:
    return "".join(
        letter for letter, before in zip(word, " " + word, strict=False) if letter != before
    )


@cache
def english() -> Language:
    """The lists, read once."""
    return Language()
