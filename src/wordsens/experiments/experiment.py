"""What an experiment is, and what its records say together."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.spec import Cell, Sweep, experiment_named
from wordsens.experiments.store import Record, as_records, spec_columns
from wordsens.statistics.mean import Estimate

if TYPE_CHECKING:
    from pandas import DataFrame

SCALES = ("quick", "laptop", "full")

Value = str | int | float | bool | Estimate | None


@dataclass(frozen=True)
class Claim:
    """A sentence that its records support, printed only where the interval of its number allows it.

    Attributes:
        number: its main number, in a few letters.
        sentence: complete without it.
        known: how the number is known.
        kinds: of knowledge that it rests on: attained, certified, predicted, 95 % interval.
    """

    number: str
    sentence: str
    known: str
    kinds: tuple[str, ...] = ("attained", "95 % interval")


@dataclass(frozen=True)
class Section:
    """One table: a line above it, the headings of its columns, rows of as many values."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def to_pandas(self) -> "DataFrame":
        """The table as a DataFrame, estimates as they are printed; `.to_latex(index=False)` of it is LaTeX."""
        import pandas as pd

        rows = [[str(value) if isinstance(value, Estimate) else value for value in row] for row in self.rows]
        return pd.DataFrame(rows, columns=list(self.headings))

    def to_latex(self) -> str:
        """The table as LaTeX (booktabs), numbers to three digits."""
        return self.to_pandas().to_latex(index=False, escape=True, float_format="%.3g", na_rep="")


@dataclass(frozen=True)
class Summary:
    """What the records of one experiment say.

    Attributes:
        sections: tables; the first is what a terminal prints.
        note: what their numbers mean.
        claims: sentences; the first is the answer.
    """

    sections: tuple[Section, ...]
    note: str
    claims: tuple[Claim, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`: an estimate is its mean, its standard error and its draws."""
        tables = [
            {
                "title": one.title,
                "rows": [
                    {
                        name: asdict(value) if isinstance(value, Estimate) else value
                        for name, value in zip(one.headings, row, strict=True)
                    }
                    for row in one.rows
                ],
            }
            for one in self.sections
        ]
        return {"tables": tables, "note": self.note, "claims": [asdict(one) for one in self.claims]}

    def to_latex(self) -> str:
        """The tables as LaTeX."""
        return "\n".join(one.to_latex() for one in self.sections)


Grids = tuple[list[dict[str, Any]], list[str]]
"""The grids of a preset, and what the user should know of how they were fitted to the data."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    Attributes:
        name: as specs and commands write it.
        Cell: the class of a cell's spec.
        measure: function of a cell that gives the columns of its record, `value` among them; the entry "arrays", a
            dictionary of tensors, is kept with `--witnesses`. What it raises becomes a failed record.
        preset: function of (scale, source of real texts, seed, labels) that gives the grids of `wordsens paper`; None
            where there is no such command.
        summarize: function of the finished records.
        value: what the column `value` is, in a figure.
        figures: the names of its figures in `wordsens.figures.of_experiments`.
        together: function of a cell; equal results mean that cells share costly work, a fit, so that one worker should
            get them together.
        most_together: so many of those at most: what a lost worker loses.
    """

    name: str
    Cell: type[Cell]
    measure: Callable[[Any], Mapping[str, Any]]
    preset: Callable[[str, Any, int, str | None], Grids] | None = None
    summarize: Callable[[Sequence[Record]], Summary] | None = None
    value: str = "value"
    figures: tuple[str, ...] = ()
    together: Callable[[Any], Hashable] | None = None
    most_together: int = 16

    def sweep(
        self, scale: str, source: Any = None, *, seed: int = 0, labels: str | None = None, search: str | None = None
    ) -> tuple[Sweep, list[str]]:
        """The experiment as the paper has it, and notices.

        Args:
            scale: quick, laptop or full.
            source: of real texts; None for the shipped reviews.
            seed: of every draw.
            labels: what experiments that learn learn; None for the texts' own.
            search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.
        """
        from wordsens.experiments.texts import ReviewsText

        if self.preset is None:
            raise InputError(f"`experiment` (={self.name!r}) has no preset; give a sweep of your own")
        require_choice("scale", scale, SCALES)
        grids, notices = self.preset(scale, source or ReviewsText(), seed, labels)
        if search is not None:
            counts = getattr(self.Cell, "COUNTS", ())
            grids = [
                {**{key: value for key, value in grid.items() if key not in counts}, "search": search} for grid in grids
            ]
        common = {"seed": seed} if "seed" in self.Cell.model_fields else {}
        data = {"name": f"paper-{self.name}-{scale}", "experiment": self.name, "common": common, "grids": grids}
        return Sweep.parse(data), list(dict.fromkeys(notices))


def summarize(records: Any) -> Summary:
    """What the records of one experiment say: its tables and sentences.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.

    Raises:
        InputError: no record is finished, they are of several experiments, or of one without a summary.

    >>> summarize(ws.read_records("out")).claims  # doctest: +SKIP
    """
    done = [record for record in as_records(records) if record.done]
    names = list(dict.fromkeys(record.experiment for record in done))
    if len(names) != 1:
        raise InputError(f"`records` must be finished ones of one experiment, and are of {', '.join(names) or 'none'}")
    function = experiment_named(names[0]).summarize
    if function is None:
        raise InputError(f"`records` are of {names[0]!r}, which has no summary")
    return function(done)


REPLICATES = frozenset({"seed", "draw", "sample"})
"""Keys that name a repetition: records that differ in nothing else are draws of one quantity."""


def varying_columns(records: Iterable[Any], *, besides: Iterable[str] = ()) -> dict[str, list[Any]]:
    """The columns of the specs, other than repetitions and `besides`, that have several values; the values sorted."""
    seen: dict[str, dict[Any, None]] = {}
    for record in records:
        for name, value in spec_columns(record.spec).items():
            seen.setdefault(name, {})[value] = None
    left = REPLICATES | set(besides)
    return {name: sorted(values, key=rank) for name, values in seen.items() if len(values) > 1 and name not in left}


def require_alike(records: Iterable[Any], *, besides: Iterable[str]) -> None:
    """InputError where what is drawn or averaged together differs in a column of the specs other than `besides`."""
    for name, values in varying_columns(records, besides=besides).items():
        listed = ", ".join(map(str, values[:4]))
        raise InputError(
            f"`records` has several values of {name} ({listed}{', ...' if len(values) > 4 else ''}), which would be "
            f"taken together; filter them, such as [r for r in records if r.{name} == {values[-1]!r}]"
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
        "dataset": "the dataset",
        "given": "the text",
        "gaussian": "Gaussian texts",
        "orthogonal": "orthogonal texts",
        "correlated": "correlated texts",
        "repeated": "texts of repeated words",
    }
    return names.get(kind, kind)


def by_draw(records: Sequence[Any], column: str = "value") -> dict[int, float]:
    """The column's value in each draw that has one."""
    return {record.draw: value for record in records if (value := getattr(record, column)) is not None}


def ratio(records: Sequence[Any], beside: Sequence[Any]) -> Estimate | None:
    """The mean over the draws that both have of value / value: of paired draws, whose scatter largely cancels."""
    own, other = by_draw(records), by_draw(beside)
    both = [own[draw] / other[draw] for draw in own if other.get(draw)]
    return Estimate.of(both) if both else None


def mean_over_draws(estimate: Estimate) -> str:
    """How an estimate is known."""
    return f"Attained; mean over {estimate.draws} draws, ± one standard error."
