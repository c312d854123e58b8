"""What the guard knows of English: simplemma's dictionary and the lists of the folder
`words/guard`, and what they say of a word or of two."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache, lru_cache

from simplemma.strategies import DictionaryLookupStrategy

from wordsens.files import packaged_text

# What every word of negation is read as.
NEGATION = "not"

# The words of a phrase, and what it is read as.
Phrase = tuple[tuple[str, ...], tuple[str, ...]]


class Lexicon:
    """The dictionary and the lists; the first lines of each file say what it holds.

    Attributes:
        grammar: for each part of it, its words, each with the first of those that "/" joins.
        fillers: words that say nothing, by the place where they do not.
        numeric: words with which a quantity may begin.
        units: dimension, factor and offset of each unit.
        phrases: by their first two words, the longest first.
        listed: the keys of all words that a list has, which are no names.
    """

    def __init__(self) -> None:
        self._dictionary = DictionaryLookupStrategy()
        self._groups = {
            part: [group.split("/") for group in said.split()]
            for part, said in self._pairs("grammar", ":")
        }
        self.grammar = {
            part: {word: group[0] for group in groups for word in group}
            for part, groups in self._groups.items()
        }
        self.fillers = {place: said.split() for place, said in self._pairs("fillers", ":")}
        self._spellings = [
            (re.compile(pattern), instead) for pattern, instead in self._pairs("spellings", " = ")
        ]
        self._substances = tuple(self.grammar["substances"])
        self.contractions = {
            written: tuple(read.split()) for written, read in self._pairs("contractions")
        }
        self.numbers = {
            word: (said.rstrip("0123456789."), float(said.lstrip("#x")))
            for word, said in self._pairs("numbers")
        }
        self.fractions = {word: 1 / float(parts) for word, parts in self._pairs("fractions")}
        self.units: dict[str, tuple[str, float, float]] = {}
        for head, names in self._pairs("units", ":"):
            dimension, factor, *offset = head.split()
            unit = dimension, float(Fraction(factor)), float((offset or [0])[0])
            self.units |= dict.fromkeys(names.split(), unit)
        self.numeric = {
            *(word for word, unit in self.units.items() if unit[0] in self.grammar["currencies"]),
            *self.numbers,
            *self.fractions,
        }
        self.months = {
            word: number
            for number, names in enumerate(self._groups["months"], start=1)
            for word in names
        }
        read_as = {
            self._expanded(left): self._expanded(right) for left, right in self._pairs("phrases")
        }
        # Each word's places: the kind of the change, the group, and the class within it, which
        # excludes the others; the words of one class say the same.
        self._choices: dict[str, list[tuple[str, int, int]]] = {}
        synonyms = [("", line.replace(", ", "/")) for line in self._lines("synonyms")]
        for group, (kind, listed) in enumerate([*synonyms, *self._pairs("exclusive", ":")]):
            for member, words in enumerate(listed.split(", ")):
                for word in self._single(words.split("/"), read_as):
                    self._choices.setdefault(self.key(word), []).append((kind, group, member))
        self.opposites = {
            frozenset((self.key(left), self.key(other.strip())))
            for left, right in self._pairs("antonyms")
            for other in right.split(",")
        }
        self.listed = {*self._choices}.union(*self.opposites)
        self.phrases: dict[tuple[str, ...], list[Phrase]] = {}
        for words in sorted(read_as, key=len, reverse=True):
            self.phrases.setdefault(words[:2], []).append((words, read_as[words]))
        for name in ("key", "spelt", "form", "expanded", "relation"):
            setattr(self, name, lru_cache(maxsize=100_000)(getattr(self, name)))

    def linked(
        self,
        part: str,
        one: str,
        other: str,
    ) -> bool:
        """Whether "/" joins two words in a part of the grammar."""
        return any(one in group and other in group for group in self._groups[part])

    def key(self, word: str) -> str:
        """What words that differ in inflection or spelling have in common: the lemma of 'cancelled'
        and 'canceled'. Comparatives and function words have their own."""
        if word in self.grammar["light"] or word in self.grammar["own"]:
            return word
        word = self.spelt(word)
        lemma = (self._lemma(word) or word).lower()
        if word.endswith(("er", "est")) and lemma != word:
            return word
        return self.grammar["spellings"].get(lemma, lemma)

    def spelt(self, word: str) -> str:
        """The American spelling of a word, where the dictionary has it."""
        for pattern, instead in self._spellings:
            if (other := pattern.sub(instead, word)) != word and self._lemma(other):
                return self.spelt(other)
        return self.grammar["spellings"].get(word, word)

    def is_word(self, word: str) -> bool:
        """Whether the dictionary, or the larger one of names and rare words, has a word."""
        return self._lemma(word) is not None or word in _more_words()

    def expanded(self, word: str) -> tuple[str, ...]:
        """The words that a contraction stands for; the word itself if it is none."""
        if (whole := self.contractions.get(word)) is not None:
            return whole
        if word.endswith("nt") and word[:-2] in self.grammar["auxiliaries"]:
            return (word[:-2], NEGATION)  # neednt
        for clitic in self.grammar["clitics"]:
            if word.endswith(clitic) and len(word) > len(clitic) and "'" in word:
                return (*self.expanded(word.removesuffix(clitic)), *self.contractions[clitic])
        return (word,)

    def relation(self, one: str, other: str) -> str | None:
        """Of two keys: "same", the kind of the change, or None where the lists say nothing."""
        kinds = {
            kind if member != other_member else "same"
            for kind, group, member in self._choices.get(one, ())
            for _, other_group, other_member in self._choices.get(other, ())
            if group == other_group
        }
        if {one, other} in self.opposites:
            return min(kinds - {"same"}, default="antonym")
        if "same" in kinds:
            return "same"
        return min(kinds, default="antonym" if self.complementary(one, other) else None)

    def complementary(self, one: str, other: str) -> bool:
        """Whether a prefix or a suffix makes one word the opposite of the other: able, unable;
        harmful, harmless."""
        short, long = sorted((one, other), key=len)
        if len(short) > 2 and long.removesuffix(short) in self.grammar["prefixes"]:
            return self.is_word(short) and self.is_word(long)
        return any(
            one.endswith(a) and other.endswith(b) and one.removesuffix(a) == other.removesuffix(b)
            for pair in self._groups["suffixes"]
            for a, b in (pair, pair[::-1])
        )

    def is_slip(self, slip: str, word: str) -> bool:
        """Whether a string that is no word looks like a slip of a word that is no name: two letters
        exchanged, one doubled, one left out before the last, or another vowel."""
        differ = (k for k, (a, b) in enumerate(zip(slip, word, strict=False)) if a != b)
        at = next(differ, min(len(slip), len(word)))
        if not at or len(word) < 3 or slip == word or abs(len(slip) - len(word)) > 1:
            return False
        rest = slip[at + 1 :] == word[at + 1 :]
        alike = {
            0: slip[at : at + 2] == word[at : at + 2][::-1] and slip[at + 2 :] == word[at + 2 :],
            1: slip[at : at + 1] == slip[at - 1] and slip[at + 1 :] == word[at:],
            -1: 3 < len(slip) > at and slip[at:] == word[at + 1 :],
        }
        vowels = rest and {*slip[at : at + 1], *word[at : at + 1]} <= {*"aeiou"}
        vowels = vowels and len(slip) == len(word) > 3
        return (
            (alike[len(slip) - len(word)] or vowels)
            and not self.is_word(slip)
            and (self._lemma(word) or "").islower()
            and word in _more_words()
            and not all(w.removesuffix("s").endswith(self._substances) for w in (slip, word))
        )

    def form(self, word: str) -> str:
        """The inflection of a word: "base", "s", "ing" or "past"."""
        spelt, key = self.spelt(word), self.key(word)
        if key in (word, spelt):
            return "base"
        if spelt.endswith("ing"):
            return "ing"
        return "s" if spelt in (f"{key}s", f"{key}es", f"{key[:-1]}ies") else "past"

    def kind(self, key: object) -> str | None:
        """The kind of the words that exclude this one, if any does."""
        return next((kind for kind, *_ in self._choices.get(str(key), ()) if kind), None)

    def _lemma(self, word: str) -> str | None:
        return self._dictionary.get_lemma(word, "en") if word.isalpha() else None

    def _expanded(self, phrase: str) -> tuple[str, ...]:
        return tuple(read for word in phrase.split() for read in self.expanded(word))

    def _single(
        self, listed: Iterable[str], phrases: dict[tuple[str, ...], tuple[str, ...]]
    ) -> list[str]:
        """The words of a group; those of several words become phrases that are read as the first
        single one, or, where the group has none, as the first of them joined by hyphens."""
        words = [word.strip() for word in listed]
        single = [word for word in words if " " not in word] or [words[0].replace(" ", "-")]
        for word in words:
            if " " in word:
                phrases.setdefault(self._expanded(word), (single[0],))
        return single

    def _lines(self, name: str) -> Iterator[str]:
        for line in packaged_text(f"evaluation/words/guard/{name}.txt").splitlines():
            if line.strip() and not line.startswith("# "):
                yield unicodedata.normalize("NFKC", line.strip())

    def _pairs(self, name: str, sign: str = "=") -> Iterator[tuple[str, str]]:
        for line in self._lines(name):
            left, _, right = line.partition(sign)
            yield left.strip(), right.strip()


@cache
def _more_words() -> frozenset[str]:
    """Names and rare words; read where a slip is suspected only, which takes a tenth of a
    second."""
    from spellchecker import SpellChecker

    return frozenset(SpellChecker(language="en"))


@cache
def english() -> Lexicon:
    """The lists, read once."""
    return Lexicon()
