"""Generalization records to matplotlib figures. Nothing is read or written here, and pyplot is not used."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from wordsens.errors import InputError, MissingExtraError
from wordsens.experiments.generalization import FRONTIER, GeneralizationSeries, generalization_series
from wordsens.experiments.store import Record, as_records
from wordsens.figures.style_file import COLUMN_INCHES, PAGE_INCHES, StyledFigure, StyleFile, styled
from wordsens.maps.registry import map_title
from wordsens.regression import TRAININGS

try:
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

# Okabe and Ito's colours; each objective has a marker of its own for print in black.
_OBJECTIVES = {
    "fine-tuned-alignment": ("fine-tuned alignment", "#0072B2", "o"),
    "retrained-alignment": ("retrained alignment", "#009E73", "^"),
    "error": ("error", "#D55E00", "s"),
    "penalized-error": (r"error, $\gamma$ penalized", "#CC79A7", "D"),
    "alignment": ("alignment", "#56B4E9", "P"),
}
_CURVE = "#333333"
_SIZES = colormaps["viridis_r"]
_SIZE_MARKERS = "os^Dv<>"
_PANEL_INCHES = (1.6, 1.7)
_GAMMA_SHOWN, _ERROR_SHOWN = 3.0, 6.0
_SMALLEST, _LARGEST = 8.0, 26.0


@styled
def generalization(records: Iterable[Record], *, title: str = "", style: StyleFile = None) -> Figure:
    """Err against gamma, a point a sample: a row for each training, a column for each map and n.

    The curve is (2 - gamma)², below which Theorems 4 and 5 leave RF no point in the limit. Larger points had larger
    training sets. Points outside the axes are drawn on their edge as arrows.

    Args:
        records: of one kind of text; failed ones and frontiers are left out.
        title: above the panels.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or they differ in what the figure does not tell apart.
    """
    points = [
        record for record in as_records(records, "generalization") if record.done and record.objective != FRONTIER
    ]
    if not points:
        raise InputError("`records` has no finished record; run the experiment first")
    generalization_series(points)  # refuses what no legend here tells apart
    columns = list(dict.fromkeys((record.map, record.n) for record in points))
    figure, panels = _panels(columns, title)
    sizes = _point_sizes(sorted({record.texts for record in points}))
    for row, training in enumerate(TRAININGS):
        for column, (name, n) in enumerate(columns):
            own = [one for one in points if (one.map, one.n, one.training) == (name, n, training)]
            _scatter(panels[row][column], own, sizes)
    objectives = [name for name in _OBJECTIVES if any(record.objective == name for record in points)]
    handles = [
        Line2D([], [], linestyle="", color=colour, marker=marker, markersize=4, label=label)
        for label, colour, marker in (_OBJECTIVES[name] for name in objectives)
    ]
    handles.append(Line2D([], [], color=_CURVE, linewidth=1.2, label=r"$(2-\gamma)^2$"))
    if len(sizes) > 1:
        handles += [
            Line2D([], [], linestyle="", color="#999999", marker="o", markersize=area**0.5, label=f"N = {texts}")
            for texts, area in sizes.items()
            if texts in (min(sizes), max(sizes))
        ]
    if any(_outside(record.gamma, record.value) for record in points):
        handles.append(
            Line2D([], [], linestyle="", color="#999999", marker="^", fillstyle="none", label="beyond the axes")
        )
    _finish(
        figure, panels, columns, handles, xlabel=r"$\gamma$ of the model before", ylabel="error on the changed text"
    )
    return figure


@styled
def frontier(records: Iterable[Record], *, title: str = "", style: StyleFile = None) -> Figure:
    """The least Err found against the limit on gamma, with (2 - gamma)²: for each N, the median and each sample.

    Args:
        records: of one kind of text; failed ones are left out.
        title: above the panels.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no frontier is among the records, or they differ in what the figure does not tell apart.
    """
    series = [one for one in generalization_series(records) if one.limits]
    if not series:
        raise InputError("`records` has no finished frontier; run the experiment first")
    columns = list(dict.fromkeys((one.map, one.n) for one in series))
    looks = _looks(sorted({one.texts for one in series}))
    figure, panels = _panels(columns, title)
    for row, training in enumerate(TRAININGS):
        for column, (name, n) in enumerate(columns):
            for one in series:
                if (one.map, one.n, one.training) == (name, n, training):
                    _draw_frontier(panels[row][column], one, looks[one.texts])
            _curve(panels[row][column])
    handles = [
        *(
            Line2D([], [], color=colour, marker=marker, markersize=4, linewidth=1.2, label=f"N = {texts:,}: median")
            for texts, (colour, marker) in looks.items()
        ),
        Line2D([], [], color="#999999", linewidth=0.7, label="each sample, in its N's colour"),
        Line2D([], [], color=_CURVE, linewidth=1.2, label=r"$(2-\gamma)^2$"),
    ]
    _finish(figure, panels, columns, handles, xlabel=r"limit on $\gamma$", ylabel="least error")
    for panel in (panel for line in panels for panel in line):
        panel.set_xlim(0, 2.05)
        panel.set_ylim(-0.12, 4.6)
    return figure


def _panels(columns: Sequence[tuple[str, int]], title: str) -> tuple[Figure, list[list[Axes]]]:
    width, height = _PANEL_INCHES
    width = COLUMN_INCHES if len(columns) == 1 else max(PAGE_INCHES, width * len(columns))
    figure = StyledFigure(figsize=(width, height * len(TRAININGS) + 0.8), layout="constrained")
    panels = figure.subplots(len(TRAININGS), len(columns), sharex=True, sharey=True, squeeze=False)
    if title:
        figure.suptitle(title)
    return figure, [list(row) for row in panels]


def _point_sizes(texts: Sequence[int]) -> dict[int, float]:
    """Marker areas that grow with the training set."""
    steps = max(1, len(texts) - 1)
    return {n: _SMALLEST + (_LARGEST - _SMALLEST) * at / steps for at, n in enumerate(texts)}


def _scatter(panel: Axes, records: Sequence[Record], sizes: dict[int, float]) -> None:
    _curve(panel)
    for name, (_, colour, marker) in _OBJECTIVES.items():
        own = [(one.gamma, one.value, sizes[one.texts]) for one in records if one.objective == name]
        known = [(gamma, value, area) for gamma, value, area in own if gamma is not None and value is not None]
        inside = [one for one in known if not _outside(one[0], one[1])]
        if inside:
            gammas, values, areas = zip(*inside, strict=True)
            panel.scatter(gammas, values, s=areas, color=colour, marker=marker, alpha=0.7, linewidths=0, zorder=3)
        for gamma, value, area in known:
            if _outside(gamma, value):
                place = (min(gamma, _GAMMA_SHOWN * 0.97), min(value, _ERROR_SHOWN * 0.97))
                arrow = "^" if value > _ERROR_SHOWN else ">"
                panel.scatter(*place, s=area, facecolors="none", edgecolors=colour, marker=arrow, linewidths=0.8)


def _outside(gamma: float | None, value: float | None) -> bool:
    return gamma is not None and value is not None and (gamma > _GAMMA_SHOWN or value > _ERROR_SHOWN)


def _curve(panel: Axes) -> None:
    gammas = [2 * step / 100 for step in range(101)]
    panel.plot(gammas, [(2 - gamma) ** 2 for gamma in gammas], color=_CURVE, linewidth=1.2, zorder=2)


def _draw_frontier(panel: Axes, series: GeneralizationSeries, look: tuple[Any, str]) -> None:
    colour, marker = look
    for sample in zip(*series.least_errors, strict=True):
        panel.plot(series.limits, sample, color=colour, linewidth=0.7, alpha=0.45, zorder=1)
    middle = [statistics.median(errors) for errors in series.least_errors]
    panel.plot(series.limits, middle, color=colour, marker=marker, markersize=4, linewidth=1.2, zorder=3)


def _looks(texts: Sequence[int]) -> dict[int, tuple[Any, str]]:
    """A colour and a marker for each N, from light (few texts) to dark."""
    steps = max(1, len(texts) - 1)
    return {n: (_SIZES(0.15 + 0.8 * at / steps), _SIZE_MARKERS[at % len(_SIZE_MARKERS)]) for at, n in enumerate(texts)}


def _finish(
    figure: Figure,
    panels: list[list[Axes]],
    columns: Sequence[tuple[str, int]],
    handles: Sequence[Line2D],
    *,
    xlabel: str,
    ylabel: str,
) -> None:
    for panel, (name, n) in zip(panels[0], columns, strict=True):
        panel.set_title(f"{map_title(name)}, n = {n}")
    for row, training in zip(panels, TRAININGS, strict=True):
        row[0].set_ylabel(f"{training}\n{ylabel}")
        for panel in row:
            panel.set_xlim(-0.08, _GAMMA_SHOWN)
            panel.set_ylim(-0.15, _ERROR_SHOWN)
    for panel in panels[-1]:
        panel.set_xlabel(xlabel)
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=min(4, len(handles)),
    )
