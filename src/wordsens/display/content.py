"""What a result says: sentences, words in colour, tables, figures. Terminal, page, notebook and
Markdown show it."""

import math
import re
from dataclasses import dataclass, field
from typing import Any

STRONGEST = 4.0
"""The sensitivity from which on colours are the same: attention at the paper's sizes stays below
it."""

LEVELS = 9
"""Shades, white first; the style sheet has one for each."""


def colour_share(value: float) -> float:
    """How strong the colour of a sensitivity S is, from 0 to 1: S / 4, the same for all texts and
    maps.

    >>> colour_share(0.0), colour_share(1.0), colour_share(5.0)
    (0.0, 0.25, 1.0)
    """
    return min(max(0.0, value) / STRONGEST, 1.0)


def level(share: float) -> int:
    """The shade of a share from 0 to 1."""
    return round(min(max(0.0, share), 1.0) * (LEVELS - 1))


@dataclass(frozen=True)
class Bar:
    """A number with a bar from zero, `share` of the whole long, and a fainter one up to `upper`."""

    value: float
    share: float
    upper: float = 0.0


@dataclass(frozen=True)
class Interval:
    """A number with its interval, drawn around zero in the middle; `most` is the end of the
    scale."""

    value: float
    low: float
    high: float
    most: float
    counts: bool


@dataclass(frozen=True)
class Marked:
    """A text with some of its parts marked: those that another text has otherwise."""

    text: str
    parts: tuple[str, ...]

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The text in order, each piece with whether it is marked."""
        pieces, at = [], 0
        for part in filter(None, self.parts):
            place = self.text.find(part, at)
            if place >= 0:
                pieces += [(self.text[at:place], False), (part, True)]
                at = place + len(part)
        return [piece for piece in (*pieces, (self.text[at:], False)) if piece[0]]


@dataclass(frozen=True)
class Strong:
    """A text that stands out: a rise, a fall, or just bold."""

    text: str
    how: str = "bold"


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Attributes:
        title: above it; "" for none.
        headings: of the columns; none for names and values.
        rows: of cells: texts, numbers, None, Bar, Interval, Marked.
        note: what the numbers mean.
        most: so many rows are shown at once; the rest is folded away, or left out where nothing
            folds.
        folded: whether all of it is.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    most: int = 20
    folded: bool = False

    def is_number(self, column: int) -> bool:
        """True where every entry that is not empty is a number."""
        known = [row[column] for row in self.rows if plain(row[column])]
        known = [one.text if isinstance(one, Strong) else one for one in known]
        texts = [one for one in known if isinstance(one, str | Marked)]
        return bool(known) and all(
            isinstance(one, str) and bool(_NUMBER.match(one)) for one in texts
        )


@dataclass(frozen=True)
class Shade:
    """A word of a text: as it is written, its shade (0 to LEVELS - 1), what is told on hover; below
    zero in the colour of a fall, underlined where it is the one that decides."""

    text: str
    level: int
    title: str = ""
    falls: bool = False
    decides: bool = False


@dataclass(frozen=True)
class Words:
    """A text whose words are coloured, white at zero.

    Attributes:
        title: above it.
        pieces: in reading order: coloured words, and what stands between them.
        legend: what colours mean: (the least, the most, of what).
        note: what is not shown.
        rtl: whether it runs from right to left.
    """

    title: str
    pieces: tuple[Shade | str, ...]
    legend: tuple[str, str, str] | None = None
    note: str = ""
    rtl: bool = False

    @property
    def signed(self) -> bool:
        """True where some words fall, so that the legend needs both colours."""
        return any(piece.falls for piece in self.pieces if isinstance(piece, Shade))


@dataclass(frozen=True)
class Picture:
    """A figure as SVG that was made for a page, with its caption."""

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Lines that a reader copies: a command, BibTeX."""

    title: str
    text: str
    folded: bool = False


@dataclass(frozen=True)
class Download:
    """A file inside the page, as (name, content), with a line about it."""

    name: str
    content: str
    about: str


