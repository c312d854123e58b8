"""Results as a reader sees them: a short table, a notebook's HTML, a DataFrame, a figure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from torch import Tensor

from wordsens.drawing import draw
from wordsens.errors import MissingExtraError, require_count

Columns = Mapping[str, Sequence[Any]]

_HTML_ROWS, _HTML_WORDS = 8, 80
"""Rows of a table and words of a text in a notebook: fifty results stay a page of some 300 kB."""

_COLOUR = "213,94,0"


@dataclass(frozen=True)
class Look:
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
    """Something that was measured. A class of results gives its `look`; the rest has one meaning for all."""

    def look(self) -> Look:
        """The heading and columns of the result; without any of its own, its single numbers and words as one row."""
        plain = {name: value for name, value in vars(self).items() if isinstance(value, (str, int, float))}
        return Look(type(self).__name__, {name: [value] for name, value in plain.items()})

    def show(self, most: int = 20) -> str:
        """A short table, the largest first."""
        look = self.look()
        order = _order(look)
        shown = order[: require_count("most", most)]
        cells = [[name, *(_text(column[at]) for at in shown)] for name, column in look.columns.items()]
        left = [any(isinstance(one, str) for one in column) for column in look.columns.values()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(cell.ljust(width) if words else cell.rjust(width) for cell, width, words in line).rstrip()
            for line in (zip(row, widths, left, strict=True) for row in zip(*cells, strict=True))
        ]
        more = [f"... and {len(order) - len(shown)} more"] if len(shown) < len(order) else []
        return "\n".join([look.heading, *lines, *more, *look.notes])

    def to_pandas(self) -> Any:
        """The rows as a DataFrame. Needs the `tables` extra."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "tables", "to_pandas") from error
        return pd.DataFrame({name: list(column) for name, column in self.look().columns.items()})

    def plot(self, *, style: Any = None) -> Any:
        """The result as a matplotlib figure (`wordsens.figures`). Needs the `figures` extra.

        `style` is a .mplstyle file in place of ours. InputError where there is nothing to draw.
        """
        # Figures lie in a higher room, which knows the results that it draws.
        return draw(self, style=style)

    def _repr_html_(self) -> str:
        look = self.look()
        body = _words(look) if look.names is not None and look.ranked is not None else _table(look)
        notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in look.notes)
        return f"<div><b>{escape(look.heading)}</b>{body}{notes}</div>"


def _order(look: Look) -> list[int]:
    count = len(next(iter(look.columns.values()), ()))
    if look.ranked is None:
        return list(range(count))
    values = look.columns[look.ranked]
    return sorted(range(count), key=lambda at: -values[at])


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _words(look: Look) -> str:
    """The words in reading order, each coloured by its value, which stands in its title."""
    names, values = look.columns[str(look.names)], [float(value) for value in look.columns[str(look.ranked)]]
    spans = [
        f'<span title="{value:.4f}" style="background:rgba({_COLOUR},{0.8 * colour_share(value):.2f})">'
        f"<bdi>{escape(str(name))}</bdi></span>"
        for name, value in list(zip(names, values, strict=True))[:_HTML_WORDS]
    ]
    more = f" ... and {len(values) - _HTML_WORDS} more" if len(values) > _HTML_WORDS else ""
    return f'<div style="line-height:1.8">{" ".join(spans)}{more}</div>'


def colour_share(value: float) -> float:
    """How strong the colour of a sensitivity S is, from 0 to 1: S / (1 + S), the same for all texts and maps.

    White is 0; half the strength is S = 1, a word that moves the features by their own length.

    >>> colour_share(0.0), colour_share(1.0), colour_share(3.0)
    (0.0, 0.5, 0.75)
    """
    return max(0.0, value) / (1 + max(0.0, value))


def _table(look: Look) -> str:
    order = _order(look)
    head = "".join(f"<th>{escape(name)}</th>" for name in look.columns)
    rows = "".join(
        "<tr>"
        + "".join(f"<td><bdi>{escape(_text(column[at]))}</bdi></td>" for column in look.columns.values())
        + "</tr>"
        for at in order[:_HTML_ROWS]
    )
    more = f"<div>... and {len(order) - _HTML_ROWS} more</div>" if len(order) > _HTML_ROWS else ""
    return f"<table><tr>{head}</tr>{rows}</table>{more}"
