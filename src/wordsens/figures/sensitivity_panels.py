"""S against n as data: the series of `summarise`, one panel for each kind of text."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from wordsens.certificates.base import CERTIFIED
from wordsens.experiments.experiment import text_title
from wordsens.experiments.sensitivity import Series, SizePoint, exponent_text, sensitivity_series
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Mark, Panel, Point
from wordsens.figures.styles import MOST_SERIES, Style, series_styles
from wordsens.maps.registry import map_title

TALLEST_BAND = 2.0
"""A series whose upper bounds go farther beyond everything else has no band: it would press the curves flat."""


def sensitivity_panels(records: Iterable[Record], *, title: str) -> FigureData | None:
    """S against n; None where no finished record is there. Series past MOST_SERIES are left out, with a note."""
    series = sensitivity_series(records)
    keys = list(dict.fromkeys(map(_key, series)))
    shown = dict(zip(keys[:MOST_SERIES], series_styles([(key, key[0]) for key in keys[:MOST_SERIES]]), strict=True))
    drawn = [one for one in series if _key(one) in shown]
    if not drawn:
        return None
    kinds = list(dict.fromkeys(one.text for one in drawn))
    top = TALLEST_BAND * max(
        value
        for one in drawn
        for point in one.points
        for value in (point.mean + point.standard_deviation, point.predicted or 0.0)
    )
    several = len({one.d for one in drawn}) > 1
    left = len(keys) - len(shown)
    return FigureData(
        title=title,
        caption=_caption(drawn, top),
        x_label="words in the text",
        y_label="word sensitivity S",
        panels=tuple(
            Panel(
                _capital(text_title(kind)),
                tuple(_curve(one, shown[_key(one)], top, with_d=several) for one in drawn if one.text == kind),
                _guide([one for one in drawn if one.text == kind]),
            )
            for kind in kinds
        ),
        left_out=f"{left} more series are in the tables; a figure tells {MOST_SERIES} apart." if left > 0 else "",
    )


_Key = tuple[str, int, tuple[str, ...]]


def _key(series: Series) -> _Key:
    return (series.map, series.d, series.varied)


def _curve(series: Series, style: Style, top: float, *, with_d: bool) -> Curve:
    uppers = [point.upper for point in series.points if point.upper is not None]
    ends = (series.points[0].n, series.points[-1].n)
    return Curve(
        ", ".join([map_title(series.map), *([f"d = {series.d}"] if with_d else []), *series.varied]),
        style,
        tuple(_mark(point, series) for point in series.points),
        note="" if series.fit is None else f"fit: n^{exponent_text(series.fit)}".replace("-", "\N{MINUS SIGN}"),
        band=tuple(
            (point.n, point.mean, point.upper)
            for point in series.points
            if point.upper is not None and max(uppers) <= top
        ),
        words=tuple((point.n, *point.words) for point in series.points if point.words is not None and series.all_words),
        fit=() if series.fit is None else tuple((n, series.fit.at(n)) for n in ends),
        predicted=tuple((point.n, point.predicted) for point in series.points if point.predicted is not None),
    )


def _mark(point: SizePoint, series: Series) -> Mark:
    told = [f"{point.draws} draw{'' if point.draws == 1 else 's'}"]
    if point.draws > 1:
        told.append(f"standard deviation {point.standard_deviation:.3g}")
    if point.upper is not None:
        told.append(f"at most {point.upper:.3g} ({'certified' if series.rigor == CERTIFIED else series.rigor})")
    if point.predicted is not None:
        range_note = "" if point.in_range else ", not compared at such sizes"
        told.append(f"predicted {point.predicted:.3g} for {series.predicted_of}{range_note}")
    spread = point.standard_deviation if point.draws > 1 else None
    low = None if spread is None else max(point.mean - spread, point.mean / 3)
    return Mark(point.n, point.mean, low, None if spread is None else point.mean + spread, tuple(told))


def _guide(series: Sequence[Series]) -> tuple[tuple[str, tuple[Point, ...]], ...]:
    """1/sqrt(n), a little under the lowest curve's first point."""
    sizes = sorted({point.n for one in series for point in one.points})
    if len(sizes) < 2:
        return ()
    start = 0.85 * min(one.points[0].mean for one in series)
    return (
        (
            "falls as 1/√n",
            tuple((n, start * math.sqrt(sizes[0] / n)) for n in np.geomspace(sizes[0], sizes[-1], 20).tolist()),
        ),
    )


def _caption(series: Sequence[Series], top: float) -> str:
    parts = ["Marks are means over draws, attained by perturbations that were found; bars are one standard deviation."]
    if any(one.fit is not None for one in series):
        parts.append("Lines are fitted power laws.")
    uppers = [point.upper for one in series for point in one.points if point.upper is not None]
    if uppers:
        sure = "certified bound" if all(one.rigor in (None, CERTIFIED) for one in series) else "upper bound"
        parts.append(f"Shaded up to the {sure}: the truth lies between.")
        if max(uppers) > top:
            parts.append("Bounds far above everything else are told on hover, not drawn.")
    if any(one.all_words and point.words for one in series for point in one.points):
        parts.append("The faint band holds every word's value, its middle half darker.")
    if any(one.predicted_of for one in series):
        parts.append("Dashed lines are predictions, not bounds.")
    return " ".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
