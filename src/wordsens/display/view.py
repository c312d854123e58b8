"""What a result says, as plain data: a headline, sentences, words in colour, tables, figures.

A terminal (`display.terminal`), a page or notebook (`display.html`) and Markdown
(`display.markdown`) show it. Loads neither torch nor pandas.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wordsens.display.numbers import Estimate, column

# The sensitivity at or above which colours are the same: attention at the paper's sizes stays below
# it.
STRONGEST = 4.0

# Shades, white first; the style sheet has one for each.
LEVELS = 9


def level(value: float, most: float = STRONGEST) -> int:
    """The shade of a number whose colour is strongest at `most`; the scale of sensitivities is the
    same for all texts and maps.

    >>> level(0.0), level(1.0), level(-5.0)
    (0, 2, 8)
    """
    return round(min(abs(value) / most, 1.0) * (LEVELS - 1)) if most else 0


@dataclass(frozen=True)
class Marked:
    """A text with some of its parts marked: those in which it differs from another."""

    text: str
    parts: tuple[str, ...]

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The text in order, each piece with whether it is marked."""
        pieces, stop = [], 0
        for part in filter(None, self.parts):
            start = self.text.find(part, stop)
            if start >= 0:
                pieces += [(self.text[stop:start], False), (part, True)]
                stop = start + len(part)
        return [piece for piece in (*pieces, (self.text[stop:], False)) if piece[0]]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """Plain columns under their headings.

    Attributes:
        title: above it; "" for none.
        columns: by heading, in order of importance, equally long; cells are numbers, texts,
            `Estimate`, `Marked`, or None.
        units: of a column: "%" writes shares in percent, "+" changes with their sign; any other is
            part of the heading.
        note: what the numbers mean.
        most: how many rows are shown at once; the others are folded away, or left out where nothing
            folds.
        folded: whether the whole table is.
        coloured: columns of sensitivities, coloured on the one scale.
    """

    title: str
    columns: Mapping[str, Sequence[Estimate | Marked | Any]]
    units: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    most: int = 20
    folded: bool = False
    coloured: tuple[str, ...] = ()

    @classmethod
    def of_rows(
        cls, title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], **options: Any
    ) -> "Table":
        """The table of these rows; headings are all different."""
        cells = list(rows)
        columns = {name: [row[place] for row in cells] for place, name in enumerate(headings)}
        return cls(title, columns, **options)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def heading(self, name: str) -> str:
        """The heading of a column with its unit."""
        unit = self.units.get(name, "")
        return name if unit in ("", "%", "+") else f"{name} ({unit})"

    def texts(self) -> dict[str, list[str]]:
        """The cells as text, without columns that have no value."""
        return {
            name: column(cells, self.units.get(name, ""))
            for name, cells in self.columns.items()
            if any(cell is not None for cell in cells)
        }

    @property
    def numeric(self) -> list[str]:
        """The columns whose cells are numbers, as far as they are not empty."""
        known = {
            name: [cell for cell in cells if cell is not None and cell != ""]
            for name, cells in self.columns.items()
        }
        texts = str | Marked | bool
        return [
            name
            for name, cells in known.items()
            if cells and not any(isinstance(cell, texts) for cell in cells)
        ]


@dataclass(frozen=True)
class ColouredWord:
    """A word of a text.

    Attributes:
        text: as it is written.
        value: what its colour shows, blue above 0 and orange below; None for no colour.
        about: what a page shows on hover.
        underlined: whether it stands out.
    """

    text: str
    value: float | None = None
    about: str = ""
    underlined: bool = False


@dataclass(frozen=True)
class Words:
    """A text whose words are coloured, white at zero.

    Attributes:
        title: above it; "" for none.
        pieces: in reading order: words, and what stands between them.
        most: the number at which colours are strongest.
        legend: what the colours mean; "" for no legend.
        note: what is not shown.
    """

    title: str
    pieces: tuple[ColouredWord | str, ...]
    most: float = STRONGEST
    legend: str = ""
    note: str = ""

    @property
    def signed(self) -> bool:
        """True where some values are below 0: the legend needs both colours."""
        return any(
            isinstance(piece, ColouredWord) and (piece.value or 0) < 0 for piece in self.pieces
        )

    @property
    def rtl(self) -> bool:
        """True where the first letter that has a direction runs from right to left."""
        written = "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)
        kinds = (
            kind for kind in map(unicodedata.bidirectional, written) if kind in ("L", "R", "AL")
        )
        return next(kinds, "L") != "L"


@dataclass(frozen=True)
class Finding:
    """One sentence of a study.

    Attributes:
        sentence: complete in itself, with its number and unit.
        known: on what it rests, where no column of a table says so.
        rows: the keys of the records that it rests on.
    """

    sentence: str
    known: str = ""
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """What a figure draws: one of the functions of `wordsens.plotting` ("lines", "points", "bars",
    "heat"), its columns and its options."""

    kind: str
    columns: Mapping[str, Sequence[Any]]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure as SVG that was made for a page, with its caption."""

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Lines that a reader copies: a command, a spec, BibTeX."""

    title: str
    text: str
    folded: bool = False


@dataclass(frozen=True)
class View:
    """Everything that a result says; inside another view, a section of it.

    Attributes:
        headline: the answer in one sentence; of a section its title.
        parts: sentences, findings, words, tables, pictures, code, and sections.
        failures: requirements that are not met, a sentence each.
        passed: what is said where all are met; "" where there are none.
        notes: what a reader should know, two lines at most.
        chart: what a figure of the result draws; None for a result without one.
    """

    headline: str
    parts: tuple[Any, ...] = ()
    failures: tuple[str, ...] = ()
    passed: str = ""
    notes: tuple[str, ...] = ()
    chart: Chart | None = None
