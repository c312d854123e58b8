"""A study: a question that cells answer together. Its cell, measure, presets, tables, findings and
figures; and what all studies do with their records, which are a DataFrame."""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wordsens.display.numbers import Estimate, column, plural
from wordsens.display.view import Finding, Table, View
from wordsens.errors import InputError
from wordsens.intervals import Bounds, ends, mean_estimate
from wordsens.maps.registry import map_title
from wordsens.results import Result, split_estimates
from wordsens.sweeps.spec import Cell
from wordsens.sweeps.store import spec_columns

if TYPE_CHECKING:
    from pandas import DataFrame

# The grids of a preset, and what the user should know of how they were fitted to the data.
Preset = tuple[list[dict[str, Any]], list[str]]

# By title, the most important first. Cells may be an Estimate.
Tables = dict[str, "DataFrame"]

# Keys that name a repetition: records that differ in nothing else are draws of one quantity.
REPLICATES = ("seed", "draw", "sample")

# The bounds of an accuracy, an AUC and any other share.
SHARE = (0.0, 1.0)

# The explanation of the brackets after a mean.
INTERVALS = "[95 % confidence interval]"

# The caption of a figure of means.
BARS = "Marks are means over draws; bars are 95 % confidence intervals."

_NO_FINDING = "Too few draws for an interval: no difference is claimed. A larger scale has more."


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study, whole.

    Attributes:
        name: as specs and commands write it; `module:NAME` for a user's own study.
        Cell: the class of a cell's spec.
        measure: function of a cell that gives the columns of its record, `value` among them; the
            entry "arrays", a dictionary of tensors, is kept with `--witnesses`. An error becomes a
            failed record.
        preset: function of (scale, source of real texts, seed, labels), and of choices of its own
            by keyword, that gives the grids of `wordsens paper`; None where there is no such
            command.
        tables: function of the finished records.
        findings: function of the finished records and the tables that gives at most three
            sentences, the answer first.
        figures: function of the finished records that gives matplotlib figures by the names of
            their files. Without it each axis of a sweep has a figure.
        note: what the numbers of the tables mean, in two lines.
        value: what the column `value` is, in a figure.
        together: function of a cell; neighbours with equal results share costly work, a fit or a
            search, so that one worker should get them together. By default each is alone.
        most_together: how many of those at most: what a lost worker loses.
        measure_together: function of such cells that gives the columns of each, to rounding those
            of `measure`; None where they are measured one by one.
    """

    name: str
    Cell: type[Cell]
    measure: Callable[[Any], Mapping[str, Any]]
    preset: Callable[..., Preset] | None = None
    tables: "Callable[[DataFrame], Tables] | None" = None
    findings: "Callable[[DataFrame, Tables], Iterable[Finding]] | None" = None
    figures: "Callable[[DataFrame], Mapping[str, Any]] | None" = None
    note: str = ""
    value: str = "value"
    together: Callable[[Any], Hashable] = id
    most_together: int = 16
    measure_together: Callable[[Sequence[Any]], Sequence[Mapping[str, Any]]] | None = None

    def summary(self, records: "DataFrame") -> "Summary":
        """What finished records of this study say together.

        Raises:
            InputError: the study has no tables, or the records do not go together.
        """
        if self.tables is None:
            raise InputError(f"`records` are of {self.name!r}, which has no summary")
        tables = {title: frame for title, frame in self.tables(records).items() if len(frame)}
        findings = () if self.findings is None else tuple(self.findings(records, tables))
        return Summary(tuple(map(_table, tables, tables.values())), self.note, findings)


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Result):
    """What the records of one study say.

    Attributes:
        tables: whose cells may be an Estimate; the first is what a terminal prints.
        note: what their numbers mean.
        findings: at most three sentences, the answer first.
    """

    tables: tuple[Table, ...]
    note: str
    findings: tuple[Finding, ...]

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
        plain, tables = super().to_dict(), []
        for table in plain["tables"]:
            rows = zip(*table["columns"].values(), strict=True)
            named = [dict(zip(table["columns"], row, strict=True)) for row in rows]
            tables.append({"title": table["title"], "rows": named})
        return plain | {"tables": tables}

    def view(self, *, verbose: bool = False) -> View:
        """The findings, the first table and the note; with `verbose` every table."""
        shown = list(map(compact, self.tables if verbose else self.tables[:1]))
        parts = [
            replace(table, note=self.note * (table is shown[-1]), most=max(20, len(table)))
            for table in shown
        ]
        more = len(self.tables) - len(shown)
        notes = (f"{plural(more, 'more table')} with --verbose.",) if more > 0 else ()
        return View(self.headline, (*self.findings[1:], *(parts or [self.note])), notes=notes)

    def __str__(self) -> str:
        return self.show()


def _table(title: str, frame: "DataFrame") -> Table:
    columns = {str(name): frame[name].astype(object) for name in frame}
    columns = {name: cells.where(cells.notna(), None).tolist() for name, cells in columns.items()}
    if "map" in columns:
        columns["map"] = list(map(map_title, columns["map"]))
    return Table(title, columns)


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
        str(value) if name in ("map", "text") else f"{name} = {column([value])[0]}"
        for name, value in same.items()
        if value is not None
    )
    title = ": ".join(filter(None, (table.title, ", ".join(constants))))
    left = {name: cells for name, cells in table.columns.items() if name not in same}
    return replace(table, title=title, columns=left)


def over_draws(values: Iterable[Any], bounds: Bounds | None = None) -> Estimate | None:
    """The mean of the values that are known, with Student's interval within the bounds, for `agg`;
    None where none is known, or one is infinite. Equal values, such as accuracies of 1, have an
    interval of no width."""
    import pandas as pd

    known = [float(value) for value in values if not pd.isna(value)]
    if not known or not all(map(math.isfinite, known)):
        return None
    return mean_estimate(known, bounds if len(set(known)) > 1 else None)


def means(
    records: "DataFrame",
    keys: Sequence[str],
    columns: Mapping[str, str],
    shares: Iterable[str] = (),
) -> "DataFrame":
    """One row per value of the keys: the keys, the means of the columns over draws under their
    headings, and `draws`, the number of records. Rows are in the order of numbers, and of texts as
    these first appear.

    Args:
        records: each is in one row.
        keys: columns; a missing value is a value.
        columns: by heading, the column that is averaged.
        shares: the headings of those between 0 and 1.
    """
    import pandas as pd

    groups = records.groupby(list(keys), dropna=False, sort=False)
    shares = set(shares)
    cells = {
        heading: groups[name].agg(over_draws, SHARE if heading in shares else None)
        for heading, name in columns.items()
    }
    rows = pd.DataFrame(cells | {"draws": groups.size()}).reset_index()
    return rows.sort_values(list(keys), key=_places, kind="stable", ignore_index=True)


def _places(cells: Any) -> Any:
    """What a column is sorted by: numbers, or the places where its texts first appear."""
    numbers = cells.dtype.kind in "iuf"
    return cells if numbers else cells.map({cell: at for at, cell in enumerate(cells.unique())})


def changes(
    records: "DataFrame",
    base: "DataFrame",
    keys: Sequence[str],
    column: str = "value",
    *,
    relative: bool = False,
) -> "DataFrame":
    """One row per value of the keys that both have: the keys, and under `change` the mean over
    their common draws of the column's difference, records minus base, or with `relative` of the
    ratio. The scatter of paired draws largely cancels."""
    draw = [name for name in REPLICATES if name in records and name in base]
    needed = [*keys, *draw, column]
    pairs = records[needed].merge(base[needed], on=[*keys, *draw], suffixes=("", " of base"))
    after, before = pairs[column], pairs[f"{column} of base"]
    pairs["change"] = after / before.where(before != 0) if relative else after - before
    groups = pairs.groupby(list(keys), dropna=False, sort=False)["change"]
    return groups.agg(over_draws).reset_index()


def side(estimate: Estimate | None, none: float = 0.0) -> int:
    """1 or -1 where the interval lies above or below the value of no change; 0 where it holds that
    value, or there is no interval."""
    low, high = (none, none) if estimate is None else ends(estimate)
    return int(low > none) - int(high < none)


def tally(estimates: Iterable[Estimate | None], up: str, down: str, *, none: float = 0.0) -> str:
    """How many of the estimates lie above the value of no change, how many below, and of how many
    no difference is claimed.

    >>> tally([Estimate(2.0, 1.5, 2.5), Estimate(1.0, 0.8, 1.2)], "grows", "falls", none=1.0)
    'grows in 1 of 2 settings; in 1 no difference is claimed'
    """
    sides = [side(estimate, none) for estimate in estimates]
    ups, downs, others = (sides.count(which) for which in (1, -1, 0))
    clauses = [f"{verb} in {count}" for verb, count in ((up, ups), (down, downs)) if count]
    if not clauses:
        return f"no difference is claimed in {plural(len(sides), 'setting')}"
    clauses[0] += f" of {plural(len(sides), 'setting')}"
    return "; ".join([*clauses, *([f"in {others} no difference is claimed"] if others else [])])


def varying_columns(records: "DataFrame", *, besides: Iterable[str] = ()) -> dict[str, list[Any]]:
    """The columns of the specs, other than repetitions and `besides`, that have several values; the
    values sorted."""
    by_name: dict[str, dict[Any, None]] = {}
    for spec in records["spec"]:
        for name, value in spec_columns(json.loads(spec)).items():
            by_name.setdefault(name, {})[value] = None
    left = {*REPLICATES, *besides}
    return {
        name: sorted(values, key=rank)
        for name, values in by_name.items()
        if len(values) > 1 and name not in left
    }


def require_alike(records: "DataFrame", by: Sequence[str], *, besides: Iterable[str] = ()) -> None:
    """InputError where records with one value of the `by` columns, which are averaged, differ in
    another column of the specs than `besides`."""
    for _, part in records.groupby(list(by), dropna=False):
        for name, values in varying_columns(part, besides=besides).items():
            listed = ", ".join(map(str, values[:4])) + ", ..." * (len(values) > 4)
            raise InputError(
                f"`records` has several values of {name} ({listed}), which would be taken "
                f"together; filter them, such as records[records[{name!r}] == {values[-1]!r}]"
            )


def rank(value: Any) -> tuple[int, float, str]:
    """Orders values of any kind: none at all, then numbers, then words."""
    import pandas as pd

    if pd.api.types.is_scalar(value) and pd.isna(value):
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
    """The name of a record's kind of text.

    >>> text_title("reviews"), text_title("gaussian")
    ('movie reviews', 'Gaussian texts')
    """
    names = {
        "reviews": "movie reviews",
        "dataset": "the dataset",
        "given": "the text",
        "gaussian": "Gaussian texts",
        "orthogonal": "orthogonal texts",
        "correlated": "correlated texts",
        "repeated": "texts of repeated words",
    }
    return names.get(kind, kind)
