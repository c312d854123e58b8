"""Figures as the page's component takes them, in the report's styles."""

from collections.abc import Sequence
from typing import Any

from wordsens.figures.panels import Curve, FigureData, Mark, Point
from wordsens.figures.styles import series_styles
from wordsens.report.figures import ReportFigure


def curve(name: str, of: str, points: Sequence[Point], told: Sequence[str] = (), *, joined: bool = True) -> Curve:
    """A curve in the colour that the map `of` has in every figure; `told` stands with all marks."""
    (style,) = series_styles([(name, of)])
    return Curve(name, style, tuple(Mark(x, y, told=tuple(told)) for x, y in points), joined=joined)


def drawn(data: FigureData) -> dict[str, Any]:
    """The data of a figure."""
    shown = ReportFigure("", data, "")
    legend = [
        {"name": one.name, "colour": one.colour, "shape": one.style[1], "hollow": one.style[2]} for one in shown.curves
    ]
    return {"title": data.title, "caption": data.caption, "legend": legend, **shown.script_data}
