"""Results as a reader sees them: a short table, a notebook's HTML, a DataFrame, a figure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.display.content import STRONGEST, Display, Shade, Words, level, plain, table_of
from wordsens.display.content import colour_share as colour_share
from wordsens.display.page import html_fragment
from wordsens.errors import MissingExtraError, require_count
from wordsens.looks import figure_of
from wordsens.looks import table_of as result_table_of

Columns = Mapping[str, Sequence[Any]]

_HTML_ROWS, _HTML_WORDS = 8, 80
"""Rows of a table and words of a text in a notebook: fifty results stay a page of some 300 kB."""


@dataclass(frozen=True)
class ResultTable:
    """The way a result shows itself.

    Attributes:
        heading: one line.
        columns: what its rows say, equally long.
        ranked: the column by which the table is sorted, the largest first; None for the order that there is.
        names: the column with the words of a text in reading order, which are coloured by `ranked`; None for none.
        upper: the column of upper bounds, for the figure; None for none.
        notes: lines below.
    """

    heading: str
    columns: Columns
    ranked: str | None = None
    names: str | None = None
    upper: str | None = None
    notes: tuple[str, ...] = ()


class Shown:
    """Something that was measured. A class of results gives its columns; the rest has one meaning for all."""

    def columns(self) -> dict[str, Any]:
        """The numbers of the rows, equally many in each column; by default the single ones as one row."""
        return {name: [value] for name, value in vars(self).items() if isinstance(value, (str, int, float))}

    def result_table(self) -> ResultTable:
        """The columns with a heading."""
        return result_table_of(self)

    def show(self, most: int = 20) -> str:
        """A short table, the largest first."""
        table = self.result_table()
        order = _order(table)
        shown = order[: require_count("most", most)]
        cells = [[name, *(_text(column[at]) for at in shown)] for name, column in table.columns.items()]
        left = [any(isinstance(one, str) for one in column) for column in table.columns.values()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(cell.ljust(width) if words else cell.rjust(width) for cell, width, words in line).rstrip()
            for line in (zip(row, widths, left, strict=True) for row in zip(*cells, strict=True))
        ]
        more = [f"... and {len(order) - len(shown)} more"] if len(shown) < len(order) else []
        return "\n".join([table.heading, *lines, *more, *table.notes])

    def to_pandas(self) -> Any:
        """The rows as a DataFrame. Needs the `tables` extra."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "tables", "to_pandas") from error
        return pd.DataFrame({name: list(column) for name, column in self.result_table().columns.items()})

    def plot(self, *, style: Any = None) -> Any:
        """The result as a matplotlib figure (`wordsens.plotting`). Needs the `figures` extra.

        `style` is a .mplstyle file in place of ours. InputError where there is nothing to draw.
        """
        return figure_of(self, style=style)

    def display(self) -> Display:
        """The heading, the words of the text in colour, the table, largest first."""
        table = self.result_table()
        parts: list[Any] = []
        if table.names is not None and table.ranked is not None:
            parts.append(_words(table))
        parts.append(table_of("", table.columns, most=_HTML_ROWS, ranked=table.ranked))
        return Display((table.heading,), tuple(parts), notes=table.notes)

    def _repr_html_(self) -> str:
        return html_fragment(self.display())


def _order(table: ResultTable) -> list[int]:
    count = len(next(iter(table.columns.values()), ()))
    if table.ranked is None:
        return list(range(count))
    values = table.columns[table.ranked]
    return sorted(range(count), key=lambda at: -values[at])


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) and not math.isnan(value) else plain(value)


def _words(table: ResultTable) -> Words:
    """The words in reading order, each coloured by its value, which stands in its title."""
    names, values = (
        table.columns[str(table.names)],
        [float(value) for value in table.columns[str(table.ranked)]],
    )
    pieces: list[Shade | str] = []
    for name, value in list(zip(names, values, strict=True))[:_HTML_WORDS]:
        pieces += [Shade(str(name), level(colour_share(value)), f"{value:.3g}"), " "]
    more = len(values) - _HTML_WORDS
    legend = ("0", f"{STRONGEST:g} or more", f"{table.ranked}, times the output's size")
    return Words("", tuple(pieces), legend, f"... and {more} more" if more > 0 else "")
