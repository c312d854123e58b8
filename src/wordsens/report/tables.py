"""Tables of a report: series side by side, what each experiment's records say, failures; and records as downloads."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wordsens.display.content import Download, Section, Table, minus
from wordsens.errors import InputError
from wordsens.maps.registry import map_title
from wordsens.report.load import Part, Run
from wordsens.statistics.power_law import Trend
from wordsens.studies.generalization.summary import LIMIT, generalization_series
from wordsens.studies.sensitivity.series import sensitivity_series
from wordsens.sweeps.experiment import printed, text_title
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.sweep import experiment_named

ROWS = 200
"""A table shows so many rows; the downloads have all."""

_ELSEWHERE = ("sensitivity", "generalization", "attention")
"""Experiments whose summary stands in a table of its own here, or in a figure."""

_LEFT_OUT = {"spec", "libraries", "cell", "status", "error", "map_content", "peak_memory_mb", "content", "code"}
"""Columns of records that a download does without, beside lists."""


def table_section(runs: Sequence[Run]) -> list[Section]:
    """The series of all runs side by side, the summaries of the experiments, what failed, and the records."""
    tables = [_exponents(runs), _generalization(runs)]
    for run in runs:
        tables += [table for part in run.parts for table in _summary(part, _of(run, runs))]
    tables.append(_failures(runs))
    downloads = [_records(part, run, runs) for run in runs for part in run.parts if part.done]
    shown = [table for table in tables if table is not None and table.rows]
    return [Section("Tables and records", (*shown, *downloads))]


def _of(run: Run, runs: Sequence[Run]) -> str:
    return f", {run.name}" if len(runs) > 1 else ""


def _exponents(runs: Sequence[Run]) -> Table | None:
    """One row a series; five columns a run."""
    rows_of: dict[tuple[Any, ...], dict[str, Any]] = {}
    headings = ["map", "texts", "d"]
    for run in runs:
        of = _of(run, runs)
        headings += [f"words{of}", f"S at the last{of}", f"upper{of}", f"exponent{of}", f"95 % CI{of}"]
        records = [one for part in _parts(run, "sensitivity") for one in part.done if one.text != GIVEN]
        for series in sensitivity_series(records):
            rows_of.setdefault((series.map, series.text, series.varied, series.d), {})[run.name] = series
    rows = []
    for (name, text, varied, d), by_run in rows_of.items():
        cells: list[Any] = [map_title(name), ", ".join([text_title(text), *varied]), d]
        for run in runs:
            cells += _of_series(by_run.get(run.name))
        rows.append(tuple(cells))
    note = "S is attained: a lower bound. Intervals: bootstrap over texts; with fewer than five, Student's t."
    return Table("Word sensitivity against length", tuple(headings), tuple(rows), note, ROWS, folded=True)


def _of_series(series: Any) -> list[Any]:
    if series is None:
        return [None] * 5
    first, last = series.points[0], series.points[-1]
    law = Trend.of(series.fit, series.interval)
    sizes = f"{first.n}–{last.n}" if last.n > first.n else str(last.n)
    interval = None if law is None else minus(f"{law.low:.3f} to {law.high:.3f}")
    return [sizes, last.mean, last.upper, None if law is None else law.exponent, interval]


def _generalization(runs: Sequence[Run]) -> Table | None:
    rows = []
    for run in runs:
        for part in _parts(run, "generalization"):
            try:
                series = generalization_series(part.done)
            except InputError:
                continue
            for one in series:
                cells = (map_title(one.map), text_title(one.text), one.n, one.texts, one.training, one.samples)
                numbers = (one.accuracy, one.least_alignment, one.median(), one.noticed)
                rows.append((*((run.name,) if len(runs) > 1 else ()), *cells, *numbers))
    headings = ["run"] if len(runs) > 1 else []
    headings += ["map", "texts", "words", "N", "training", "samples", "held-out accuracy", "least F"]
    headings += [f"median error, γ < {LIMIT:g}", "share below 1"]
    note = "N: texts learned. F: feature alignment. Errors are attained: less may be possible."
    return Table("One word changed, the label flipped", tuple(headings), tuple(rows), note, ROWS, folded=True)


def _summary(part: Part, of: str) -> Iterator[Table]:
    """The tables of a kind that has a summary."""
    summarize = None if part.name in _ELSEWHERE else experiment_named(part.name).summarize
    if summarize is None or not part.done:
        return
    summary = summarize(part.done)
    note = f"{summary.note} {summary.details}".strip()
    for one in summary.tables:
        yield replace(printed(one), title=f"{one.title}{of}", note=note, most=ROWS, folded=True)


def _failures(runs: Sequence[Run]) -> Table | None:
    rows = [(run.name, record.cell, record.error or "") for run in runs for record in run.failed]
    note = "The same command tries them again."
    return Table("Failed measurements", ("run", "cell", "error"), tuple(rows), note, ROWS, folded=True)


def _records(part: Part, run: Run, runs: Sequence[Run]) -> Download:
    """The records of an experiment as CSV: keys and numbers, without lists."""
    names = [
        name
        for name in part.records[0].columns
        if name not in _LEFT_OUT and any(_is_said(record.columns.get(name)) for record in part.done)
    ]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([record.columns.get(name) for name in names] for record in part.done)
    name = "-".join([*(["".join(c if c.isalnum() else "-" for c in run.name)] if len(runs) > 1 else []), part.name])
    return Download(f"{name}.csv", file.getvalue(), f"{len(part.done):,} records{_of(run, runs)}")


def _is_said(value: Any) -> bool:
    return value not in (None, "") and not isinstance(value, tuple) and not str(value).startswith(("[", "{"))


def _parts(run: Run, kind: str) -> Iterable[Part]:
    return (part for part in run.parts if part.name == kind)
