"""The figures of each run: their data for the page's script, and a picture for where no script runs."""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.experiment import text_title
from wordsens.experiments.sensitivity import GIVEN
from wordsens.figures.audit_panels import audit_panels
from wordsens.figures.axis_panels import axis_panels, numeric_axes
from wordsens.figures.control_panels import CONTROL_FIGURES
from wordsens.figures.correlation_panels import correlation_panels
from wordsens.figures.departure_panels import departure_error_panels, departure_panels
from wordsens.figures.generalization_panels import error_panels, frontier_panels
from wordsens.figures.panels import Curve, FigureData, Panel
from wordsens.figures.sensitivity_panels import sensitivity_panels
from wordsens.figures.several_words_panels import several_words_panels
from wordsens.figures.similarity_panels import SIMILARITY_FIGURES
from wordsens.figures.still import still_figure
from wordsens.maps.registry import base_name, map_entry
from wordsens.report.load import Part, Run

AXES = 3
"""So many axes of a sweep besides the length have a figure each."""

DOTS_PER_INCH = 130
"""Of a still picture: sharp on paper at the width of a column, and about 40 kB."""

_TITLES = {
    "rf": "How far one word moves a fully connected layer",
    "drf": "How far one word moves deep fully connected layers",
    "attention": "How far one word moves attention",
    "transformer": "How far one word moves transformers",
}


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


def run_figures(runs: Sequence[Run], *, pictures: bool = True) -> list[ReportFigure]:
    """The figures of every run; those of one title stand next to each other, for runs to be compared."""
    made = [
        ReportFigure(run.name, data, _png(data) if pictures else "")
        for run in runs
        for part in run.parts
        if part.done
        for data in _MAKERS.get(part.name, _along)(part)
    ]
    titles = list(dict.fromkeys(one.data.title for one in made))
    return sorted(made, key=lambda one: titles.index(one.data.title))


def _sensitivity(part: Part) -> Iterator[FigureData]:
    groups: dict[str, list[Any]] = {}
    for record in part.done:
        if record.text != GIVEN:
            groups.setdefault(_group(record.map), []).append(record)
    for group, own in groups.items():
        if len({record.n for record in own}) > 1:
            title = _TITLES.get(group, f"How far one word moves {group}")
            if (data := sensitivity_panels(own, title=title)) is not None:
                yield data
        yield from _along_axes(own, besides=("n", "d", "depth"), y_label="word sensitivity S")


def _group(recorded: str) -> str:
    """Maps of one group share a figure."""
    name = base_name(recorded)
    try:
        family = map_entry(name).family
    except InputError:
        return "transformer" if " layer " in recorded else recorded
    return name if family == "dense" else family


def _generalization(part: Part) -> Iterator[FigureData]:
    for text in dict.fromkeys(record.text for record in part.done):
        own = [record for record in part.done if record.text == text]
        name = text_title(text)
        found = (
            error_panels(own, title=f"One word changed, the label flipped: {name}"),
            frontier_panels(own, title=f"The least error that one word can reach: {name}"),
        )
        yield from (data for data in found if data is not None)


def _audit(part: Part) -> Iterator[FigureData]:
    if (data := audit_panels(part.done, title="What one word does to its text")) is not None:
        yield data


def _departures(part: Part) -> Iterator[FigureData]:
    found = (
        departure_panels(part.done, title="What the published protocol does to S, switch by switch"),
        departure_error_panels(part.done, title="What the published protocol does to the error"),
    )
    yield from (data for data in found if data is not None)


def _correlations(part: Part) -> Iterator[FigureData]:
    if (data := correlation_panels(part.done, title="How far one word moves correlated texts")) is not None:
        yield data


def _several_words(part: Part) -> Iterator[FigureData]:
    if (data := several_words_panels(part.done, title="How far several words move a map at once")) is not None:
        yield data


def _similarity(part: Part) -> Iterator[FigureData]:
    yield from (data for make in SIMILARITY_FIGURES.values() if (data := make(part.done)) is not None)


def _control(part: Part) -> Iterator[FigureData]:
    yield from (data for make in CONTROL_FIGURES.values() if (data := make(part.done)) is not None)


def _along(part: Part) -> Iterator[FigureData]:
    yield from _along_axes(part.done, besides=(), y_label="value")


def _along_axes(records: Sequence[Any], *, besides: Sequence[str], y_label: str) -> Iterator[FigureData]:
    for axis in numeric_axes(records, besides=besides)[:AXES]:
        if (data := axis_panels(records, axis, title=f"Along {axis.replace('_', ' ')}", y_label=y_label)) is not None:
            yield data


_MAKERS = {
    "sensitivity": _sensitivity,
    "generalization": _generalization,
    "audit": _audit,
    "departures": _departures,
    "correlations": _correlations,
    "several-words": _several_words,
    "similarity": _similarity,
    "control": _control,
    "attention": lambda part: iter(()),  # their matrices are tables: report.attention
}


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


def _png(data: FigureData) -> str:
    file = io.BytesIO()
    still_figure(data).savefig(file, format="png", dpi=DOTS_PER_INCH)
    return base64.b64encode(file.getvalue()).decode()
