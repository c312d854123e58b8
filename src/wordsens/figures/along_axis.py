"""Records along any axis to a matplotlib figure. Nothing is read or written here, and pyplot is not used."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wordsens.errors import InputError, MissingExtraError
from wordsens.experiments.series import AxisSeries, column_title, series_along
from wordsens.experiments.store import as_records
from wordsens.figures.style_file import COLUMN_INCHES, StyledFigure, StyleFile, styled
from wordsens.figures.styles import MOST_SERIES, round_values, series_styles, spaced
from wordsens.maps.registry import map_title

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_HEIGHT_INCHES = 2.3
_LEGEND_LINE_INCHES = 0.14
_LEGEND_SIGN_INCHES, _LETTER_INCHES = 0.6, 0.049
_MOST_TICKS = 12
_SPARE = 1.05
_GUIDE = "1/√n, the fall of a fully connected layer"


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
    """The mean of y against x, a curve for each series; bars are one standard deviation of the records.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.
        x, y: columns. Along n the guide 1/sqrt(n) is drawn where both axes are logarithmic.
        by: the columns that tell series apart; None for every key of the specs that would else be averaged over.
        logarithmic: both axes, where x and y are positive numbers; the fitted power laws are drawn then, and their
            exponents stand in the legend, with 95 % intervals, or standard errors where there is none.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: more series than a figure can tell apart, or what `series_along` refuses.
    """
    done = [record for record in as_records(records) if record.done]
    series = series_along(done, x, y, by)
    if len(series) > MOST_SERIES:
        raise InputError(
            f"`by` makes {len(series)} series, but a figure tells at most {MOST_SERIES} apart; choose some with "
            "KEY=VALUE, and draw several figures"
        )
    places = list(dict.fromkeys(point.x for one in series for point in one.points))
    numbers = all(isinstance(place, int | float) for place in places)
    logarithmic = logarithmic and numbers and min(places) > 0 and all(one.points[0].mean > 0 for one in series)
    labels = [_label(one, logarithmic) for one in series]
    width = max(COLUMN_INCHES, _LEGEND_SIGN_INCHES + _LETTER_INCHES * max(map(len, labels)))
    size = (width, _HEIGHT_INCHES + _LEGEND_LINE_INCHES * len(series))
    figure = StyledFigure(figsize=size, layout="constrained")
    panel = figure.subplots()
    if logarithmic:
        panel.set_xscale("log")
        panel.set_yscale("log")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
        ends = [
            point.mean + sign * point.standard_deviation for one in series for point in one.points for sign in (-1, 1)
        ]
        low, high = min(end for end in ends if end > 0) / _SPARE, max(ends) * _SPARE
        panel.set_ylim(low, high)
        panel.yaxis.set_major_locator(FixedLocator(round_values(low, high)))
        panel.yaxis.set_minor_locator(FixedLocator([]))
        if len(places) <= _MOST_TICKS:
            panel.xaxis.set_major_locator(FixedLocator(spaced(sorted(places))))
            panel.xaxis.set_minor_locator(FixedLocator(sorted(places)))
    elif not numbers:
        panel.set_xticks(range(len(places)), [str(place) for place in places])
    styles = series_styles([(one.keys, dict(one.keys).get("map")) for one in series])
    for one, label, (colour, marker, hollow) in zip(series, labels, styles, strict=True):
        at = [point.x if numbers else places.index(point.x) for point in one.points]
        panel.errorbar(
            at,
            [point.mean for point in one.points],
            yerr=[point.standard_deviation for point in one.points],
            fmt=marker,
            color=colour,
            linestyle="none" if logarithmic and one.fit else "-",
            fillstyle="none" if hollow else "full",
            label=label,
        )
        if logarithmic and one.fit is not None:
            panel.plot(at, [one.fit.at(place) for place in at], color=colour)
    if logarithmic and x == "n" and len(places) > 1:
        sizes = np.geomspace(min(places), max(places))
        start = max(one.points[0].mean for one in series)
        panel.plot(sizes, start * (sizes / sizes[0]) ** -0.5, ":", color="0.5", label=_GUIDE)
    panel.set_xlabel(x.replace("_", " "))
    panel.set_ylabel(column_title(done, y))
    figure.legend(loc="outside lower center")
    return figure


def _label(series: AxisSeries, fitted: bool) -> str:
    names = {"map": map_title}
    shown = [
        names.get(name, str)(value) if name in ("map", "text") else f"{name} = {value}"
        for name, value in series.keys
        if value is not None
    ]
    label = ", ".join(shown) or "all records"
    if fitted and series.fit is not None:
        low_high = series.interval
        spread = (
            f"± {series.fit.standard_error:.3f}" if low_high is None else f"({low_high[0]:.3f} to {low_high[1]:.3f})"
        )
        label += ": exponent " + f"{series.fit.exponent:.3f} {spread}".replace("-", "\N{MINUS SIGN}")
    return label
