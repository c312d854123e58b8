"""Runs side by side: how each series of S that several runs share differs."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from wordsens.display.view import Table
from wordsens.intervals import LEAST, difference
from wordsens.maps.registry import map_title
from wordsens.report.load import Run
from wordsens.studies.sensitivity.series import Series, sensitivity_series
from wordsens.studies.sensitivity.summary import text_and_keys
from wordsens.sweeps.measurement import GIVEN


def comparison(runs: Sequence[Run]) -> Table:
    """One row per series and pair of runs: S of both at the longest length that they share, and the
    difference with its interval (square and add)."""
    series = {run.name: _series(run) for run in runs}
    rows = []
    for key in dict.fromkeys(key for group in series.values() for key in group):
        shared = [(name, group[key]) for name, group in series.items() if key in group]
        for (first, one), (second, other) in combinations(shared, 2):
            points = {point.n: point for point in other.points}
            common = [(point, points[point.n]) for point in one.points if point.n in points]
            if common:
                a, b = common[-1]
                texts = f"{text_and_keys(one)}, {a.n} words"
                cells = (a.value, second, b.value, difference(b.value, a.value))
                rows.append((map_title(one.map), texts, first, *cells))
    headings = ("map", "texts", "first run", "S first", "second run", "S second", "difference")
    note = (
        "S: means over draws with 95 % confidence intervals (Student's t). Difference: second "
        "minus first; no difference is claimed where its interval holds 0, or where a run has "
        f"fewer than {LEAST} draws."
    )
    return Table.of_rows("S side by side", headings, rows, note=note, most=len(rows))


def _series(run: Run) -> dict[tuple[Any, ...], Series]:
    records = [
        record
        for part in run.parts
        if part.name == "sensitivity"
        for record in part.done
        if record.text != GIVEN
    ]
    return {(one.map, one.text, one.d, one.varied): one for one in sensitivity_series(records)}
