"""Tables of a report: what each experiment's records say, failures; and the records as
downloads."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from wordsens.display.content import Download, Section, Table
from wordsens.errors import InputError
from wordsens.report.load import Part, Run
from wordsens.sweeps.experiment import compact, printed

_LEFT_OUT = {
    "spec",
    "libraries",
    "cell",
    "status",
    "error",
    "map_content",
    "peak_memory_mb",
    "content",
    "code",
}
"""Columns of records that a download does without, beside lists."""


def table_section(runs: Sequence[Run]) -> list[Section]:
    """The summaries of the experiments of each run, what failed, and the records."""
    several = len(runs) > 1
    parts = [
        (part, f" ({run.name})" if several else "", run)
        for run in runs
        for part in run.parts
        if part.done
    ]
    shown: list[Any] = [table for part, of, _ in parts for table in _summary(part, of)]
    if failures := tuple(
        (run.name, record.cell, record.error or "") for run in runs for record in run.failed
    ):
        note = "The same command tries them again."
        shown.append(
            Table(
                "Failed measurements",
                ("run", "cell", "error"),
                failures,
                note,
                most=200,
                folded=True,
            )
        )
    for part, of, run in parts:
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{run.name}-" * several)
        about = f"{len(part.done):,} records{of}"
        shown.append(Download(f"{name}{part.name}.csv", _csv(part), about))
    return [Section("Tables and records", tuple(shown))]


def _summary(part: Part, of: str) -> Iterator[Table]:
    """The tables of an experiment that has a summary; none of records that differ in more than it
    tells."""
    try:
        summary = part.summary
    except InputError:
        return
    if summary is not None:
        note = f"{summary.note} {summary.details}".strip()
        for one in map(compact, summary.tables):
            if one.rows:
                yield replace(
                    printed(one),
                    title=f"{one.title}{of}",
                    note=note,
                    most=len(one.rows),
                    folded=True,
                )


def _csv(part: Part) -> str:
    """The keys and numbers of an experiment's records, without lists."""
    names = [
        name
        for name in part.records[0].columns
        if name not in _LEFT_OUT
        and any(_is_scalar(record.columns.get(name)) for record in part.done)
    ]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([record.columns.get(name) for name in names] for record in part.done)
    return file.getvalue()


def _is_scalar(value: Any) -> bool:
    return (
        value not in (None, "")
        and not isinstance(value, tuple)
        and not str(value).startswith(("[", "{"))
    )
