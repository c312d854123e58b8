"""The base of results: frozen dataclasses of numbers that compare by content and go to files and
back.

How a result shows itself is not written here: `looks` asks whom the package registered.
"""

import math
import reprlib
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from torch import Tensor

from wordsens.display.content import Display
from wordsens.display.page import html_fragment
from wordsens.display.result_table import ResultTable as ResultTable
from wordsens.errors import MissingExtraError
from wordsens.looks import figure_of, table_of
from wordsens.saved import Saved as Saved

_EMPTY = (None, "", ())
"""Values that a repr leaves out."""


class Shown:
    """Something that was measured: a table in a terminal and in a notebook, a DataFrame, a
    figure."""

    def columns(self) -> dict[str, Any]:
        """The numbers of the rows, equally many in each column; by default the single ones as one
        row."""
        return {
            name: [value]
            for name, value in vars(self).items()
            if isinstance(value, (str, int, float))
        }

    def result_table(self) -> ResultTable:
        """The columns with a heading."""
        return table_of(self)

    def show(self, most: int = 20) -> str:
        """A short table, the largest first."""
        return self.result_table().text(most)

    def to_pandas(self) -> Any:
        """The rows as a DataFrame. Needs the `tables` extra."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "tables", "to_pandas") from error
        return pd.DataFrame(
            {name: list(column) for name, column in self.result_table().columns.items()}
        )

    def plot(self, *, style: Any = None) -> Any:
        """The result as a matplotlib figure (`wordsens.plotting`). Needs the `figures` extra.

        `style` is a .mplstyle file in place of ours. InputError where there is nothing to draw.
        """
        return figure_of(self, style=style)

    def display(self) -> Display:
        """The heading, the words of the text in colour, the table, largest first."""
        return self.result_table().display()

    def _repr_html_(self) -> str:
        return html_fragment(self.display())


class Result(Shown, Saved):
    """A frozen dataclass whose instances compare by content, show tensors by their shape, and go to
    files and back.

    Derive with `@dataclass(frozen=True, eq=False, repr=False)`; fields are tensors, numbers, texts,
    and what is made of them. Fields with `compare=False` do not count; NaN equals NaN. Results with
    tensors are not hashable.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("perturbations", "perturbation")
    """Fields that `to_dict` leaves out: the witnesses."""

    def to_dict(self) -> dict[str, Any]:
        """Everything but the witnesses, as plain Python values."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in _fields(self)
            if field.name not in self.not_in_dict
        }

    def __eq__(self, other: object) -> bool:
        return same_content(self, other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in _fields(self) if field.repr]
        parts = [
            f"{name}={_brief(value)}"
            for name, value in values
            if isinstance(value, Tensor) or value not in _EMPTY
        ]
        return f"{type(self).__name__}({', '.join(parts)})"


def same_content(first: Any, second: Any) -> bool:
    """True where both are of one class and compare equal field by field, tensors by their numbers;
    NaN equals NaN."""
    names = [field.name for field in _fields(first) if field.compare]
    return all(_same(getattr(first, name), getattr(second, name)) for name in names)


def _fields(result: Any) -> tuple[Any, ...]:
    return fields(result)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        if (
            not isinstance(first, Tensor)
            or not isinstance(second, Tensor)
            or first.dtype != second.dtype
        ):
            return False
        first, second = first.detach().cpu(), second.detach().cpu()
        return first.shape == second.shape and bool(
            ((first == second) | ((first != first) & (second != second))).all()
        )
    if isinstance(first, (tuple, list)) and type(first) is type(second):
        return len(first) == len(second) and all(map(_same, first, second))
    if (
        isinstance(first, float)
        and isinstance(second, float)
        and math.isnan(first)
        and math.isnan(second)
    ):
        return True
    return bool(first == second)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor{list(value.shape)}" if value.ndim else f"{value.item():.6g}"
    if isinstance(value, float):
        return f"{value:.6g}"
    simple = isinstance(value, (tuple, list)) and all(
        isinstance(part, (str, int, float)) for part in value
    )
    if isinstance(value, (tuple, list)) and not (simple and len(value) <= 3):
        return f"<{len(value)} entries>"
    return reprlib.repr(value)
