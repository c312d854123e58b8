"""Runs side by side: how each series of S that several runs share differs."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from wordsens.display.numbers import Estimate
from wordsens.display.view import Table
from wordsens.maps.registry import map_title
from wordsens.report.load import Run
from wordsens.statistics.mean import student
from wordsens.studies.sensitivity.series import Series, SizePoint, sensitivity_series
from wordsens.studies.sensitivity.summary import text_and_keys
from wordsens.sweeps.measurement import GIVEN

FEWEST_DRAWS = 3
"""Fewer draws have no interval."""


def comparison(runs: Sequence[Run]) -> Table:
    """One row per series and pair of runs: S of both at the longest length that they share, and the
    difference with its interval (Welch's t over draws)."""
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
                cells = (_estimate(a), second, _estimate(b), _difference(a, b))
                rows.append((map_title(one.map), texts, first, *cells))
    headings = ("map", "texts", "first run", "S first", "second run", "S second", "difference")
    note = (
        "S: means over draws with 95 % confidence intervals (Student's t). Difference: second "
        "minus first; no difference is claimed where its interval holds 0, or where a run has "
        f"fewer than {FEWEST_DRAWS} draws."
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


def _estimate(point: SizePoint) -> Estimate:
    if point.draws < FEWEST_DRAWS:
        return Estimate(point.mean, n=point.draws)
    reach = student(point.draws - 1) * point.standard_deviation / math.sqrt(point.draws)
    return Estimate(point.mean, point.mean - reach, point.mean + reach, n=point.draws)


def _difference(first: SizePoint, second: SizePoint) -> Estimate:
    value = second.mean - first.mean
    if min(first.draws, second.draws) < FEWEST_DRAWS:
        return Estimate(value)
    squares = [point.standard_deviation**2 / point.draws for point in (first, second)]
    # Welch and Satterthwaite's degrees of freedom.
    parts = sum(
        square**2 / (point.draws - 1)
        for square, point in zip(squares, (first, second), strict=True)
    )
    reach = student(sum(squares) ** 2 / parts) * math.sqrt(sum(squares)) if parts else 0.0
    return Estimate(value, value - reach, value + reach)
