"""Records along any axis of a sweep as data: the series of `series_along` in one panel."""

from collections.abc import Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.experiment import varying_columns
from wordsens.experiments.series import AxisSeries, series_along
from wordsens.figures.panels import Curve, FigureData, Mark, Panel
from wordsens.figures.styles import MOST_SERIES, series_styles
from wordsens.maps.registry import map_title


def numeric_axes(records: Sequence[Any], besides: Sequence[str] = ()) -> list[str]:
    """The keys of the records' specs, repetitions aside, that have several values, all of them numbers."""
    varying = varying_columns((record for record in records if record.done), besides=besides)
    return [
        name
        for name, values in varying.items()
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    ]


def axis_panels(records: Sequence[Any], x: str, *, title: str, y_label: str = "value") -> FigureData | None:
    """The mean value against x, a curve a series; None where the records cannot be averaged along it."""
    try:
        series = series_along(records, x)
    except InputError:
        return None
    shown = series[:MOST_SERIES]
    styles = series_styles([(one.keys, dict(one.keys).get("map")) for one in shown])
    positive = all(point.x > 0 for one in shown for point in one.points)
    rising = all(point.mean > 0 for one in shown for point in one.points)
    curves = tuple(
        Curve(
            _name(one),
            style,
            tuple(
                Mark(
                    point.x,
                    point.mean,
                    point.mean - point.standard_deviation if point.count > 1 else None,
                    point.mean + point.standard_deviation if point.count > 1 else None,
                    (f"{point.count} record{'' if point.count == 1 else 's'}",),
                )
                for point in one.points
            ),
            note=_exponent(one),
            joined=one.fit is None,
            fit=() if one.fit is None else tuple((place, one.fit.at(place)) for place in _ends(one)),
        )
        for one, style in zip(shown, styles, strict=True)
    )
    left = len(series) - len(shown)
    return FigureData(
        title=title,
        caption="Marks are means over records; bars are one standard deviation. Lines are fitted power laws.",
        x_label=x.replace("_", " "),
        y_label=y_label,
        panels=(Panel("", curves),),
        logarithmic=(True if positive else None, True if rising else None),
        left_out=f"{left} more series are in the tables; a figure tells {MOST_SERIES} apart." if left > 0 else "",
    )


def _ends(series: AxisSeries) -> tuple[Any, Any]:
    return series.points[0].x, series.points[-1].x


def _name(series: AxisSeries) -> str:
    told = [
        map_title(value) if name == "map" else f"{name.replace('_', ' ')} = {value}"
        for name, value in series.keys
        if value is not None
    ]
    return ", ".join(told) or "all records"


def _exponent(series: AxisSeries) -> str:
    if series.fit is None:
        return ""
    if series.interval is not None:
        told = f"exponent {series.fit.exponent:.2f} ({series.interval[0]:.2f} to {series.interval[1]:.2f})"
    else:
        told = f"exponent {series.fit.exponent:.2f} ± {series.fit.standard_error:.2f}"
    return told.replace("-", "\N{MINUS SIGN}")
