"""The layer under every figure: panels side by side, what one pair of axes holds, and one legend
below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from numbers import Integral
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from wordsens.display.numbers import MINUS, Estimate, column
from wordsens.plotting.style import BARS, COLUMN_INCHES, GUIDE, PAGE_INCHES, Style, StyledFigure

Points = list[tuple[Any, Estimate]]

_MOST_MARKS = 25
"""A line through more points has no marks: they would touch."""

_ASIDE_POINTS = 8.0
"""The width in which the intervals of the series at one x lie side by side, at most 2.5 apart."""

_LEGEND_LETTERS = 52
"""The most letters in a line of a legend; a figure with longer names is a page wide."""

_LEAST_GAP = 0.085
"""The least distance of the labels of a logarithmic axis, as a share of its length."""


@dataclass
class Panel:
    """What one pair of axes holds.

    Attributes:
        title: above it.
        curves: by the name of their series, the marks.
        guides: by name, the points of a dotted line; None in a single point means the whole axis.
        bands: by series, each x with both ends of what is shaded.
        fits: by series, the points of a line that is drawn in place of the line through the marks.
        dashes: by series, the points of a dashed line.
        limits: of y; an end may be None.
        scattered: the series whose marks no line joins.
        label: of y, where panels differ in it.
        titles: by series, what a page says of each mark.
    """

    title: str
    curves: dict[str, Points]
    guides: Mapping[str, Sequence[tuple[float | None, float | None]]] = field(default_factory=dict)
    bands: dict[str, list[tuple[Any, float, float]]] = field(default_factory=dict)
    fits: dict[str, list[tuple[Any, float]]] = field(default_factory=dict)
    dashes: dict[str, list[tuple[Any, float]]] = field(default_factory=dict)
    limits: tuple[float | None, float | None] = (None, None)
    scattered: frozenset[str] = frozenset()
    label: str = ""
    titles: dict[str, list[str]] = field(default_factory=dict)


def grid(
    title: str,
    drawn: Sequence[Panel],
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    *,
    log: str = "",
    steps: bool = False,
    share_y: bool = True,
    caption: str = BARS,
) -> StyledFigure | None:
    """The figure of these panels, with one legend below; None where no panel has a mark.

    Args:
        title: above the panels.
        styles: by the name of the series.
        labels: of x and y.
        log: the logarithmic axes: "x", "y" or "xy".
        steps: whether lines are level from each x to the next.
        share_y: whether all panels have one scale of y.
        caption: what marks, intervals, bands and lines are.
    """
    drawn = [panel for panel in drawn if any(panel.curves.values())]
    if not drawn:
        return None
    long = len(drawn) == 1 and max(map(len, styles)) > _LEGEND_LETTERS
    figure, pairs = panels([panel.title for panel in drawn], log=log, share_y=share_y, wide=long)
    for axes, panel in zip(pairs, drawn, strict=True):
        axes.margins(x=0.07)
        _draw(axes, panel, styles, steps=steps)
        first = axes.get_subplotspec().is_first_col()  # pyright: ignore[reportOptionalMemberAccess]
        label = panel.label or labels[1]
        name_axes(axes, labels[0], label if first or not share_y else "")
    for axes, panel in zip(pairs, drawn, strict=True):  # with the limits that all panels give
        if panel.limits != (None, None):
            axes.set_ylim(*panel.limits)
        points = [point for curve in panel.curves.values() for point in curve]
        ticks(axes.xaxis, [x for x, _ in points if not isinstance(x, str)])
        ticks(axes.yaxis, [value.value for _, value in points], every=False)
    finish(figure, pairs, title, caption)
    return figure


def name_axes(axes: Axes, x: str, y: str) -> None:
    """Label both axes, in lines that are no longer than they."""
    columns = axes.get_subplotspec().get_geometry()[1]  # pyright: ignore[reportOptionalMemberAccess]
    width = round(14 * axes.figure.get_figwidth() / columns)  # pyright: ignore[reportAttributeAccessIssue]
    axes.set(xlabel=fill(plain(x), width), ylabel=fill(plain(y), 30))


def _draw(axes: Axes, panel: Panel, styles: Mapping[str, Style], *, steps: bool) -> None:
    curves = {name: panel.curves[name] for name in styles if panel.curves.get(name)}
    intervals = any(value.low is not None for curve in curves.values() for _, value in curve)
    apart = intervals * min(2.5, _ASIDE_POINTS / len(curves))
    for number, (name, curve) in enumerate(curves.items()):
        joined = name not in panel.scattered
        aside = joined * apart * (number - (len(curves) - 1) / 2)
        look = {"joined": joined and name not in panel.fits, "steps": steps, "aside": aside}
        marks(axes, curve, styles[name], name, titles=panel.titles.get(name, ()), **look)
    for name, fit in panel.fits.items():
        axes.plot(*zip(*fit, strict=True), color=styles[name][0])
    for name, line in panel.dashes.items():
        look = {"color": styles[name][0], "linestyle": (0, (4, 2)), "zorder": 1}
        axes.plot(*zip(*line, strict=True), **look)
    for name, band in panel.bands.items():
        x, low, high = zip(*band, strict=True)
        shade = {"color": styles[name][0], "alpha": 0.2, "linewidth": 0}
        axes.fill_between(x, low, high, step="post" if steps else None, **shade)
    for name, points in panel.guides.items():
        guide(axes, points, name)


def marks(
    axes: Axes,
    points: Points,
    style: Style,
    label: str,
    *,
    joined: bool = True,
    steps: bool = False,
    aside: float = 0.0,
    titles: Sequence[str] = (),
) -> Any:
    """Draw numbers with their intervals.

    Args:
        joined: whether a line joins the marks.
        steps: whether it is level from each x to the next.
        aside: points to the right, so that series hide no intervals of each other.
        titles: for each mark, what a page says of it; without them the number.
    """
    colour, marker, hollow = style
    places, values = [x for x, _ in points], [value.value for _, value in points]
    ends = [interval(value, positive=axes.get_yscale() == "log") for _, value in points]
    reach = np.abs(np.transpose(ends) - values)
    bars = axes.errorbar(
        places,
        values,
        yerr=reach if reach.any() else None,
        marker="" if joined and len(points) > _MOST_MARKS else marker,
        color=colour,
        elinewidth=0.8,
        linestyle="-" if joined else "none",
        drawstyle="steps-post" if steps else "default",
        fillstyle="none" if hollow else "full",
        label=plain(label) or "_",
    )
    line, caps, reaches = bars.lines
    shift = ScaledTranslation(aside / 72, 0, axes.figure.dpi_scale_trans)
    for artist in (line, *caps, *reaches):
        artist.set_transform(axes.transData + shift)
    name = label.partition(": exponent")[0]
    numbers = zip(map(str, (value for _, value in points)), column(places), strict=True)
    shown = [f"{name}: {value} at {x}".removeprefix(": ") for value, x in numbers]
    tell(axes, line, titles or shown)
    return bars


def interval(value: Estimate, *, positive: bool = False) -> tuple[float, float]:
    """Both ends of an interval, the value itself without one; on a logarithmic axis the lower one
    stays above 0."""
    if value.low is None or value.high is None:
        return value.value, value.value
    return (max(value.low, value.value / 3) if positive else value.low), value.high


def tell(axes: Axes, line: Any, titles: Sequence[str]) -> None:
    """Have a page show these titles of the marks of a line or scatter."""
    figure = axes.get_figure()
    if isinstance(figure, StyledFigure):
        line.set_gid(f"marks{len(figure.titles)}")
        figure.titles[line.get_gid()] = tuple(titles)


def guide(axes: Axes, points: Sequence[tuple[float | None, float | None]], label: str) -> None:
    """Draw a dotted line through these points, which are as many as it takes to be right on any
    axes; None in a single point means the whole axis."""
    look: dict[str, Any] = {"color": GUIDE, "linestyle": ":", "linewidth": 1.2, "zorder": 1}
    look["label"] = plain(label)
    ((x, y), *_) = points
    if x is None:
        axes.axhline(y or 0.0, **look)
    elif y is None:
        axes.axvline(x, **look)
    else:
        axes.plot(*zip(*points, strict=True), **look)


def ticks(axis: Axis, values: Sequence[Any], *, every: bool = True) -> None:
    """Plain numbers at an axis: whole ones for counts, `every` one where they are few; round ones
    on a logarithmic axis of other numbers."""
    places, logarithmic = sorted(set(values)), axis.get_scale() == "log"
    counts = bool(places) and all(isinstance(place, Integral) for place in places)
    few = every and counts and len(places) <= 8 and all(map(_is_round, places))
    gaps = np.diff(np.log(places) if few and logarithmic else places)
    if few and (gaps >= _LEAST_GAP * gaps.sum()).all():
        axis.set_major_locator(FixedLocator(places))
    elif logarithmic:
        axis.set_major_locator(FixedLocator(round_values(*axis.get_view_interval())))
    elif counts:
        axis.set_major_locator(MaxNLocator(integer=True))
    if logarithmic:
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", MINUS)))


def _is_round(count: int) -> bool:
    """True for a number that a person would write at an axis: one or two digits before its zeros,
    or a small number doubled again and again.

    >>> [count for count in (16, 39, 151, 250, 301, 384, 81920) if _is_round(count)]
    [16, 39, 250, 384, 81920]
    """
    return len(str(count).rstrip("0")) <= 2 or count < 10 * (count & -count)


def round_values(low: float, high: float) -> list[float]:
    """Three to five round numbers for the ticks of a logarithmic axis: 1-2-5 in each decade,
    fewer, or even steps.

    >>> round_values(8, 250), round_values(0.7, 400), round_values(42, 130)
    ([10.0, 20.0, 50.0, 100.0, 200.0], [1.0, 10.0, 100.0], [60.0, 80.0, 100.0, 120.0])
    """
    decades = [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]
    choices = [np.outer(decades, digits).ravel() for digits in ((1, 2, 5), (1, 3), (1,))]
    digits = ([1, 2, 5, 10], [1, 2.5, 5, 10])
    steps = [MaxNLocator(count, steps=each) for each in digits for count in (5, 4, 3, 6, 7)]
    choices += [np.asarray(locator.tick_values(low, high)) for locator in steps]
    inside = [places[(low <= places) & (places <= high)].tolist() for places in choices]
    return next((places for places in inside if 3 <= len(places) <= 5), [low, high])


def panels(
    titles: Sequence[str], *, log: str = "", share_y: bool = True, wide: bool = False
) -> tuple[StyledFigure, list[Axes]]:
    """A figure and its axes under these titles, at most three in a row; a single one is a column
    wide, or a page."""
    abreast = 1 if wide else 2 if len(titles) == 4 else min(3, len(titles))
    rows = ceil(len(titles) / abreast)
    width = COLUMN_INCHES if abreast == 1 and not wide else PAGE_INCHES
    figure = StyledFigure(figsize=(width, 1.95 * rows + 0.2), layout="constrained")
    scales = {f"{axis}scale": "log" if axis in log else "linear" for axis in "xy"}
    pairs = figure.subplots(rows, abreast, squeeze=False, sharey=share_y, subplot_kw=scales)
    pairs = list(pairs.flatten())
    for axes in pairs[len(titles) :]:
        axes.set_visible(False)
    for axes, title in zip(pairs, titles, strict=False):
        axes.set_title(fill(plain(title), round(13 * width / abreast)))
    return figure, pairs[: len(titles)]


def finish(figure: StyledFigure, pairs: Sequence[Axes], title: str, caption: str) -> None:
    """Give the figure its title and caption, and below all panels one legend, in which each name
    stands once; the figure grows by it."""
    width = figure.get_figwidth()
    figure.suptitle(fill(plain(title), round(11 * width)))
    figure.caption = caption
    entries: dict[str, Any] = {}
    for axes in pairs:
        handles, names = axes.get_legend_handles_labels()
        entries |= {n: h for n, h in zip(names, handles, strict=True) if n not in entries}
    entries = dict(sorted(entries.items(), key=lambda item: isinstance(item[1], Line2D)))
    names = [fill(name, _LEGEND_LETTERS) for name in entries]
    columns = 1 if width <= COLUMN_INCHES else 2 if max(map(len, names), default=0) > 34 else 3
    if names:
        lines = ceil(sum(name.count("\n") + 1 for name in names) / columns)
        figure.set_figheight(figure.get_figheight() + 0.14 * lines)
        figure.legend(list(entries.values()), names, loc="outside lower center", ncols=columns)


def plain(text: Any) -> str:
    """The text as it is: a dollar sign starts no formula."""
    return str(text).replace("$", r"\$")
