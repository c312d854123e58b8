"""Words that flip labels, by text, by class and by word."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from wordsens.results import Look, Result

_NAMED = 5
"""Words that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class FlipWord:
    """One word of one text, and what becomes of the text's label.

    Attributes:
        text: the text's number.
        label: the class of the text as it is.
        word, start, stop: the word and its place.
        removal: the change of the class's probability without the word: one change.
        removed_to: the class without it; None where it stays.
        swap, swapped_for: the largest fall of the probability by one of `tried` other words, among those that flip
            the label where any does, and that word; None where none was tried.
        swapped_to: the class with that word; None where it stays.
        tried: other words that were tried.
        radius: the smallest found at which the word's rows flip the label, as a share of their own length: attained,
            so an upper bound; None where none up to 1 was found, or it was not asked.
    """

    text: int
    label: str
    word: str
    start: int
    stop: int
    removal: float
    removed_to: str | None
    swap: float | None = None
    swapped_for: str | None = None
    swapped_to: str | None = None
    tried: int = 0
    radius: float | None = None


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share of `count` with its 95 % interval (Clopper and Pearson 1934)."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, kw_only=True)
class ClassFlips:
    """The texts of one class.

    Attributes:
        label: the class that the model gives them.
        removal, swap: the share of texts that some word's removal, and some tried swap, puts into another class.
        radius: the share of the texts whose words were moved as vectors that one flips within its own length; None
            where none were.
        median_radius: the median over those texts of their smallest radius; None where fewer than half flip.
    """

    label: str
    removal: Share
    swap: Share | None
    radius: Share | None
    median_radius: float | None


@dataclass(frozen=True, kw_only=True)
class WordFlips:
    """One word in the texts of one class.

    Attributes:
        word, label: which.
        share: of its texts that its removal puts into another class.
        usual: the mean over those texts of the share of their other words that do so.
        more: whether the interval at the level .05 over all words' number lies above `usual`.
    """

    word: str
    label: str
    share: Share
    usual: float
    more: bool


@dataclass(frozen=True, eq=False, repr=False)
class LabelFlips(Result):
    """The words that flip a classifier's labels.

    Attributes:
        model: its name.
        texts: the texts, each once.
        labels: the class that each has.
        words: every word that was measured.
        classes: a row a class.
        by_word: a row a word and class, of words in six texts or more.
        notes: what was left out.
    """

    model: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    words: tuple[FlipWord, ...]
    classes: tuple[ClassFlips, ...]
    by_word: tuple[WordFlips, ...]
    notes: tuple[str, ...]

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for row in self.classes:
            told = f"{row.label}: {row.removal} of {row.removal.count} texts leave the class without one word"
            if row.swap is not None:
                told += f"; {row.swap} with one word exchanged for another that was tried"
            if row.radius is not None:
                median = "" if row.median_radius is None else f", half of them within {row.median_radius:.2f} of it"
                told += f"; {row.radius} of {row.radius.count} with one word moved by up to its own length{median}"
            yield told + "."
        for row in [row for row in self.by_word if row.more][:_NAMED]:
            yield (
                f"'{row.word}' decides: without it {row.share} of {row.share.count} {row.label} texts leave the class; "
                f"without another word of them {row.usual:.0%}."
            )

    def look(self) -> Look:
        """A row a class."""
        rows = self.classes
        columns = {
            "class": [row.label for row in rows],
            "texts": [row.removal.count for row in rows],
            "without a word": [str(row.removal) for row in rows],
            "with another": [str(row.swap or "") for row in rows],
            "moved": [str(row.radius or "") for row in rows],
            "median radius": [row.median_radius for row in rows],
        }
        return Look(f"{self.model}: labels that one word flips", columns, notes=(*self.answer, *self.notes))

    def of_text(self, at: int) -> tuple[FlipWord, ...]:
        """The words of a text, those first whose removal takes most from its class."""
        return tuple(sorted((word for word in self.words if word.text == at), key=lambda word: word.removal))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "model": self.model,
            "answer": list(self.answer),
            "classes": [asdict(row) for row in self.classes],
            "by_word": [asdict(row) for row in self.by_word],
            "words": [asdict(word) for word in self.words],
            "texts": list(self.texts),
            "labels": list(self.labels),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(self.answer)
