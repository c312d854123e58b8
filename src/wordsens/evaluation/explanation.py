"""The words behind one number, for a terminal, a notebook and JSON."""

from dataclasses import asdict, dataclass
from typing import Any

from wordsens.display.content import Display, Shade, Table, Words, level, minus
from wordsens.display.page import html_fragment

SHOWN = 8
"""Words and pairs that are listed."""


@dataclass(frozen=True, kw_only=True)
class WordEffect:
    """One word, and what becomes of the score without it, or with something else in its place.

    Attributes:
        side: 0 of a word of the first text, 1 of the second.
        word, start, stop: the word and its place in the text.
        removal: the score without the word, less the score: one change, by encoding the text again; None, as all other
            numbers, of a word past what the model reads.
        swap, swapped_for: the largest change of the score by one of `tried` words that a writer could have put there,
            and that word; None where none was tried.
        tried: other words that were tried.
        lowers, raises: the farthest that the score was found to fall and to rise when the word's rows move by up to
            their own length: attained, each a bound of what a vector in the word's place can do from below; None
            without gradients. A score that cannot fall has no `lowers`.
        upper: a certified upper bound of the farthest change; None where the map has none.
        apart: the largest rise of the score when this word and one of the other text are removed together: one change
            for each of those words; None of one text, or where every pair would cost an evaluation.
        counterpart: that word of the other text.
        shared: whether one of its tokens is also that of another word, which is moved with it as a vector.
    """

    side: int
    word: str
    start: int
    stop: int
    removal: float | None
    swap: float | None = None
    swapped_for: str | None = None
    tried: int = 0
    lowers: float | None = None
    raises: float | None = None
    upper: float | None = None
    apart: float | None = None
    counterpart: str | None = None
    shared: bool = False

    @property
    def farthest(self) -> float | None:
        """The larger of `lowers` and `raises`, with its sign."""
        result = [one for one in (self.lowers, self.raises) if one is not None]
        return max(result, key=abs) if result else None


@dataclass(frozen=True, kw_only=True)
class PairEffect:
    """Two words, one of each text: what removing both does, less what removing each does.

    Attributes:
        first, second: the words; first_at and second_at their numbers in `words`.
        together: the change of the score without both: one change.
        alone: the sum of the changes without either.
    """

    first: str
    second: str
    first_at: int
    second_at: int
    together: float
    alone: float


