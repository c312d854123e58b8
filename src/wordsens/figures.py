"""Records to matplotlib figures, in a paper's quality. Nothing is read or written here, and pyplot is not used."""

import math
from collections.abc import Iterable, Sequence

from wordsens.errors import InputError, MissingExtraError
from wordsens.experiments.map_choice import map_title
from wordsens.experiments.record import SensitivityRecord
from wordsens.experiments.summary import Series, summarise
from wordsens.experiments.wording import exponent_text, text_title

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

# Okabe and Ito's colours, told apart by colour-blind readers; each has a marker of its own for print in
# black.
_STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
)
_GUIDE = "#777777"
_PANEL_INCHES = (3.5, 2.9)
_LEGEND_LINE_INCHES = 0.17
_FONT = 8


def sensitivity_figure(records: Iterable[SensitivityRecord], *, title: str = "") -> Figure:
    """S against n on logarithmic axes, one panel for each kind of text, with a common S axis.

    Markers are means over the draws and bars one standard deviation; lines are the fitted power laws, whose
    exponents and standard errors stand in the legends; the dotted line falls as 1/sqrt(n).

    Args:
        records: of the maps that share the figure; failed ones are left out.
        title: above the panels.

    Raises:
        InputError: when no record is finished.
    """
    series = summarise(records)
    if not series:
        raise InputError("`records` has no finished record; run the experiment first")
    kinds = list(dict.fromkeys(one.text for one in series))
    styles = {key: _STYLES[at % len(_STYLES)] for at, key in enumerate(dict.fromkeys(map(_key, series)))}
    entries = 1 + max(sum(one.text == kind for one in series) for kind in kinds)
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * len(kinds), height + _LEGEND_LINE_INCHES * (entries - 2)), layout="constrained")
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    limits = _limits(series)
    for panel, kind in zip(panels, kinds, strict=True):
        own = [one for one in series if one.text == kind]
        _draw_panel(panel, own, styles, limits)
        panel.set_title(_panel_title(kind, own, alone=len({one.d for one in series}) == 1), fontsize=_FONT + 1)
    panels[0].set_ylabel("word sensitivity S (attained)", fontsize=_FONT)
    if title:
        figure.suptitle(title, fontsize=_FONT + 2)
    return figure


def _key(series: Series) -> tuple[str, int]:
    return (series.map, series.d)


def _panel_title(kind: str, series: Sequence[Series], *, alone: bool) -> str:
    name = text_title(kind)
    return f"{name[0].upper()}{name[1:]}" + (f", d = {series[0].d}" if alone else "")


def _limits(series: Sequence[Series]) -> tuple[float, float]:
    """The S axis: every mean with its bar, and a tenth of the decades to spare."""
    lowest = min(_bar(point.mean, point.standard_deviation)[0] for one in series for point in one.points)
    highest = max(_bar(point.mean, point.standard_deviation)[1] for one in series for point in one.points)
    spare = max((highest / lowest) ** 0.1, 1.05)
    return lowest / spare, highest * spare


def _bar(mean: float, deviation: float) -> tuple[float, float]:
    """Both ends of an error bar; the lower one stays on a logarithmic axis."""
    return max(mean - deviation, mean / 3), mean + deviation


def _draw_panel(
    panel: Axes,
    series: Sequence[Series],
    styles: dict[tuple[str, int], tuple[str, str]],
    limits: tuple[float, float],
) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    several = len({one.d for one in series}) > 1
    for one in series:
        colour, marker = styles[_key(one)]
        sizes = [point.n for point in one.points]
        means = [point.mean for point in one.points]
        ends = [_bar(point.mean, point.standard_deviation) for point in one.points]
        errors = [
            [mean - low for mean, (low, _) in zip(means, ends, strict=True)],
            [high - mean for mean, (_, high) in zip(means, ends, strict=True)],
        ]
        name = map_title(one.map) + (f", d = {one.d}" if several else "")
        panel.errorbar(
            sizes,
            means,
            yerr=errors,
            fmt=marker,
            color=colour,
            markersize=4,
            capsize=2,
            elinewidth=0.9,
            label=f"{name}: exponent {exponent_text(one.fit)}",
        )
        if one.fit is not None:
            ends_of_line = [sizes[0], sizes[-1]]
            panel.plot(ends_of_line, [one.fit.at(n) for n in ends_of_line], color=colour, linewidth=1)
    _draw_guide(panel, series, limits)
    _set_axes(panel, sorted({point.n for one in series for point in one.points}), limits)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False, fontsize=_FONT - 0.5, borderaxespad=0)


def _draw_guide(panel: Axes, series: Sequence[Series], limits: tuple[float, float]) -> None:
    """A line that falls as 1/sqrt(n), in the widest gap under the lowest curve that the axis leaves."""
    sizes = sorted({point.n for one in series for point in one.points})
    lowest = min(series, key=lambda one: one.points[0].mean)
    start = max(lowest.points[0].mean * 0.93, limits[0] * math.sqrt(sizes[-1] / sizes[0]) * 1.02)
    start = min(start, limits[1])
    panel.plot(
        [sizes[0], sizes[-1]],
        [start, start * math.sqrt(sizes[0] / sizes[-1])],
        color=_GUIDE,
        linestyle=":",
        linewidth=1.2,
        label="1/sqrt(n)",
        zorder=1,
    )


def _set_axes(panel: Axes, sizes: Sequence[int], limits: tuple[float, float]) -> None:
    low, high = math.log(sizes[0]), math.log(sizes[-1])
    pad = 0.06 * (high - low) or 0.1
    panel.set_xlim(math.exp(low - pad), math.exp(high + pad))
    panel.set_ylim(*limits)
    panel.xaxis.set_major_locator(FixedLocator(_spaced(sizes)))
    panel.xaxis.set_minor_locator(FixedLocator([n for n in sizes if n not in _spaced(sizes)]))
    panel.yaxis.set_major_locator(FixedLocator(_round_values(*limits)))
    panel.yaxis.set_minor_locator(NullLocator())
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    panel.tick_params(labelsize=_FONT, labelleft=True)
    panel.set_xlabel("words n", fontsize=_FONT)
    panel.grid(True, which="major", linewidth=0.4, color="#dddddd")
    panel.set_axisbelow(True)


def _spaced(sizes: Sequence[int], *, least: float = 0.085) -> list[int]:
    """The sizes whose labels do not touch on a logarithmic axis; the last one always stays."""
    span = math.log(sizes[-1] / sizes[0]) or 1.0
    kept: list[int] = []
    for size in sizes[:-1]:
        clear_of_last = math.log(sizes[-1] / size) / span >= least
        if clear_of_last and (not kept or math.log(size / kept[-1]) / span >= least):
            kept.append(size)
    return [*kept, sizes[-1]]


def _round_values(low: float, high: float, *, most: int = 7) -> list[float]:
    """Between 3 and `most` round numbers for the ticks of a logarithmic axis, from the coarsest set that has 3."""
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(d / 10 for d in range(10, 100, 5))):
        inside = [
            digit * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for digit in digits
            if low <= digit * 10.0**power <= high
        ]
        if len(inside) >= 3:
            return inside[:: math.ceil(len(inside) / most)]
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    first = math.ceil(low / step)
    inside = [step * count for count in range(first, math.floor(high / step) + 1)]
    return inside[:: math.ceil(len(inside) / most)]
