"""The layer under every figure: panels side by side, marks with intervals, ticks, and one legend
below."""

from collections.abc import Sequence
from math import ceil, floor, log10
from numbers import Integral
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from wordsens.display.numbers import Estimate, column
from wordsens.plotting.style import COLUMN_INCHES, GUIDE, PAGE_INCHES, Style, StyledFigure

# The most letters in a line of a legend; a figure with longer names is a page wide.
LEGEND_LETTERS = 52

# A line through more points has no marks: they would touch.
_MOST_MARKS = 25

# The least distance of the labels of a logarithmic axis, as a share of its length.
_LEAST_GAP = 0.085


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
    grid = figure.subplots(rows, abreast, squeeze=False, sharey=share_y, subplot_kw=scales)
    pairs = list(grid.flatten())
    for axes in pairs[len(titles) :]:
        axes.set_visible(False)
    for axes, title in zip(pairs, titles, strict=False):
        axes.set_title(fill(plain(title), round(13 * width / abreast)))
    return figure, pairs[: len(titles)]


def name_axes(axes: Axes, x: str, y: str) -> None:
    """Label both axes, in lines that are no longer than they."""
    columns = axes.get_subplotspec().get_geometry()[1]  # pyright: ignore[reportOptionalMemberAccess]
    width = round(14 * axes.figure.get_figwidth() / columns)  # pyright: ignore[reportAttributeAccessIssue]
    axes.set(xlabel=fill(plain(x), width), ylabel=fill(plain(y), 30))


def marks(
    axes: Axes,
    rows: Any,
    style: Style,
    label: str,
    *,
    joined: bool,
    aside: float,
) -> None:
    """Draw numbers with their intervals.

    Args:
        rows: x, y, the ends of its interval, `low` and `high`, and `about`, what a page says of a
            mark; by default the number.
        joined: whether a line joins the marks.
        aside: points to the right, so that series hide no intervals of each other.
    """
    colour, marker, hollow = style
    places = rows["x"].tolist()
    reach = reaches(rows, positive=axes.get_yscale() == "log")
    bars = axes.errorbar(
        places,
        rows["y"].tolist(),
        yerr=reach if reach.any() else None,
        marker="" if joined and len(rows) > _MOST_MARKS else marker,
        color=colour,
        elinewidth=0.8,
        linestyle="-" if joined else "none",
        fillstyle="none" if hollow else "full",
        label=plain(label) or "_",
    )
    line, caps, bars_of_ends = bars.lines
    figure: Any = axes.get_figure()
    shift = ScaledTranslation(aside / 72, 0, figure.dpi_scale_trans)
    for artist in (line, *caps, *bars_of_ends):
        artist.set_transform(axes.transData + shift)
    name = label.partition(": exponent")[0]
    numbers = map(Estimate, rows["y"], rows["low"], rows["high"])
    shown = [f"{name}: {number} at {x}" for number, x in zip(numbers, column(places), strict=True)]
    about = rows["about"].where(rows["about"].notna(), shown)
    line.set_gid(f"marks{len(figure.titles)}")
    figure.titles[line.get_gid()] = tuple(title.removeprefix(": ") for title in about)


def reaches(rows: Any, *, positive: bool = False) -> Any:
    """How far the intervals of y reach down and up, 0 without one; with `positive` no lower than to
    a third of y, so that a logarithmic axis can show it."""
    values = rows["y"].astype(float)
    ends = rows[["low", "high"]].astype(float)
    if positive:
        ends["low"] = ends["low"].clip(lower=values / 3)
    return ends.sub(values, axis=0).abs().fillna(0.0).to_numpy().T


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
    few = every and counts and len(places) <= 8
    gaps = np.diff(np.log(places) if few and logarithmic else places)
    if few and (gaps >= _LEAST_GAP * gaps.sum()).all():
        axis.set_major_locator(FixedLocator(places))
    elif logarithmic:
        axis.set_major_locator(FixedLocator(round_values(*axis.get_view_interval())))
    elif counts:
        axis.set_major_locator(MaxNLocator(integer=True))
    if logarithmic:
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")


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


def finish(figure: StyledFigure, pairs: Sequence[Axes], title: str, caption: str) -> None:
    """Give the figure its title and caption, and below all panels one legend, in which each name
    stands once, those of lines last; the figure grows by it."""
    width = figure.get_figwidth()
    figure.suptitle(fill(plain(title), round(11 * width)))
    figure.caption = caption
    entries: dict[str, Any] = {}
    for axes in pairs:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    ordered = sorted(entries, key=lambda name: isinstance(entries[name], Line2D))
    names = [fill(name, LEGEND_LETTERS) for name in ordered]
    columns = 1 if width <= COLUMN_INCHES else 2 if max(map(len, names), default=0) > 34 else 3
    if names:
        lines = ceil(sum(name.count("\n") + 1 for name in names) / columns)
        figure.set_figheight(figure.get_figheight() + 0.14 * lines)
        handles = [entries[name] for name in ordered]
        figure.legend(handles, names, loc="outside lower center", ncols=columns)


def plain(text: Any) -> str:
    """The text as it is: a dollar sign starts no formula."""
    return str(text).replace("$", r"\$")