@dataclass(frozen=True)
class Explanation:
    """An explanation of one number by its words.

    Attributes:
        model: its name.
        score: what the number is, such as "cosine".
        value: the number.
        texts: one or two.
        words: one entry a word, in the order of the texts; signs are no words.
        pairs: pairs of words, the farthest from the sum of their parts first.
        notes: what could not be said, and why.
    """

    model: str
    score: str
    value: float
    texts: tuple[str, ...]
    words: tuple[WordEffect, ...]
    pairs: tuple[PairEffect, ...]
    notes: tuple[str, ...]

    @property
    def removal(self) -> tuple[float | None, ...]:
        """Every word's removal."""
        return tuple(word.removal for word in self.words)

    @property
    def swap(self) -> tuple[float | None, ...]:
        """Every word's best swap."""
        return tuple(word.swap for word in self.words)

    @property
    def sensitivity(self) -> tuple[float | None, ...]:
        """Every word's farthest attained change, with its sign."""
        return tuple(word.farthest for word in self.words)

    @property
    def dividing(self) -> WordEffect | None:
        """The word that keeps the two texts apart most: without it, or without it and its counterpart of the other
        text, the score rises most."""
        if len(self.texts) < 2:
            return None
        known = [word for word in self.words if word.removal is not None]
        return max(known, key=_rise, default=None)

    def most(self, name: str, count: int = SHOWN) -> list[WordEffect]:
        """The words with the largest values of that name, such as "removal" or "apart", by size."""
        known = [word for word in self.words if getattr(word, name) is not None]
        return sorted(known, key=lambda word: -abs(getattr(word, name)))[:count]

    def sentences(self) -> list[str]:
        """The findings in words, each saying whether a number is one change or the farthest that was found."""
        shown = [f"{self.model}: {self.score} {self.value:.4f}" if len(self.texts) > 1 or self.value else self.model]
        if words := self.most("removal", 3):
            said = ", ".join(f"{self._named(word)} {word.removal:+.4f}" for word in words if _shows(word.removal))
            most = f"these words move it most: {said}" if said else "no word moves it by .0001"
            shown.append(f"Removed one by one (one change each), {most}.")
        word = self.dividing
        if word is not None and _shows(_rise(word)):
            shown.append(self._divided(word))
        if words := self.most("swap", 1):
            farthest = f"{self._named(words[0])} for '{words[0].swapped_for}' {words[0].swap:+.4f}"
            shown.append(
                f"Exchanged for a word that a writer could put there (the farthest of {words[0].tried}): "
                f"{farthest if _shows(words[0].swap) else 'no word moves it by .0001'}."
            )
        if words := self.most("farthest", 1):
            farthest = f"{self._named(words[0])} {words[0].farthest:+.4f}"
            shown.append(
                "Moved as a vector (the farthest found, a lower bound): "
                f"{farthest if _shows(words[0].farthest) else 'no word moves it by .0001'}."
            )
        return [*shown, *self.notes]

    def _divided(self, word: WordEffect) -> str:
        value = f"{self.value + _rise(word):.4f} (one change)"
        if word.apart is None or (word.removal or 0.0) >= word.apart:
            return f"The word that keeps the texts apart most is {self._named(word)}: without it it is {value}."
        first, second = (word.word, word.counterpart) if word.side == 0 else (word.counterpart, word.word)
        return (
            f"The pair of words that keeps the texts apart most is '{first}' of the first and '{second}' of the "
            f"second: without both it is {value}."
        )

    def _named(self, word: WordEffect) -> str:
        return f"'{word.word}'" + (("", " (second text)")[word.side] if len(self.texts) > 1 else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "model": self.model,
            "score": self.score,
            "value": self.value,
            "texts": list(self.texts),
            "words": [asdict(word) for word in self.words],
            "pairs": [asdict(pair) for pair in self.pairs],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def shade(self, word: WordEffect) -> float:
        """The share of the largest removal of all words that this word's is, with its sign."""
        most = max((abs(one.removal or 0) for one in self.words), default=0)
        return (word.removal or 0) / most if most > 0 else 0.0

    def display(self) -> Display:
        """The findings, the texts with the words coloured by what their removal does, a row a word, and pairs."""
        most = max((abs(word.removal or 0) for word in self.words), default=0.0)
        legend = ("0", f"{most:.3g}", f"change of the {self.score} without the word; blue: it rises, orange: it falls")
        coloured = [
            Words("", self._pieces(side), legend if side == len(self.texts) - 1 else None)
            for side in range(len(self.texts))
        ]
        pairs = Table(
            "Pairs of words whose removal together differs most from the sum of each (one change)",
            ("first", "second", "both", "sum", "difference"),
            tuple(
                (one.first, one.second, *map(_number, (one.together, one.alone, one.together - one.alone)))
                for one in self.pairs
            ),
        )
        return Display(tuple(self.sentences()), (*coloured, self._table(), pairs))

    def _repr_html_(self) -> str:
        return html_fragment(self.display())

    def _pieces(self, side: int) -> tuple[Shade | str, ...]:
        text, at, pieces = self.texts[side], 0, []
        for word in (one for one in self.words if one.side == side):
            share, removal = self.shade(word), _number(word.removal) or ""
            pieces += [text[at : word.start], Shade(word.word, level(abs(share)), removal, falls=share < 0)]
            at = word.stop
        return (*pieces, text[at:])

    def _table(self) -> Table:
        """A row a word, without the columns that are empty throughout."""
        columns: dict[str, list[Any]] = {
            "text": [word.side + 1 for word in self.words],
            "word": [word.word for word in self.words],
            "removed": [_number(word.removal) for word in self.words],
            "best swap": [_number(word.swap) for word in self.words],
            "swapped for": [word.swapped_for for word in self.words],
            "down": [_number(word.lowers) for word in self.words],
            "up": [_number(word.raises) for word in self.words],
            "certified": [_number(word.upper) for word in self.words],
            "both removed": [_number(word.apart) for word in self.words],
            "with": [word.counterpart for word in self.words],
        }
        meanings = {
            "removed": "removed: the change without the word, one change.",
            "best swap": f"best swap: the farthest of {max(w.tried for w in self.words)} words that could stand there.",
            "down": "down, up: the farthest attained by moving the word's vectors by up to their length; no bound.",
            "certified": "certified: no move of the word's vectors goes farther.",
            "both removed": "both removed: the largest rise without this word and one of the other text.",
        }
        shown = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        rows = tuple(zip(*shown.values(), strict=True))
        note = " ".join(meaning for name, meaning in meanings.items() if name in shown)
        return Table("", tuple(shown), rows, note, most=max(len(rows), 1))


def _rise(word: WordEffect) -> float:
    """The largest rise of the score without the word, alone or with one of the other text."""
    return max(word.removal or 0.0, word.apart or 0.0)


def _shows(value: float | None) -> bool:
    """True where a change is not 0 in the four digits that are printed."""
    return value is not None and round(abs(value), 4) > 0


def _number(value: float | None) -> str | None:
    return None if value is None else minus(f"{value:+.4f}")
