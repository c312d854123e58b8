"""Figures of records: those of their experiment, and any column against any other."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wordsens.evaluation.audit.cell import audited
from wordsens.intervals import Bounds
from wordsens.maps.registry import map_title
from wordsens.plotting.axes import Panel, Points, grid
from wordsens.plotting.figures import points
from wordsens.plotting.style import BARS, StyledFigure, StyleFile, in_style, styled, styles_of
from wordsens.sweeps.experiment import (
    Column,
    estimate,
    grouped,
    key_text,
    value_of,
    varying_columns,
)
from wordsens.sweeps.series import AxisSeries, column_title, series_along
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.sweep import finished_of_one
from wordsens.text.english import KINDS, kind_of

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
        # The audit's experiment lies below the figures and cannot name its own.
        draw = audit_figures if experiment.name == "audit" else experiment.figures or along_axes
        drawn = draw(done)
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


def points_of(
    records: Sequence[Record], x: Column, y: Column = "value", bounds: Bounds | None = None
) -> Points:
    """The mean of y over the draws at each x, sorted; places where no record has y are left out."""
    groups = {
        at: estimate(group, y, bounds)
        for (at,), group in grouped(records, lambda one: value_of(one, x)).items()
    }
    return sorted(
        ((at, value) for at, value in groups.items() if value is not None),
        key=lambda point: point[0],
    )


def curves_of(
    records: Sequence[Record],
    name: Column,
    x: Column,
    y: Column = "value",
    bounds: Bounds | None = None,
) -> dict[str, Points]:
    """`points_of` by the name of their series."""
    curves = {
        key: points_of(group, x, y, bounds)
        for (key,), group in grouped(records, lambda one: value_of(one, name)).items()
    }
    return {key: points for key, points in curves.items() if points}


@styled
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
    means = [point for one in series for point in one.points]
    places = list(dict.fromkeys(place for place, _ in means))
    numbers = all(isinstance(place, int | float) for place in places)
    positive = numbers and min(places) > 0 and all(mean.value > 0 for _, mean in means)
    logarithmic = logarithmic and positive
    drawn, maps = Panel("", {}), {}
    for one in series:
        label = _label(one, fitted=logarithmic)
        maps[label] = dict(one.keys).get("map")
        drawn.curves[label] = list(one.points)
        if logarithmic and one.exponent is not None and one.constant is not None:
            ends = one.points[0][0], one.points[-1][0]
            drawn.fits[label] = [(end, one.constant * end**one.exponent.value) for end in ends]
    figure = grid(
        "",
        [drawn],
        styles_of(maps),
        (x.replace("_", " "), column_title(done, y)),
        log="xy" if logarithmic else "",
        caption=BARS.replace("draws", "records"),
    )
    assert figure is not None, "series have points"
    return figure


def _label(series: AxisSeries, *, fitted: bool) -> str:
    named = [(name, value) for name, value in series.keys if value is not None]
    texts = {"map": map_title, "text": str}
    parts = [texts.get(name, partial(key_text, name))(value) for name, value in named]
    label = ", ".join(parts) or "all records"
    return f"{label}: exponent {series.exponent}" if fitted and series.exponent else label


_MEASURES = {
    "removal": "A word is deleted",
    "sensitivity": "A word's vector is moved up to its length",
    "swap": "A word is replaced by the best real word",
}


def audit_figures(records: Sequence[Record]) -> Figures:
    """The relative change of the output against the text's tokens, a mark for each measured
    word."""
    columns: dict[str, list[Any]] = {"tokens": [], "change": [], "kind": [], "what": [], "word": []}
    words = [(text.tokens, word) for text in map(audited, records) for word in text.measured]
    words.sort(key=lambda pair: KINDS.index(kind_of(pair[1].word)))
    for name, title in _MEASURES.items():
        for tokens, word in words:
            if (change := getattr(word, name)) > 0:
                by = f" by “{word.swapped_for}”" if name == "swap" else ""
                row = (tokens, change, kind_of(word.word), title, f"“{word.word}”{by}")
                for cells, cell in zip(columns.values(), row, strict=True):
                    cells.append(cell)
    if not columns["change"]:
        return {}
    figure = points(
        columns,
        x="tokens",
        y="change",
        colour="kind",
        panel="what",
        log="xy",
        about="word",
        share_y=False,
        labels={"tokens": "tokens in the text", "change": "change of the output, relative"},
        title="What one word does to its text",
        caption="Each mark is a word: how far the output moves, relative to its size.",
    )
    return {"audit": figure}
