"""Tables of the report: plain cells, numbers with what they are sorted by."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.audit import audited
from wordsens.experiments.experiment import text_title
from wordsens.experiments.generalization import LIMIT, generalization_series
from wordsens.experiments.sensitivity import GIVEN, sensitivity_series
from wordsens.experiments.sweep import experiment_named
from wordsens.maps.registry import map_title
from wordsens.report.load import Part, Run
from wordsens.report.texts import measured_text
from wordsens.statistics.mean import Estimate
from wordsens.statistics.trend import Trend

ROWS = 500
"""A table shows so many rows: a page of 5,000 took a browser over a second to lay out."""

_HIDDEN = (
    *("cell", "spec", "status", "error", "libraries", "machine", "started", "wordsens_version", "code", "experiment"),
    "map_content",
    *(
        "dtype",
        "device",
        "threads",
        "peak_memory_mb",
        "evaluations",
        "map_seed",
        "word_choice",
        "text_content",
        "audit",
    ),
    *("content", "tokens", "whole_words", "swapped_for", "moved", "measured", "rows", "audit"),
    *("first", "second", "tokens_first", "tokens_second", "prompts", "answers"),
)
"""Columns of a record that are told elsewhere, or are lists as text; tuples are left out too."""

_OWN_TABLES = ("sensitivity", "generalization", "attention")
"""Experiments whose tables stand elsewhere."""


@dataclass(frozen=True)
class Cell:
    """One entry: as it is shown, and the number by which it is sorted (None: by its text)."""

    text: str
    number: float | int | None = None


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Attributes:
        title: a heading.
        headings: of the columns.
        rows: of cells.
        note: what the numbers mean, and what was left out.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def is_number(self, column: int) -> bool:
        """True where every entry that is not empty is a number."""
        known = [row[column] for row in self.rows if row[column].text]
        return bool(known) and all(cell.number is not None for cell in known)


def run_tables(runs: Sequence[Run]) -> list[Table]:
    """The series of all runs side by side, the records of each, and what failed."""
    several = len(runs) > 1
    made = [_exponents(runs), _generalization(runs), _given_words(runs), _words(runs)]
    for run in runs:
        made += [table for part in run.parts for table in _summary(part, run.name if several else "")]
        made += [_records(part, run.name if several else "") for part in run.parts]
    return [one for one in (*made, _failures(runs)) if one is not None and one.rows]


def number(value: float | int | None, digits: int = 3) -> Cell:
    """A number to so many digits; an empty cell for None."""
    if value is None or value != value:
        return Cell("")
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"
    return Cell(shown.replace("-", "\N{MINUS SIGN}"), float(value))


def _exponents(runs: Sequence[Run]) -> Table | None:
    """One row a series; two columns a run."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        records = [one for part in _parts(run, "sensitivity") for one in part.done if one.text != GIVEN]
        for series in sensitivity_series(records):
            found.setdefault((series.map, series.text, series.varied, series.d), {})[run.name] = series
    several = len(runs) > 1
    headings = ["map", "texts", "d"]
    for run in runs:
        of = f", {run.name}" if several else ""
        headings += [f"words{of}", f"S at the last{of}", f"upper{of}", f"exponent{of}", f"interval{of}"]
    rows = []
    for (name, text, varied, d), own in found.items():
        cells = [Cell(map_title(name)), Cell(", ".join([text_title(text), *varied])), number(d)]
        for run in runs:
            cells += _of_series(own.get(run.name))
        rows.append(tuple(cells))
    note = (
        "S is attained: a lower bound. Intervals of the exponents: 95 %, bootstrap over texts; with fewer than five "
        "texts, two standard errors either way."
    )
    return Table("Word sensitivity against length", tuple(headings), tuple(rows), note)


def _of_series(series: Any) -> list[Cell]:
    if series is None:
        return [Cell("")] * 5
    first, last = series.points[0], series.points[-1]
    law = Trend.of(series.fit, series.interval)
    sizes = f"{first.n}–{last.n}" if last.n > first.n else str(last.n)
    interval = "" if law is None else f"{law.low:.3f} to {law.high:.3f}".replace("-", "\N{MINUS SIGN}")
    exponent = Cell("") if law is None else number(law.exponent)
    return [Cell(sizes, last.n), number(last.mean), number(last.upper), exponent, Cell(interval)]


def _generalization(runs: Sequence[Run]) -> Table | None:
    rows = []
    for run in runs:
        for part in _parts(run, "generalization"):
            try:
                series = generalization_series(part.done)
            except InputError:
                continue
            for one in series:
                cells = [Cell(run.name)] if len(runs) > 1 else []
                cells += [Cell(map_title(one.map)), Cell(text_title(one.text)), number(one.n), number(one.texts)]
                cells += [Cell(one.training), number(one.samples), number(one.accuracy), number(one.least_alignment)]
                rows.append((*cells, number(one.median()), number(one.noticed)))
    headings = ["run"] if len(runs) > 1 else []
    headings += ["map", "texts", "words", "N", "training", "samples", "held-out accuracy", "least F"]
    headings += [f"median error, γ < {LIMIT:g}", "share below 1"]
    note = "N: texts learned. F: feature alignment. Errors are attained: less may be possible."
    return Table("One word changed, the label flipped", tuple(headings), tuple(rows), note)


