"""Err against gamma, and the least Err under a limit on gamma."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from wordsens.errors import InputError, MissingExtraError
from wordsens.generalization import TRAININGS
from wordsens.generalization.result import THEOREM
from wordsens.maps.registry import map_title
from wordsens.plotting.axes import tell
from wordsens.plotting.records import Figures
from wordsens.plotting.style import (
    COLUMN_INCHES,
    INK,
    PAGE_INCHES,
    STYLES,
    StyledFigure,
    StyleFile,
    styled,
)
from wordsens.studies.generalization.cell import FRONTIER
from wordsens.studies.generalization.summary import GeneralizationSeries, generalization_series
from wordsens.sweeps.experiment import grouped, text_title
from wordsens.sweeps.store import Record, as_records

try:
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_OBJECTIVES = {
    "fine-tuned-alignment": ("fine-tuned alignment", *STYLES[0]),
    "retrained-alignment": ("retrained alignment", *STYLES[2]),
    "error": ("error", *STYLES[1]),
    "penalized-error": (r"error, $\gamma$ penalized", *STYLES[3]),
    "alignment": ("alignment", *STYLES[5]),
}
"""The aims of the searches for a change of a word: name, colour and marker."""

_PANEL_INCHES = (1.6, 1.7)

_GAMMA_SHOWN, _ERROR_SHOWN = 3.0, 6.0

_SMALLEST, _LARGEST = 8.0, 26.0


@styled
def error_figure(records: Iterable[Record], *, title: str = "", style: StyleFile = None) -> Figure:
    """Err against gamma, a point a sample: a row for each training, a column for each map and n.

    The curve is (2 - gamma)², below which Theorems 4 and 5 leave RF no point in the limit. Larger
    points had larger training sets. Points outside the axes are drawn on their edge as arrows.

    Args:
        records: of one kind of text; failed ones and frontiers are left out.
        title: above the panels.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or they differ in what the figure does not tell apart.
    """
    points = [
        record
        for record in as_records(records, "generalization")
        if record.done and record.objective != FRONTIER
    ]
    if not points:
        raise InputError("`records` has no finished record; run the experiment first")
    generalization_series(points)  # refuses what no legend here tells apart
    columns = list(dict.fromkeys((record.map, record.n) for record in points))
    figure, rows = _panels(columns, title)
    texts = sorted({record.texts for record in points})
    step = (_LARGEST - _SMALLEST) / max(1, len(texts) - 1)
    sizes = {n: _SMALLEST + step * at for at, n in enumerate(texts)}
    for row, training in zip(rows, TRAININGS, strict=True):
        for panel, (name, n) in zip(row, columns, strict=True):
            _scatter(
                panel,
                [one for one in points if (one.map, one.n, one.training) == (name, n, training)],
                sizes,
            )
    handles = [
        _entry(label, color=colour, marker=marker)
        for name, (label, colour, marker) in _OBJECTIVES.items()
        if any(record.objective == name for record in points)
    ]
    handles.append(Line2D([], [], color=INK, linewidth=1.2, label=r"$(2-\gamma)^2$"))
    if len(sizes) > 1:
        handles += [
            _entry(f"N = {n}", color="#999999", marker="o", markersize=sizes[n] ** 0.5)
            for n in (texts[0], texts[-1])
        ]
    if any(_outside(record) for record in points):
        handles.append(_entry("beyond the axes", color="#999999", marker="^", fillstyle="none"))
    _finish(
        figure, rows, columns, handles, r"$\gamma$ of the model before", "error on the changed text"
    )
    figure.caption = (
        "Each mark is a text that the model had just learned, with one word changed so that its "
        "label flips. Below 1 "
        "the model notices."
    )
    return figure


@styled
def frontier_figure(
    records: Iterable[Record], *, title: str = "", style: StyleFile = None
) -> Figure:
    """The least Err attained against the limit on gamma, with (2 - gamma)²: for each N, the median
    and each sample.

    Args:
        records: of one kind of text; failed ones are left out.
        title: above the panels.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no frontier is among the records, or they differ in what the figure does not
            tell apart.
    """
    series = [one for one in generalization_series(records) if one.limits]
    if not series:
        raise InputError("`records` has no finished frontier; run the experiment first")
    columns = list(dict.fromkeys((one.map, one.n) for one in series))
    texts = sorted({one.texts for one in series})
    shades = colormaps["viridis_r"]
    looks = {
        n: (shades(0.15 + 0.8 * at / max(1, len(texts) - 1)), "os^Dv<>"[at % 7])
        for at, n in enumerate(texts)
    }
    figure, rows = _panels(columns, title)
    for row, training in zip(rows, TRAININGS, strict=True):
        for panel, (name, n) in zip(row, columns, strict=True):
            for one in series:
                if (one.map, one.n, one.training) == (name, n, training):
                    _draw_frontier(panel, one, *looks[one.texts])
            panel.plot(*zip(*THEOREM, strict=True), color=INK, linewidth=1.2, zorder=2)
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            label=f"N = {n:,}: median",
        )
        for n, (colour, marker) in looks.items()
    ]
    handles.append(
        Line2D([], [], color="#999999", linewidth=0.7, label="each sample, in its N's colour")
    )
    handles.append(Line2D([], [], color=INK, linewidth=1.2, label=r"$(2-\gamma)^2$"))
    _finish(figure, rows, columns, handles, r"limit on $\gamma$", "least error")
    for panel in (panel for row in rows for panel in row):
        panel.set_xlim(0, 2.05)
        panel.set_ylim(-0.12, 4.6)
    figure.caption = "The least error attained when γ may not pass a limit: less may be possible."
    return figure


def _panels(
    columns: Sequence[tuple[str, int]], title: str
) -> tuple[StyledFigure, list[list[Axes]]]:
    width, height = _PANEL_INCHES
    width = COLUMN_INCHES if len(columns) == 1 else max(PAGE_INCHES, width * len(columns))
    figure = StyledFigure(figsize=(width, height * len(TRAININGS) + 0.8), layout="constrained")
    panels = figure.subplots(len(TRAININGS), len(columns), sharex=True, sharey=True, squeeze=False)
    if title:
        figure.suptitle(title)
    return figure, [list(row) for row in panels]


def _entry(label: str, *, markersize: float = 4, **options: Any) -> Line2D:
    return Line2D([], [], linestyle="", label=label, markersize=markersize, **options)


def _scatter(panel: Axes, records: Sequence[Record], sizes: dict[int, float]) -> None:
    panel.plot(*zip(*THEOREM, strict=True), color=INK, linewidth=1.2, zorder=2)
    for name, (label, colour, marker) in _OBJECTIVES.items():
        group = [
            one for one in records if one.objective == name and None not in (one.gamma, one.value)
        ]
        inside = [one for one in group if not _outside(one)]
        if inside:
            places = [[one.gamma for one in inside], [one.value for one in inside]]
            areas = [sizes[one.texts] for one in inside]
            drawn = panel.scatter(
                *places, s=areas, color=colour, marker=marker, alpha=0.7, linewidths=0, zorder=3
            )
            tell(
                panel,
                drawn,
                [
                    f"{label}: error {one.value:.3g}, γ {one.gamma:.3g}, {_sample(one)}"
                    for one in inside
                ],
            )
        for one in group:
            if _outside(one):
                place = (
                    min(one.gamma or 0.0, _GAMMA_SHOWN * 0.97),
                    min(one.value or 0.0, _ERROR_SHOWN * 0.97),
                )
                arrow = "^" if (one.value or 0.0) > _ERROR_SHOWN else ">"
                panel.scatter(
                    *place,
                    s=sizes[one.texts],
                    facecolors="none",
                    edgecolors=colour,
                    marker=arrow,
                    linewidths=0.8,
                )


def _sample(record: Record) -> str:
    return f"N = {record.texts:,}, word {record.word}" + (
        f" “{record.token}”" if record.token else ""
    )


def _outside(record: Record) -> bool:
    gamma, value = record.gamma, record.value
    return (
        gamma is not None and value is not None and (gamma > _GAMMA_SHOWN or value > _ERROR_SHOWN)
    )


def _draw_frontier(panel: Axes, series: GeneralizationSeries, colour: Any, marker: str) -> None:
    for sample in zip(*series.least_errors, strict=True):
        panel.plot(series.limits, sample, color=colour, linewidth=0.7, alpha=0.45, zorder=1)
    middle = [statistics.median(errors) for errors in series.least_errors]
    (line,) = panel.plot(
        series.limits, middle, color=colour, marker=marker, markersize=4, linewidth=1.2, zorder=3
    )
    tell(
        panel,
        line,
        [
            f"N = {series.texts:,}: median {value:.3g}, best {min(errors):.3g} of {len(errors)}, γ "
            f"< {limit:g}"
            for limit, value, errors in zip(series.limits, middle, series.least_errors, strict=True)
        ],
    )


def _finish(
    figure: Figure,
    rows: list[list[Axes]],
    columns: Sequence[tuple[str, int]],
    handles: Sequence[Line2D],
    x_label: str,
    y_label: str,
) -> None:
    for panel, (name, n) in zip(rows[0], columns, strict=True):
        panel.set_title(f"{map_title(name)}, n = {n}")
    for row, training in zip(rows, TRAININGS, strict=True):
        row[0].set_ylabel(f"{training}\n{y_label}")
        for panel in row:
            panel.set_xlim(-0.08, _GAMMA_SHOWN)
            panel.set_ylim(-0.15, _ERROR_SHOWN)
    for panel in rows[-1]:
        panel.set_xlabel(x_label)
    abreast = 2 if figure.get_figwidth() <= COLUMN_INCHES else 4
    figure.legend(handles=list(handles), loc="outside lower center", ncols=abreast)


def generalization_figures(records: Sequence[Record]) -> Figures:
    """For each kind of text: Err against gamma, and the frontier."""
    from wordsens.studies.generalization.cell import FRONTIER

    drawn = {}
    for (text,), group in grouped(records, "text").items():
        if any(record.objective != FRONTIER for record in group):
            title = f"Error on the changed text: {text_title(text)}"
            drawn[f"generalization-error-{text}"] = error_figure(group, title=title)
        if any(record.objective == FRONTIER for record in group):
            title = rf"Least error under a limit on $\gamma$: {text_title(text)}"
            drawn[f"generalization-frontier-{text}"] = frontier_figure(group, title=title)
    return drawn
