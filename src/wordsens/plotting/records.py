"""Records as figures: what their experiment draws; any column against any other; panels of means
with bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wordsens.display.numbers import Estimate
from wordsens.errors import InputError, MissingExtraError
from wordsens.intervals import Bounds
from wordsens.maps.registry import map_title
from wordsens.plotting.results import audit_figures
from wordsens.plotting.style import (
    BARS,
    COLUMN_INCHES,
    MOST_SERIES,
    Style,
    StyledFigure,
    StyleFile,
    bar_ends,
    guide,
    in_style,
    legend_below,
    log_axes,
    marks,
    panels,
    series_styles,
    styled,
)
from wordsens.sweeps.experiment import Column, estimate, grouped, value_of, varying_columns
from wordsens.sweeps.series import AxisSeries, column_title, series_along
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.sweep import finished_of_one

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

Figures = dict[str, Any]
"""By the name of the file."""

_AXES = 3
"""So many axes of a sweep besides the length have a figure each."""


def of_experiment(records: Any, *, style: StyleFile = None) -> Figures:
    """The figures of the experiment whose records these are, by the names of the files that
    `wordsens paper` writes.

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
    return {f"along-{axis.replace('_', '-')}": along(records, axis) for axis in axes[:_AXES]}


Points = list[tuple[Any, Estimate]]


_ASIDE_POINTS = 8.0
"""The width in which the bars of the series at one x stand side by side, 2.5 apart at most."""


@dataclass
class Panel:
    """One pair of axes: series of points by their name, dotted guides, shaded bands, limits and the
    label of y."""

    title: str
    curves: dict[str, Points]
    guides: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    bands: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    scattered: frozenset[str] = frozenset()
    label: str = ""


def grid(
    title: str,
    drawn: Sequence[Panel],
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    *,
    logarithmic: tuple[bool, bool] = (False, False),
    share_y: bool = True,
    caption: str = BARS,
) -> StyledFigure | None:
    """Panels of means with bars, one legend below; curves named in `scattered` have no line. None
    without panels."""
    drawn = [one for one in drawn if any(one.curves.values())]
    if not drawn:
        return None
    names = dict.fromkeys(name for one in drawn for name in (*one.curves, *one.guides))
    figure, axes = panels([one.title for one in drawn], entries=len(names), share_y=share_y)
    for panel, one in zip(axes, drawn, strict=True):
        with_bars = any(
            value.low is not None for points in one.curves.values() for _, value in points
        )
        apart = with_bars * min(2.5, _ASIDE_POINTS / len(one.curves))
        for place, (name, points) in enumerate(one.curves.items()):
            joined = name not in one.scattered
            aside = joined * apart * (place - (len(one.curves) - 1) / 2)
            marks(
                panel,
                points,
                styles[name],
                name,
                joined=joined,
                positive=logarithmic[1],
                aside=aside,
            )
        for name, band in one.bands.items():
            places, low, high = zip(*band, strict=True)
            panel.fill_between(places, low, high, color=styles[name][0], alpha=0.2, linewidth=0)
        for name, points in one.guides.items():
            guide(panel, points, name)
        places = [x for points in one.curves.values() for x, _ in points]
        if logarithmic[0]:
            log_axes(panel, places)
        elif all(isinstance(place, int) for place in places):
            panel.set_xticks(sorted(set(places)))
        if logarithmic[1]:
            log_axes(panel, limits=_log_limits(drawn if share_y else [one]))
        if one.limits is not None:
            panel.set_ylim(one.limits)
        panel.set_xlabel(labels[0])
        if not share_y or panel.get_subplotspec().is_first_col():  # pyright: ignore[reportOptionalMemberAccess]
            panel.set_ylabel(one.label or labels[1])
    legend_below(figure, axes)
    figure.suptitle(title)
    figure.caption = caption
    return figure


def _log_limits(drawn: Sequence[Panel]) -> tuple[float, float]:
    """Of y: every bar and band, above 0, with a little to spare."""
    values = [v for one in drawn for points in one.curves.values() for _, v in points]
    ends = [end for value in values for end in bar_ends(value, positive=True)]
    ends += [
        end
        for one in drawn
        for band in one.bands.values()
        for _, low, high in band
        for end in (low, high)
    ]
    ends += [y for one in drawn for points in one.guides.values() for _, y in points]
    positive = [end for end in ends if end > 0] or [0.1, 1.0]
    return min(positive) / 1.1, max(positive) * 1.1


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


LEGEND_SIGN_INCHES, LETTER_INCHES = 0.75, 0.049


@styled
def along(
    records: Any,
    x: str,
    y: str = "value",
    *,
    by: Sequence[str] | None = None,
    logarithmic: bool = True,
    style: StyleFile = None,
) -> Figure:
    """The mean of y against x, a curve for each series; bars are 95 % intervals over the
    records.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.
        x, y: columns.
        by: the columns that tell series apart; None for every key of the specs that would else be
            averaged over.
        logarithmic: both axes, where x and y are positive numbers; the fitted power laws are drawn
            then, and their exponents stand in the legend, with 95 % intervals.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: more series than a figure can tell apart, or what `series_along` refuses.
    """
    done = [record for record in as_records(records) if record.done]
    series = series_along(done, x, y, by)
    if len(series) > MOST_SERIES:
        raise InputError(
            f"`by` makes {len(series)} series, but a figure tells at most {MOST_SERIES} apart; "
            "choose some with "
            "KEY=VALUE, and draw several figures"
        )
    places = list(dict.fromkeys(x for one in series for x, _ in one.points))
    numbers = all(isinstance(place, int | float) for place in places)
    logarithmic = (
        logarithmic
        and numbers
        and min(places) > 0
        and all(one.points[0][1].value > 0 for one in series)
    )
    labels = [_axis_label(one, fitted=logarithmic) for one in series]
    width = max(COLUMN_INCHES, LEGEND_SIGN_INCHES + LETTER_INCHES * max(map(len, labels)))
    figure = StyledFigure(figsize=(width, 2.3 + 0.14 * len(series)), layout="constrained")
    panel = figure.subplots()
    styles = series_styles([(one.keys, dict(one.keys).get("map")) for one in series])
    ends: list[float] = []
    for one, label, style_of_series in zip(series, labels, styles, strict=True):
        estimates = [(x if numbers else places.index(x), mean) for x, mean in one.points]
        fitted = logarithmic and one.exponent is not None
        marks(panel, estimates, style_of_series, label, joined=not fitted, positive=logarithmic)
        if logarithmic and one.exponent is not None and one.constant is not None:
            reach = np.geomspace(one.points[0][0], one.points[-1][0], 25)
            panel.plot(reach, one.constant * reach**one.exponent.value, color=style_of_series[0])
        ends += [end for _, value in estimates for end in bar_ends(value, positive=logarithmic)]
    if logarithmic:
        log_axes(panel, places, (min(ends) / 1.05, max(ends) * 1.05))
    elif not numbers:
        panel.set_xticks(range(len(places)), [str(place) for place in places])
    panel.set_xlabel(x.replace("_", " "))
    panel.set_ylabel(column_title(done, y))
    legend_below(figure, [panel])
    figure.caption = BARS.replace("draws", "records")
    return figure


def _axis_label(series: AxisSeries, *, fitted: bool) -> str:
    shown = [
        map_title(value) if name == "map" else str(value) if name == "text" else f"{name} = {value}"
        for name, value in series.keys
        if value is not None
    ]
    label = ", ".join(shown) or "all records"
    return (
        f"{label}: exponent {series.exponent}" if fitted and series.exponent is not None else label
    )