def _summary(part: Part, run: str) -> Iterator[Table]:
    """The tables of a kind that has a summary."""
    function = None if part.name in _OWN_TABLES else experiment_named(part.name).summarize
    if function is None or not part.done:
        return
    summary = function(part.done)
    for one in summary.sections:
        rows = tuple(tuple(_summarised(value) for value in row) for row in one.rows)
        yield Table(
            f"{one.title}{f', {run}' if run else ''}", one.headings, rows, f"{summary.note} {summary.details}".strip()
        )


def _summarised(value: Any) -> Cell:
    if isinstance(value, Estimate):
        return Cell(str(value).replace("-", "\N{MINUS SIGN}"), value.mean)
    return number(value) if isinstance(value, int | float) or value is None else Cell(value)


def _words(runs: Sequence[Run]) -> Table | None:
    """Every measured word of the audits."""
    rows = []
    for run in runs:
        for part in _parts(run, "audit"):
            for record in part.done:
                for word in audited(record).measured:
                    cells = [Cell(run.name)] if len(runs) > 1 else []
                    cells += [Cell(word.word), Cell(record.source), number(record.tokens), number(word.place)]
                    cells += [number(word.sensitivity), number(word.removal), number(word.swap)]
                    rows.append((*cells, Cell(word.swapped_for)))
    headings = ["run"] if len(runs) > 1 else []
    headings += ["word", "text", "tokens", "place", "S", "taken out", "best real swap", "swapped for"]
    note = "S is attained: a lower bound. Place: 0 the first word, 1 the last."
    return Table("Words of the audit", tuple(headings), *_cut(rows, note))


def _given_words(runs: Sequence[Run]) -> Table | None:
    """Every word of the texts that `wordsens measure` was given."""
    rows = []
    for run in runs:
        for part in _parts(run, "sensitivity"):
            for record in (one for one in part.done if one.text == GIVEN):
                text = measured_text(record)
                for word in () if text is None else text.words:
                    cells = [Cell(run.name)] if len(runs) > 1 else []
                    cells += [Cell(word.text), Cell(record.source or ""), Cell(map_title(record.map))]
                    cells += [number(word.attained), number(word.upper), number(word.swap), Cell(word.swapped_for)]
                    rows.append(tuple(cells))
    headings = ["run"] if len(runs) > 1 else []
    headings += ["word", "text", "map", "S", "upper", "best real swap", "swapped for"]
    return Table(
        "Words", tuple(headings), *_cut(rows, "S is attained: a lower bound; no word goes beyond its upper bound.")
    )


def _records(part: Part, run: str) -> Table | None:
    names = [name for name in part.records[0].columns if name not in _HIDDEN]
    values = {name: [getattr(record, name) for record in part.done] for name in names}
    shown = [name for name, own in values.items() if any(_is_told(value) for value in own)]
    rows = [tuple(_cell(name, getattr(record, name)) for name in shown) for record in part.done[:ROWS]]
    title = f"Records: {part.name}{f', {run}' if run else ''}"
    left = len(part.done) - len(rows)
    note = f"The first {len(rows):,} of {len(part.done):,}; `wordsens sweep export` writes all." if left > 0 else ""
    return Table(title, tuple(name.replace("_", " ") for name in shown), tuple(rows), note)


def _is_told(value: Any) -> bool:
    return value not in (None, "") and not isinstance(value, tuple)


def _cell(name: str, value: Any) -> Cell:
    if isinstance(value, bool) or value is None:
        return Cell("" if value is None else "yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(str(value), value) if name in ("seed", "draw") else number(value, 4)
    return Cell(map_title(value) if name == "map" else str(value))


def _failures(runs: Sequence[Run]) -> Table | None:
    rows = [(Cell(run.name), Cell(record.cell), Cell(record.error or "")) for run in runs for record in run.failed]
    return Table("Failed measurements", ("run", "cell", "error"), *_cut(rows, "The same command tries them again."))


def _cut(rows: Sequence[tuple[Cell, ...]], note: str) -> tuple[tuple[tuple[Cell, ...], ...], str]:
    """The first ROWS rows, and the note with what is missing."""
    if len(rows) <= ROWS:
        return tuple(rows), note
    return tuple(rows[:ROWS]), f"{note} The first {ROWS:,} of {len(rows):,} rows."


def _parts(run: Run, kind: str) -> Iterable[Part]:
    return (part for part in run.parts if part.name == kind)
