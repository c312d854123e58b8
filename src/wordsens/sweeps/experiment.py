"""What an experiment is, and what its records say together."""

import math
import operator
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wordsens.display.numbers import Estimate, column, plural
from wordsens.display.view import Finding, Table, View
from wordsens.errors import InputError
from wordsens.intervals import Bounds, mean_estimate
from wordsens.results import Result, split_estimates
from wordsens.sweeps.spec import Cell
from wordsens.sweeps.store import Record, spec_columns

if TYPE_CHECKING:
    from pandas import DataFrame

_NO_FINDING = "Too few draws for an interval: no difference is claimed. A larger scale has more."


def compact(table: Table) -> Table:
    """Without the columns that have one value in every row, which the title gives instead.

    >>> compact(Table("S against n", {"map": ["rf", "raf"], "d": [8, 8], "S": [0.2, 3.0]})).title
    'S against n: d = 8'
    """
    same = {
        name: cells[0]
        for name, cells in table.columns.items()
        if len(cells) > 1 and len(set(cells)) == 1
    }
    constants = (
        value if isinstance(value, str) else f"{name} = {column([value])[0]}"
        for name, value in same.items()
        if value is not None
    )
    title = ": ".join(filter(None, (table.title, ", ".join(constants))))
    left = {name: cells for name, cells in table.columns.items() if name not in same}
    return replace(table, title=title, columns=left)


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Result):
    """What the records of one experiment say.

    Attributes:
        tables: whose cells may be an Estimate; the first is what a terminal prints.
        note: what its numbers mean, in two lines.
        findings: the answer first.
        details: what else is to be known of the numbers.
        leading: how many of the findings are the answer: one per map, so that none is left out.
    """

    tables: tuple[Table, ...]
    note: str
    findings: tuple[Finding, ...]
    details: str = ""
    leading: int = 1

    @property
    def headline(self) -> str:
        """The first finding."""
        return self.findings[0].sentence if self.findings else _NO_FINDING

    def columns(self) -> dict[str, Any]:
        """The first table."""
        return dict(self.tables[0].columns) if self.tables else {}

    def table(self, place: int = 0) -> "DataFrame":
        """A table as a DataFrame, its estimates split; an empty one where there is none.

        `.to_latex(index=False, float_format="%.3g")` of it is LaTeX (booktabs).
        """
        import pandas as pd

        columns = self.tables[place].columns if place < len(self.tables) else {}
        return pd.DataFrame(split_estimates(dict(columns)))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`: a table is its rows, an estimate its numbers."""
        plain = super().to_dict()
        tables = []
        for table in plain["tables"]:
            columns = table["columns"]
            rows = zip(*columns.values(), strict=True)
            rows = [dict(zip(columns, row, strict=True)) for row in rows]
            tables.append({"title": table["title"], "rows": rows})
        note = f"{self.note} {self.details}".strip()
        return {"tables": tables, "note": note, "findings": plain["findings"]}

    def view(self, *, verbose: bool = False) -> View:
        """The answer, the first table and the note; with `verbose` every sentence and table, and
        the details."""
        findings = self.findings[1:] if verbose else self.findings[1 : self.leading]
        tables = list(map(compact, self.tables if verbose else self.tables[:1]))
        note = f"{self.note} {self.details}".strip() if verbose else self.note
        parts = [
            replace(table, note=note * (table is tables[-1]), most=max(20, len(table)))
            for table in tables
        ]
        more = len(self.tables) - len(tables)
        notes = (f"{plural(more, 'more table')} with --verbose.",) if more > 0 else ()
        return View(self.headline, (*findings, *(parts or [note])), notes=notes)

    def __str__(self) -> str:
        return self.show()


Grids = tuple[list[dict[str, Any]], list[str]]
"""The grids of a preset, and what the user should know of how they were fitted to the data."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    Attributes:
        name: as specs and commands write it.
        Cell: the class of a cell's spec.
        measure: function of a cell that gives the columns of its record, `value` among them; the
            entry "arrays", a dictionary of tensors, is kept with `--witnesses`. What it raises
            becomes a failed record.
        preset: function of (scale, source of real texts, seed, labels), and of its own choices by
            keyword, that gives the grids of `wordsens paper`; None where there is no such command.
        summarize: function of the finished records.
        figures: function of the finished records that gives matplotlib figures by the names of
            their files; None as a figure is left out. Without the function each axis of a sweep has
            a figure.
        value: what the column `value` is, in a figure.
        together: function of a cell; equal results, other than None, mean that cells share costly
            work, a fit or a search, so that one worker should get them together.
        most_together: so many of those at most: what a lost worker loses.
        measure_together: function of such cells that gives the columns of each, to rounding those
            of `measure`; None where they are measured one by one.
    """

    name: str
    Cell: type[Cell]
    measure: Callable[[Any], Mapping[str, Any]]
    preset: Callable[..., Grids] | None = None
    summarize: Callable[[Sequence[Record]], Summary] | None = None
    figures: Callable[[Sequence[Record]], Mapping[str, Any]] | None = None
    value: str = "value"
    together: Callable[[Any], Hashable] | None = None
    most_together: int = 16
    measure_together: Callable[[Sequence[Any]], Sequence[Mapping[str, Any]]] | None = None


REPLICATES = frozenset({"seed", "draw", "sample"})
"""Keys that name a repetition: records that differ in nothing else are draws of one quantity."""


def varying_columns(records: Iterable[Any], *, besides: Iterable[str] = ()) -> dict[str, list[Any]]:
    """The columns of the specs, other than repetitions and `besides`, that have several values; the
    values sorted."""
    by_name: dict[str, dict[Any, None]] = {}
    for record in records:
        for name, value in spec_columns(record.spec).items():
            by_name.setdefault(name, {})[value] = None
    left = REPLICATES | set(besides)
    return {
        name: sorted(values, key=rank)
        for name, values in by_name.items()
        if len(values) > 1 and name not in left
    }


def require_alike(records: Iterable[Any], *, besides: Iterable[str]) -> None:
    """InputError where what is drawn or averaged together differs in a column of the specs other
    than `besides`."""
    for name, values in varying_columns(records, besides=besides).items():
        listed = ", ".join(map(str, values[:4]))
        raise InputError(
            f"`records` has several values of {name} "
            f"({listed}{', ...' if len(values) > 4 else ''}), which would be "
            f"taken together; filter them, such as [r for r in records if r.{name} == "
            f"{values[-1]!r}]"
        )


def rank(value: Any) -> tuple[int, float, str]:
    """Orders values of any kind: none at all, then numbers, then words."""
    if value is None:
        return (0, 0.0, "")
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def key_text(name: str, value: Any) -> str:
    """A column's value in a few words.

    >>> key_text("mean_cosine", 0.3), key_text("starts", None)
    ('mean cosine = 0.3', 'starts = default')
    """
    if name == "text_content" and isinstance(value, str):
        value = value[:8]
    shown = "default" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{name.replace('_', ' ')} = {shown}"


def text_title(kind: str) -> str:
    """The name of a record's kind of text."""
    names = {
        "reviews": "movie reviews",
        "questions": "questions",
        "passages": "passages",
        "dataset": "the dataset",
        "given": "the text",
        "gaussian": "Gaussian texts",
        "orthogonal": "orthogonal texts",
        "correlated": "correlated texts",
        "repeated": "texts of repeated words",
    }
    return names.get(kind, kind)


Column = str | Callable[[Any], Any]
"""A column of records, by its name or as a function of a record."""


def value_of(record: Any, column: Column) -> Any:
    """The record's value in the column."""
    return column(record) if callable(column) else getattr(record, column)


def grouped(records: Iterable[Any], *columns: Column) -> dict[tuple[Any, ...], list[Any]]:
    """The records by their values in the columns, in the order in which these first appear."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for record in records:
        groups.setdefault(tuple(value_of(record, column) for column in columns), []).append(record)
    return groups


LEAST_DRAWS = 5
"""Fewer draws have no bootstrap: four have 35 different samples."""

SHARE = (0.0, 1.0)
"""The bounds of an accuracy, an AUC and any other share."""


def estimate(
    records: Iterable[Any], column: Column = "value", bounds: Bounds | None = None
) -> Estimate | None:
    """The mean of a column over the records that have it, its interval within the bounds;
    None where none has, or one is infinite."""
    known = [value for record in records if (value := value_of(record, column)) is not None]
    return over_draws(known, bounds) if known and all(map(math.isfinite, known)) else None


def over_draws(values: Sequence[float], bounds: Bounds | None = None) -> Estimate:
    """`mean_estimate` over draws; equal ones, such as networks without an error, have an interval
    of no width."""
    return mean_estimate(values, bounds if len(set(values)) > 1 else None)


def paired(
    records: Sequence[Any],
    beside: Sequence[Any],
    column: Column = "value",
    change: Callable[[Any, Any], float] = operator.sub,
) -> Estimate | None:
    """The mean change over the draws that both have a value of: of paired draws, whose scatter
    largely cancels."""
    first, second = (
        {one.draw: value for one in part if (value := value_of(one, column)) is not None}
        for part in (records, beside)
    )
    both = [change(first[draw], second[draw]) for draw in first if draw in second]
    return over_draws(both) if both else None


def ratio(
    records: Sequence[Any], beside: Sequence[Any], column: Column = "value"
) -> Estimate | None:
    """`paired`, of value / value, where the latter is not 0."""
    return paired(
        records, [one for one in beside if value_of(one, column)], column, operator.truediv
    )


def table(
    title: str,
    records: Iterable[Any],
    keys: Mapping[str, Column],
    columns: Mapping[str, Column],
    shares: Container[str] = (),
) -> Table:
    """A row for each value of the keys: the means of the columns, of which `shares` lie between 0
    and 1, and how many draws they are over."""
    rows = (
        (
            *key,
            *(
                estimate(group, columns[name], SHARE if name in shares else None)
                for name in columns
            ),
            len(group),
        )
        for key, group in grouped(records, *keys.values()).items()
    )
    return Table.of_rows(title, (*keys, *columns, "draws"), rows)


def rows_by(
    frame: "DataFrame", keys: Sequence[str], row: Callable[["DataFrame"], dict[str, Any]]
) -> dict[str, list[Any]]:
    """The columns of a table with a row for each value of the keys, in the order in which these
    first appear: the keys, then what `row` makes of their records."""
    groups = frame.groupby(list(keys), dropna=False, sort=False)
    rows = [{name: part[name].tolist()[0] for name in keys} | row(part) for _, part in groups]
    return {name: [one[name] for one in rows] for name in rows[0]} if rows else {}


def finding(
    number: str,
    sentence: str,
    known: str,
    value: Estimate | float,
    records: Iterable[Record | str],
    surety: tuple[str, ...] = (),
) -> Finding:
    """A sentence about records (or their keys). Of a study that is not yet written anew: `number`,
    `value` and `surety` are no longer shown."""
    rows = tuple(record if isinstance(record, str) else record.cell for record in records)
    return Finding(sentence, known, rows)


INTERVALS = "[95 % confidence interval]"
"""What stands behind a mean."""


def mean_over_draws(estimate: Estimate) -> str:
    """How an estimate is known."""
    return f"Attained; mean over {estimate.n} draws, {INTERVALS}."
