"""What the guard knows of a language: lists of words in plain text files, and what they make of a word."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from wordsens.errors import require_choice

LANGUAGES = ("en", "de")
_PREFIXES = {
    "en": ("un", "dis", "in", "im", "ir", "il", "non", "mis", "de"),
    "de": ("un", "in", "ir", "ab", "ent", "miss"),
}
"""Those that turn a word into its opposite."""

_ENDINGS = {
    "en": (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")),
    "de": (("ungen", "ung"), ("test", ""), ("tet", ""), ("ten", ""), ("te", ""), ("em", ""), ("en", ""), ("er", ""),
           ("es", ""), ("st", ""), ("e", ""), ("t", ""), ("n", ""), ("s", "")),
}  # fmt: skip
"""Endings of inflection and what stands for them; the first that leaves three letters is taken off."""

_SPELLINGS = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"(?<=\w\w\w)our(?=$|s|ed|ing|ab|it|hood|y)", "or"),
        (r"(?<=\w\w)is(?=e$|es|ed|er|ing|ation)", "iz"),
        (r"(?<=\w)ys(?=e$|es|ed|er|ing)", "yz"),
        (r"(?<=[bt])re(?=s?$)", "er"),
        (r"(?<=\w\w)ogue(?=s?$)", "og"),
        (r"(?<=\wen)ce(?=s?$|d$)", "se"),
    )
)
"""British spellings and the American ones that both are read as."""

_NOT_PLURAL = ("ss", "us", "is")


@dataclass(frozen=True)
class Choice:
    """A place among words that exclude each other: the kind of the change, the group, and the class within it."""

    kind: str
    group: int
    member: int


class Language:
    """The lists of one language; see the files of the folder `guard/en` and their first lines.

    Args:
        name: "en" or "de".
    """

    def __init__(self, name: str):
        self.name = require_choice("language", name, LANGUAGES)
        self.capitals_are_names = name != "de"
        self._prefixes, self._endings = _PREFIXES[name], _ENDINGS[name]
        self._irregular = {form: base for base, forms in self._pairs("irregular", ":") for form in forms.split()}
        self.contractions, self._clitics = {}, []
        for written, read in self._pairs("contractions"):
            if written.startswith("'") or written == "n't":
                self._clitics.append((written, tuple(read.split())))
            else:
                self.contractions[written] = tuple(read.split())
        self.numbers = dict(self._pairs("numbers"))
        self.fractions = {name: 1 / float(parts) for name, parts in self._pairs("fractions")}
        self.units: dict[str, tuple[str, float]] = {}
        for head, names in self._pairs("units", ":"):
            dimension, factor = head.split()
            self.units |= {unit: (dimension, float(factor)) for unit in names.split()}
        phrases = {tuple(left.split()): tuple(right.split()) for left, right in self._pairs("phrases")}
        self.synonyms = self._groups(phrases)
        self.choices = self._choices(phrases)
        self.phrases: dict[tuple[str, ...], list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for left in sorted(phrases, key=len, reverse=True):
            self.phrases.setdefault(left[:2], []).append((left, phrases[left]))
        self.fillers = frozenset(self.key(word) for line in self._lines("fillers") for word in line.split())
        self.markers = frozenset(word for line in self._lines("markers") for word in line.split())
        self.months = [name for name, _ in sorted(self._pairs("months"), key=lambda pair: -len(pair[0]))]
        self.month_numbers = {name: int(number) for name, number in self._pairs("months")}
        self.opposites: dict[str, set[str]] = {}
        for left, right in self._pairs("antonyms"):
            for other in right.split(","):
                one, two = self.key(left), self.key(other.strip())
                self.opposites.setdefault(one, set()).add(two)
                self.opposites.setdefault(two, set()).add(one)

    def key(self, word: str) -> str:
        """What words that differ in inflection or spelling have in common: 'cancelled', 'cancel' and 'canceled'."""
        found = self._keys.get(word)
        if found is None:
            found = self._keys[word] = self._stem(self._irregular.get(word, word))
        return found

    _keys: dict[str, str] = {}  # noqa: RUF012 - replaced for each language by `language`

    def _stem(self, word: str) -> str:
        if self.name == "en":
            for pattern, spelling in _SPELLINGS:
                word = pattern.sub(spelling, word)
        for ending, instead in self._endings:
            if word.endswith(ending) and len(word) - len(ending) >= 3 - len(instead) and len(word) > 3:
                if ending == "s" and word.endswith(_NOT_PLURAL):
                    break
                word = word[: -len(ending)] + instead
                break
        if len(word) > 3 and word[-1] == "e":
            word = word[:-1]
        if len(word) > 2 and word[-1] == word[-2]:
            word = word[:-1]
        return word

    def expanded(self, word: str) -> tuple[str, ...]:
        """The words that a contraction stands for; the word itself if it is none."""
        whole = self.contractions.get(word)
        if whole is not None:
            return whole
        if "'" not in word:
            return (word,)
        for ending, read in self._clitics:
            if word.endswith(ending) and len(word) > len(ending):
                return (word[: -len(ending)], *read)
        return (word.removesuffix("'s").removesuffix("'"),)

    def synonymous(self, one: str, other: str) -> bool:
        return not self.synonyms.get(one, _NONE).isdisjoint(self.synonyms.get(other, _NONE))

    def opposite(self, one: str, other: str) -> bool:
        """Whether two keys are antonyms: by the list, by a prefix (able, unable), or by -ful and -less."""
        if other in self.opposites.get(one, _NONE):
            return True
        short, long = sorted((one, other), key=len)
        if len(short) > 2 and long.endswith(short) and long[: -len(short)].rstrip("-") in self._prefixes:
            return True
        stem, _, ending = one.rpartition("ful")
        return not ending and bool(stem) and other in (stem + "les", stem + "less")

    def excluded(self, one: str, other: str) -> str | None:
        """The kind of the change where one word excludes the other; "" where they mean the same; else None."""
        for first in self.choices.get(one, ()):
            for second in self.choices.get(other, ()):
                if first.group == second.group:
                    return "" if first.member == second.member else first.kind
        return None

    def _groups(self, phrases: dict[tuple[str, ...], tuple[str, ...]]) -> dict[str, frozenset[int]]:
        result: dict[str, set[int]] = {}
        for number, line in enumerate(self._lines("synonyms")):
            words = [word.strip() for word in line.split(",")]
            for word in self._single(words, phrases):
                result.setdefault(self.key(word), set()).add(number)
        return {key: frozenset(numbers) for key, numbers in result.items()}

    def _choices(self, phrases: dict[tuple[str, ...], tuple[str, ...]]) -> dict[str, tuple[Choice, ...]]:
        result: dict[str, list[Choice]] = {}
        for number, (kind, listed) in enumerate(self._pairs("exclusive", ":")):
            for member, words in enumerate(listed.split(",")):
                for word in self._single([word.strip() for word in words.split("/")], phrases):
                    result.setdefault(self.key(word), []).append(Choice(kind, number, member))
        return {key: tuple(choices) for key, choices in result.items()}

    def _single(self, words: list[str], phrases: dict[tuple[str, ...], tuple[str, ...]]) -> list[str]:
        """The words of a group; those of several words become phrases that are read as the first, joined by hyphens
        where the group has no single word."""
        single = [word for word in words if " " not in word]
        for word in words:
            if " " in word:
                if not single:
                    single.append(word.replace(" ", "-"))
                phrases.setdefault(tuple(word.split()), (single[0],))
        return single

    def _lines(self, name: str) -> Iterator[str]:
        text = files(__package__).joinpath(self.name, f"{name}.txt").read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                yield unicodedata.normalize("NFC", line.strip())

    def _pairs(self, name: str, sign: str = "=") -> Iterator[tuple[str, str]]:
        for line in self._lines(name):
            left, _, right = line.partition(sign)
            yield left.strip(), right.strip()


_NONE: frozenset = frozenset()


@cache
def language(name: str) -> Language:
    """The language of that name, read once."""
    made = Language.__new__(Language)
    made._keys = {}
    made.__init__(name)
    return made
