"""A figure's data as a still picture, for pages whose script does not run. Nothing is read or written here."""

from collections.abc import Sequence
from itertools import pairwise
from textwrap import fill
from typing import Any

from wordsens.errors import MissingExtraError
from wordsens.figures.panels import Curve, FigureData, Number, Panel
from wordsens.figures.styles import round_values

try:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_FONT = 8
_PANEL_INCHES = (2.9, 2.3)
_LEGEND_LINE_INCHES = 0.17
_ABREAST = 4
_GUIDE = "#777777"
_APART, _TICKS = 1.25, 8
"""A logarithmic axis has its ticks at the marks, at most so many, where they lie apart by that factor or more."""
_LONG_LEGEND = 5
"""Longer legends stand in two columns."""
_TITLE_LETTERS, _LABEL_LETTERS, _NAME_LETTERS = 34, 38, 30
"""So many letters of a title, of the label below an axis, and of a name in the legend are as wide as a panel: more
would press it flat, or meet the next one's."""


def still_figure(data: FigureData) -> Figure:
    """The panels, at most four abreast, with the legend below."""
    names = list(dict.fromkeys(curve.name for panel in data.panels for curve in panel.curves))
    abreast = min(_ABREAST, len(data.panels))
    rows = -(-len(data.panels) // abreast)
    width, height = _PANEL_INCHES
    guides = {name for panel in data.panels for name, _ in panel.guides}
    columns = 2 if abreast > 1 and len(names) + len(guides) > _LONG_LEGEND else 1
    lines = -(-(len(names) + len(guides)) // columns)
    size = (width * max(abreast, 1.3), height * rows + _LEGEND_LINE_INCHES * (lines + 0.5))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, abreast, squeeze=False, sharey=data.shared).flatten()
    handles: dict[str, Any] = {}
    for place, panel in zip(axes, data.panels, strict=False):
        _draw(place, panel, data, handles)
    for place in axes[len(data.panels) :]:
        place.set_visible(False)
    wrapped = [fill(name, _NAME_LETTERS * max(abreast, 2)) for name in handles]
    figure.legend(
        handles.values(), wrapped, loc="outside lower center", frameon=False, fontsize=_FONT - 0.5, ncols=columns
    )
    return figure


def _draw(axes: Axes, panel: Panel, data: FigureData, handles: dict[str, Any]) -> None:
    for axis, scale, logarithmic in ((axes.xaxis, axes.set_xscale, 0), (axes.yaxis, axes.set_yscale, 1)):
        if data.logarithmic[logarithmic]:
            scale("log")
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    places = sorted({mark.x for curve in panel.curves for mark in curve.marks})
    if data.logarithmic[0] and len(places) == 1:  # a logarithmic axis of one value has no length
        (place,) = places
        axes.set_xlim(place / 2, place * 2)
    for curve in panel.curves:
        handles.setdefault(curve.name, _curve(axes, curve))
    for name, points in panel.guides:
        (line,) = axes.plot(*zip(*points, strict=True), color=_GUIDE, linestyle=":", linewidth=1.2)
        handles.setdefault(name, line)
    if panel.x_limits is not None:
        axes.set_xlim(panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(panel.y_limits)
    if data.logarithmic[0]:
        apart = all(b >= _APART * a for a, b in pairwise(places))
        _set_ticks(axes.xaxis, places if apart else round_values(*axes.get_xlim()))
    if data.logarithmic[1]:
        _set_ticks(axes.yaxis, round_values(*axes.get_ylim()))
    axes.set_title(fill(panel.title, _TITLE_LETTERS), fontsize=_FONT + 1)
    axes.set_xlabel(fill(data.x_label, _LABEL_LETTERS), fontsize=_FONT)
    axes.set_ylabel(data.y_label, fontsize=_FONT)
    axes.tick_params(labelsize=_FONT)
    axes.grid(True, which="major", linewidth=0.4, color="#dddddd")
    axes.set_axisbelow(True)


def _set_ticks(axis: Axis, values: Sequence[Number]) -> None:
    axis.set_major_locator(FixedLocator(values[:: -(-len(values) // _TICKS)]))
    axis.set_minor_locator(NullLocator())


def _curve(axes: Axes, curve: Curve) -> Any:
    colour, marker, hollow = curve.style
    if curve.band:
        x, low, high = (list(column) for column in zip(*curve.band, strict=True))
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
    if curve.words:
        x, least, low, high, most = (list(column) for column in zip(*curve.words, strict=True))
        axes.fill_between(x, least, most, color=colour, alpha=0.07, linewidth=0)
        axes.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0)
    for line in curve.faint:
        axes.plot(*zip(*line, strict=True), color=colour, linewidth=0.5, alpha=0.25)
    if curve.fit:
        axes.plot(*zip(*curve.fit, strict=True), color=colour, linewidth=1)
    if curve.predicted:
        axes.plot(*zip(*curve.predicted, strict=True), color=colour, linewidth=1, linestyle=(0, (4, 2)))
    below = [mark.y - (mark.y if mark.low is None else mark.low) for mark in curve.marks]
    above = [(mark.y if mark.high is None else mark.high) - mark.y for mark in curve.marks]
    return axes.errorbar(
        [mark.x for mark in curve.marks],
        [mark.y for mark in curve.marks],
        yerr=[below, above],
        fmt=marker,
        color=colour,
        linestyle="-" if curve.joined else "none",
        fillstyle="none" if hollow else "full",
        markersize=4,
        capsize=2,
        linewidth=1,
    )
