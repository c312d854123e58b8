"""A figure's data as the web page's script reads them."""

from dataclasses import dataclass
from typing import Any

from wordsens.figures.panels import Curve, FigureData, Panel


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report: of that run, what is drawn, and the same as a PNG in base64 ("" for none)."""

    run: str
    data: FigureData
    picture: str

    @property
    def script_data(self) -> dict[str, Any]:
        """The figure's data as the page's script reads them."""
        return {
            "x": {"label": self.data.x_label, "log": self.data.logarithmic[0]},
            "y": {"label": self.data.y_label, "log": self.data.logarithmic[1]},
            "shared": self.data.shared,
            "panels": [_panel(panel) for panel in self.data.panels],
        }

    @property
    def curves(self) -> list[Curve]:
        """Each name once, in the order of the legend."""
        return list({curve.name: curve for panel in self.data.panels for curve in panel.curves}.values())

    @property
    def guides(self) -> list[str]:
        """The names of the dotted lines."""
        return list(dict.fromkeys(name for panel in self.data.panels for name, _ in panel.guides))


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "curves": [_curve(curve) for curve in panel.curves],
        "guides": [{"name": name, "points": points} for name, points in panel.guides],
        "xLimits": panel.x_limits,
        "yLimits": panel.y_limits,
    }


def _curve(curve: Curve) -> dict[str, Any]:
    """Numbers to six digits: more is not to be seen, and doubles the page."""
    return {
        "name": curve.name,
        "colour": curve.colour,
        "shape": curve.style[1],
        "hollow": curve.style[2],
        "joined": curve.joined,
        "note": curve.note,
        "marks": [[*map(_short, (one.x, one.y, one.low, one.high)), *one.told] for one in curve.marks],
        "band": [list(map(_short, point)) for point in curve.band],
        "words": [list(map(_short, point)) for point in curve.words],
        "fit": [list(map(_short, point)) for point in curve.fit],
        "predicted": [list(map(_short, point)) for point in curve.predicted],
        "faint": [[list(map(_short, point)) for point in line] for line in curve.faint],
    }


def _short(value: float | int | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
