"""The table that shows a result: in a terminal and in a notebook."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.display.content import (
    STRONGEST,
    Display,
    Shade,
    Words,
    colour_share,
    level,
    plain,
    table_of,
)
from wordsens.errors import require_count

_HTML_ROWS, _HTML_WORDS = 8, 80
"""Rows of a table and words of a text in a notebook: fifty results stay a page of some 300 kB."""


@dataclass(frozen=True)
class ResultTable:
    """What a result shows.

    Attributes:
        heading: one line.
        columns: what its rows say, equally long.
        ranked: the column by which the table is sorted, the largest first; None for the order that
            there is.
        names: the column with the words of a text in reading order, which are coloured by `ranked`;
            None for none.
        upper: the column of upper bounds, for the figure; None for none.
        notes: lines below.
    """

    heading: str
    columns: Mapping[str, Sequence[Any]]
    ranked: str | None = None
    names: str | None = None
    upper: str | None = None
    notes: tuple[str, ...] = ()

    def text(self, most: int) -> str:
        """Lines for a terminal: the heading, at most so many rows, the notes."""
        count = len(next(iter(self.columns.values()), ()))
        order = list(range(count))
        if self.ranked is not None:
            order.sort(key=lambda row: -self.columns[str(self.ranked)][row])
        visible = order[: require_count("most", most)]
        cells = [
            [name, *(_text(column[row]) for row in visible)]
            for name, column in self.columns.items()
        ]
        left = [any(isinstance(value, str) for value in column) for column in self.columns.values()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(
                cell.ljust(width) if words else cell.rjust(width) for cell, width, words in line
            ).rstrip()
            for line in (zip(row, widths, left, strict=True) for row in zip(*cells, strict=True))
        ]
        more = [f"... and {count - len(visible)} more"] if len(visible) < count else []
        return "\n".join([self.heading, *lines, *more, *self.notes])

    def display(self) -> Display:
        """The heading, the words of the text in colour, the table, largest first."""
        words = (
            ()
            if self.names is None or self.ranked is None
            else (self._words(self.names, self.ranked),)
        )
        table = table_of("", self.columns, most=_HTML_ROWS, ranked=self.ranked)
        return Display((self.heading,), (*words, table), notes=self.notes)

    def _words(self, names: str, ranked: str) -> Words:
        """The words in reading order, each coloured by its value, which stands in its title."""
        values = [float(value) for value in self.columns[ranked]]
        pieces: list[Shade | str] = []
        for name, value in list(zip(self.columns[names], values, strict=True))[:_HTML_WORDS]:
            pieces += [Shade(str(name), level(colour_share(value)), f"{value:.3g}"), " "]
        more = len(values) - _HTML_WORDS
        legend = ("0", f"{STRONGEST:g} or more", f"{ranked}, times the output's size")
        return Words("", tuple(pieces), legend, f"... and {more} more" if more > 0 else "")


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) and not math.isnan(value) else plain(value)
