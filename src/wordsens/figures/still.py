"""A figure's data as a still picture, for pages whose script does not run. Nothing is read or written here."""

from textwrap import fill
from typing import Any

from wordsens.errors import MissingExtraError
from wordsens.figures.panels import Curve, FigureData, Panel

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_FONT = 8
_PANEL_INCHES = (2.9, 2.3)
_LEGEND_LINE_INCHES = 0.17
_ABREAST = 4
_GUIDE = "#777777"
_TITLE_LETTERS, _NAME_LETTERS = 34, 30
"""So many letters of a title, and of a name in the legend, are as wide as a panel: more would press it flat."""


def still_figure(data: FigureData) -> Figure:
    """The panels, at most four abreast, with the legend below."""
    names = list(dict.fromkeys(curve.name for panel in data.panels for curve in panel.curves))
    abreast = min(_ABREAST, len(data.panels))
    rows = -(-len(data.panels) // abreast)
    width, height = _PANEL_INCHES
    size = (width * max(abreast, 1.3), height * rows + _LEGEND_LINE_INCHES * (len(names) + 1))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, abreast, squeeze=False, sharey=data.shared).flatten()
    handles: dict[str, Any] = {}
    for place, panel in zip(axes, data.panels, strict=False):
        _draw(place, panel, data, handles)
    for place in axes[len(data.panels) :]:
        place.set_visible(False)
    wrapped = [fill(name, _NAME_LETTERS * max(abreast, 2)) for name in handles]
    figure.legend(handles.values(), wrapped, loc="outside lower center", frameon=False, fontsize=_FONT - 0.5)
    return figure


def _draw(axes: Axes, panel: Panel, data: FigureData, handles: dict[str, Any]) -> None:
    for axis, scale, logarithmic in ((axes.xaxis, axes.set_xscale, 0), (axes.yaxis, axes.set_yscale, 1)):
        if data.logarithmic[logarithmic]:
            scale("log")
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    places = {mark.x for curve in panel.curves for mark in curve.marks}
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
    axes.set_title(fill(panel.title, _TITLE_LETTERS), fontsize=_FONT + 1)
    axes.set_xlabel(data.x_label, fontsize=_FONT)
    axes.set_ylabel(data.y_label, fontsize=_FONT)
    axes.tick_params(labelsize=_FONT)
    axes.grid(True, which="major", linewidth=0.4, color="#dddddd")
    axes.set_axisbelow(True)


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
