"""The base of every public result: frozen dataclasses of numbers that compare by content, show
themselves, and go to files and back.

Loads neither torch nor pandas.
"""

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wordsens.display.numbers import Estimate as Estimate
from wordsens.display.view import Chart, ColouredWord, Table, View, Words
from wordsens.errors import InputError, MissingExtraError, require_count
from wordsens.saved import is_array, load, same_content, save

if TYPE_CHECKING:
    from pandas import DataFrame

# Rows of a table and words of a text in a notebook: fifty results stay a page of some 300 kB.
_SHOWN_ROWS, _SHOWN_WORDS = 8, 80


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A frozen dataclass of tensors, arrays, numbers, texts, and what is made of them.

    Derive with `@dataclass(frozen=True, eq=False, repr=False)`, and override `columns`, `headline`,
    and `view` where there is more to show than a table. Fields with `compare=False` do not count
    for equality; NaN equals NaN. Results are not hashable.
    """

    # Fields that `to_dict` leaves out: the witnesses.
    not_in_dict: ClassVar[tuple[str, ...]] = ("perturbations", "perturbation")

    # The column by which rows are sorted, the largest first, and which a figure draws.
    ranked: ClassVar[str] = ""

    # The column that names the rows: the words of a text in reading order, which are coloured.
    row_names: ClassVar[str] = ""

    def columns(self) -> dict[str, Sequence[Any]]:
        """The table as plain columns, equally long; by default the single numbers as one row."""
        return {
            name: [value]
            for name, value in vars(self).items()
            if isinstance(value, (str, int, float))
        }

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return type(self).__name__

    def view(self) -> View:
        """Everything that the result says: the headline, the words of the text in colour, and the
        table, the largest numbers first."""
        columns = self.columns()
        table = Table("", columns, most=_SHOWN_ROWS)
        parts, chart = (), None
        if self.ranked:
            values = [float(value) for value in columns[self.ranked]]
            names = [str(name) for name in columns[self.row_names or next(iter(columns))]]
            order = sorted(range(len(values)), key=lambda row: -values[row])
            ordered = {name: [cells[row] for row in order] for name, cells in columns.items()}
            table = replace(
                table, columns=ordered, coloured=(self.ranked,) if self.row_names else ()
            )
            parts = (_words(names, values, self.ranked),) if self.row_names else ()
            chart = _bars({**columns, "name": names}, self.ranked, self.headline)
        notes = tuple(getattr(self, "notes", ()))
        return View(self.headline, (*parts, table), notes=notes, chart=chart)

    def table(self) -> "DataFrame":
        """The table as a DataFrame; an estimate is split: S, S low, S high, S n.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "tables", "table()") from error

        return pd.DataFrame(split_estimates(self.columns()))

    def show(self, most: int = 20) -> str:
        """The view as lines of text, with this many rows of each table at most."""
        from wordsens.display.terminal import plain_text

        require_count("most", most)
        view = self.view()
        parts = [
            replace(part, most=most) if isinstance(part, Table) else part for part in view.parts
        ]
        return plain_text(replace(view, parts=tuple(parts)))

    def plot(self, *, style: Any = None) -> Any:
        """The result as a matplotlib figure. Needs the `figures` extra.

        Args:
            style: a .mplstyle file in place of ours, or a name that matplotlib knows.

        Raises:
            InputError: the result has nothing to draw.
        """
        chart = self.view().chart
        if chart is None:
            raise InputError(
                f"a {type(self).__name__} is a table without a number to draw; use show() or "
                "table()"
            )
        from wordsens.plotting import draw

        return draw(chart, style=style)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the witnesses, as plain Python values; None for numbers that are not
        finite."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in fields(self)
            if field.name not in self.not_in_dict
        }

    def save(self, path: str | Path) -> None:
        """Write everything, witnesses included, to one safetensors file; nothing is pickled.

        Raises:
            InputError: the file cannot be written.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: any other file, and one of another class or format.
        """
        return load(cls, path)

    def __eq__(self, other: object) -> bool:
        return same_content(self, other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self) if field.repr]
        parts = [
            f"{name}={_brief(value)}"
            for name, value in values
            if is_array(value) or value not in (None, "", ())
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from wordsens.display.html import html_fragment

        return html_fragment(self.view())


class Answered(Result):
    """A result whose `view` answers in sentences."""

    @property
    def answer(self) -> tuple[str, ...]:
        """The sentences of the view, the headline first."""
        view = self.view()
        return view.headline, *(part for part in view.parts if isinstance(part, str))

    @property
    def headline(self) -> str:
        """The first of these sentences."""
        return self.view().headline

    def __str__(self) -> str:
        return "\n".join(self.answer)


def _bars(columns: dict[str, Sequence[Any]], ranked: str, title: str) -> Chart:
    """A bar for each row, with a line up to its upper bound where all rows have one."""
    options: dict[str, Any] = {"x": "name", "y": ranked, "title": title, "labels": {"name": ""}}
    if ranked != "upper" and None not in columns.get("upper", [None]):
        columns |= {f"{ranked} low": columns[ranked], f"{ranked} high": columns["upper"]}
        options |= {"reaching": "upper bound", "caption": "Bars are lower bounds."}
    return Chart("bars", columns, options)


def _words(names: Sequence[str], values: Sequence[float], ranked: str) -> Words:
    """The first words of a text in reading order, each coloured by its value."""
    pieces: list[ColouredWord | str] = []
    for name, value in list(zip(names, values, strict=True))[:_SHOWN_WORDS]:
        pieces += [ColouredWord(name, value, f"{value:.3g}"), " "]
    more = len(values) - _SHOWN_WORDS
    note = f"... and {more} more" if more > 0 else ""
    return Words("", tuple(pieces), legend=f"or more times the output's size ({ranked})", note=note)


def split_estimates(columns: dict[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The columns with every estimate split into its numbers, those that are known.

    >>> split_estimates({"S": [Estimate(0.5, 0.4, 0.6, n=9)]})
    {'S': [0.5], 'S low': [0.4], 'S high': [0.6], 'S n': [9]}
    """
    split: dict[str, list[Any]] = {}
    for name, cells in columns.items():
        if not any(isinstance(cell, Estimate) for cell in cells):
            split[name] = list(cells)
            continue
        for part in ("value", "low", "high", "p", "n"):
            numbers = [getattr(cell, part, None) for cell in cells]
            if part == "value" or any(number is not None for number in numbers):
                split[name if part == "value" else f"{name} {part}"] = numbers
    return split


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if is_array(value):
        value = value.tolist()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _brief(value: Any) -> str:
    if is_array(value):
        return f"tensor{list(value.shape)}" if value.ndim else f"{value.item():.6g}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        return f"<{len(value)} entries>"
    return reprlib.repr(value)
