"""Figures of records: those of their experiment, and any column against any other."""

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from wordsens.errors import InputError
from wordsens.intervals import Bounds
from wordsens.plotting.axes import Points
from wordsens.plotting.figures import label_of, lines
from wordsens.plotting.style import BARS, MOST_SERIES, StyledFigure, StyleFile, in_style
from wordsens.sweeps.experiment import Column, estimate, grouped, varying_columns
from wordsens.sweeps.series import column_title, series_along
from wordsens.sweeps.store import Record, as_frame, as_records
from wordsens.sweeps.study import Study
from wordsens.sweeps.sweep import finished_of_one

Figures = dict[str, Any]
"""By the name of the file."""

_MOST_AXES = 3
"""The most axes of a sweep besides the length that have a figure each."""


def of_experiment(records: Any, *, style: StyleFile = None) -> Figures:
    """The figures of an experiment, by the names of the files that `wordsens paper` writes.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or they are of several experiments.

    >>> of_experiment(ws.read_records("out"))["sensitivity"]  # doctest: +SKIP
    """
    experiment, done = finished_of_one(records)
    with in_style(style):
        whole = as_frame(done) if isinstance(experiment, Study) and experiment.figures else done
        drawn = (experiment.figures or along_axes)(whole)
    shown = {name: figure for name, figure in drawn.items() if figure is not None}
    for figure in shown.values():
        figure.style = style
    return shown


def save_figures(records: Sequence[Record], folder: Path, style: StyleFile) -> list[Path]:
    """Write the figures of an experiment's records as PDF, SVG and PNG, and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, figure in of_experiment(records, style=style).items():
        for suffix in ("pdf", "svg", "png"):
            paths.append(folder / f"{file}.{suffix}")
            figure.savefig(paths[-1])
    return paths


def along_axes(records: Sequence[Record], besides: Sequence[str] = ()) -> Figures:
    """A figure for each axis of a sweep that has several values, all of them numbers; for at most
    three."""
    axes = [
        name
        for name, values in varying_columns(records, besides=besides).items()
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    ]
    return {f"along-{axis.replace('_', '-')}": along(records, axis) for axis in axes[:_MOST_AXES]}


def curves_of(
    records: Sequence[Record],
    name: Column,
    x: Column,
    y: Column = "value",
    bounds: Bounds | None = None,
) -> dict[str, Points]:
    """For each series, the mean of y over the draws at each x, sorted; places where no record has y
    are left out."""
    curves: dict[str, Points] = {}
    for (series, place), group in grouped(records, name, x).items():
        if (mean := estimate(group, y, bounds)) is not None:
            curves.setdefault(series, []).append((place, mean))
    return {series: sorted(curve, key=itemgetter(0)) for series, curve in curves.items()}


def along(
    records: Any,
    x: str,
    y: str = "value",
    *,
    by: Sequence[str] | None = None,
    logarithmic: bool = True,
    style: StyleFile = None,
) -> StyledFigure:
    """The mean of y against x, a curve for each series; bars are 95 % confidence intervals over the
    records.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.
        x, y: columns.
        by: the columns that tell series apart; None for every key of the specs that would else be
            averaged over.
        logarithmic: both axes, where x and y are positive numbers, with the fitted power laws; the
            legend gives their exponents with 95 % confidence intervals.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: more series than a figure can tell apart, or what `series_along` refuses.
    """
    done = [record for record in as_records(records) if record.done]
    series = series_along(done, x, y, by)
    if len(series) > MOST_SERIES:
        raise InputError(
            f"`by` gives {len(series)} series, but a figure tells at most {MOST_SERIES} apart; "
            "choose some with KEY=VALUE, and draw several figures"
        )
    means = [point for one in series for point in one.points]
    numbers = all(isinstance(place, int | float) for place, _ in means)
    positive = numbers and all(place > 0 and mean.value > 0 for place, mean in means)
    logarithmic = logarithmic and positive
    labels = {x: x.replace("_", " "), y: column_title(done, y)}
    keys: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for one in series:
        keys, fit = dict(one.keys) or {"records": "all records"}, dict[Any, float]()
        if logarithmic and one.exponent is not None and one.constant is not None:
            name = label_of(keys, list(keys))
            labels[name] = f"{name}: exponent {one.exponent}"
            fit = {place: one.constant * place**one.exponent.value for place, _ in one.points}
        rows += [{x: place, y: mean, "fit": fit.get(place)} | keys for place, mean in one.points]
    return lines(
        {name: [row[name] for row in rows] for name in rows[0]},
        x=x,
        y=y,
        colour=list(keys),
        log="xy" if logarithmic else "",
        fit="fit",
        labels=labels,
        caption=BARS.replace("draws", "records"),
        style=style,
    )