@dataclass(frozen=True)
class Finding:
    """One sentence with its number.

    Attributes:
        number: its main number with its unit as it stands in the sentence; shown large.
        sentence: complete without the large number.
        known: how the number is known, in a few words.
        surety: the kinds of knowledge that it rests on, of SURETIES.
        value: the number itself; None for a sentence without one.
        interval: its 95 % interval; None without one.
        rows: the keys of the records that it rests on; () for a result in memory.
    """

    number: str
    sentence: str
    known: str
    surety: tuple[str, ...] = ("attained",)
    value: float | None = None
    interval: tuple[float, float] | None = None
    rows: tuple[str, ...] = ()


SURETIES = {
    "attained": "Reached by a change that was tried: a lower bound.",
    "certified": "No push within the radius, by default the word's own length, goes beyond it.",
    "predicted": "Theory for large d, and no bound: it may lie above an upper bound, or below what "
    "was attained.",
    "95 % interval": "95 of 100 such intervals hold the true number.",
}
"""The ways in which a number can be known."""


@dataclass(frozen=True)
class Findings:
    """Findings, the first few at once."""

    findings: tuple[Finding, ...]
    most: int = 5


@dataclass(frozen=True)
class Section:
    """Parts under a heading."""

    title: str
    parts: tuple[Any, ...]
    note: str = ""


@dataclass(frozen=True)
class Display:
    """Everything that a result says.

    Attributes:
        answer: sentences; the first is the answer.
        parts: Table, Words, Picture, Code, Download, Findings, Section, or a sentence.
        failures: requirements that are not met.
        passed: what is said where all are; "" where there are none.
        notes: what a reader should know.
    """

    answer: tuple[str, ...]
    parts: tuple[Any, ...] = ()
    failures: tuple[str, ...] = ()
    passed: str = ""
    notes: tuple[str, ...] = field(default=())


_NUMBER = re.compile(r"^[-+\N{MINUS SIGN}~.\d\[]")


def minus(text: str) -> str:
    """The text with a true minus sign before its numbers.

    >>> minus("n^-0.5 of two-word texts")
    'n^−0.5 of two-word texts'
    """
    return re.sub(r"-(?=\d|\.\d)(?<![\w]-)", "\N{MINUS SIGN}", text)


def times(value: float) -> str:
    """A relative change as a person says it.

    >>> times(2.0453), times(0.0312)
    ('2.05', '0.031')
    """
    return f"{value:.3g}" if abs(value) >= 1 else f"{value:.2g}"


def percent(share: float) -> str:
    """
    >>> percent(0.02), percent(0.005), percent(0.6123)
    ('2 %', '0.5 %', '61.2 %')
    """
    return f"{100 * share:.3g} %"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "pair"), plural(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def as_sentences(*clauses: str) -> str:
    """
    >>> as_sentences("2 rows left out", "the rest counts")
    '2 rows left out. The rest counts.'
    """
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def plain(cell: Any) -> str:
    """A cell as text.

    >>> plain(0.12345), plain(-3), plain(None), plain(True)
    ('0.123', '−3', '', 'yes')
    """
    if hasattr(cell, "item"):  # of a tensor or an array
        cell = cell.item()
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, Bar):
        return plain(cell.value)
    if isinstance(cell, Interval):
        return minus(f"{cell.low:+.3f} to {cell.high:+.3f}")
    if isinstance(cell, Marked | Strong):
        return cell.text
    if isinstance(cell, int | float):
        return minus(
            f"{cell:.3g}" if isinstance(cell, float) and abs(cell) < 1000 else f"{cell:,.0f}"
        )
    return str(cell)


def table_of(
    title: str, columns: Any, *, most: int = 20, ranked: str | None = None, note: str = ""
) -> Table:
    """A table of columns by their names, the largest of the ranked one first; columns with one
    value in all of several rows are said in its note, and not written in every row."""
    count = len(next(iter(columns.values()), ()))
    order = (
        sorted(range(count), key=lambda at: -float(columns[ranked][at]))
        if ranked
        else list(range(count))
    )
    same = {
        name: values[0]
        for name, values in columns.items()
        if name != ranked and count > 1 and len(set(map(plain, values))) == 1
    }
    shown = {name: values for name, values in columns.items() if name not in same}
    said = [f"{name}: {plain(value)}" for name, value in same.items() if plain(value)]
    rows = tuple(tuple(values[at] for values in shown.values()) for at in order)
    whole = " ".join(
        filter(None, (f"In every row: {', '.join(said)}." if said and shown else "", note))
    )
    return Table(title, tuple(shown), rows, whole, most)
