"""S against n: sensitivity records to a matplotlib figure. Nothing is read or written here, and pyplot is not used."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from wordsens.certificates.base import CERTIFIED
from wordsens.errors import InputError, MissingExtraError
from wordsens.experiments.experiment import text_title
from wordsens.experiments.sensitivity import Series, exponent_text, sensitivity_series
from wordsens.experiments.store import Record
from wordsens.figures.style_file import COLUMN_INCHES, PAGE_INCHES, StyledFigure, StyleFile, styled
from wordsens.figures.styles import MOST_SERIES, Style, round_values, series_styles, spaced
from wordsens.maps.registry import map_title

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
    from matplotlib.transforms import ScaledTranslation
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_GUIDE = "#777777"
_DASHES = (0, (4, 2))
_TALLEST_BAND = 2.0
_ALL_WORDS, _MIDDLE_WORDS, _BRACKET = 0.09, 0.14, 0.2
"""The strength of a band: of every word, of the middle half of the words, and up to the upper bound."""
_HEIGHT_INCHES = 2.35
_LEGEND_LINE_INCHES = 0.135
_LEGEND_DROP_INCHES = 0.4
_LEGEND_SIGN_INCHES, _LETTER_INCHES = 0.75, 0.049


@styled
def sensitivity(records: Iterable[Record], *, title: str = "", style: StyleFile = None) -> Figure:
    """S against n on logarithmic axes, one panel for each kind of text, with common axes.

    One panel is a column wide, two are a page wide; longer legends take more.

    Draws that differ in their seeds alone are a series: each map, d and value of any other key of the specs that
    varies has its own, and the legend says which. Where a panel has one d it stands in the panel's title, and a map
    looks the same in all panels. Markers are means over the draws and bars one standard deviation;
    lines are the fitted power laws, whose exponents and standard errors stand in the legends; the dotted line falls as
    1/sqrt(n). Below the markers, where every word was searched, a faint band holds every word's value and a stronger
    one the middle half of the words. Above, a band reaches from the mean attained value to the mean upper bound: the
    sup lies in it. A series whose upper bounds go beyond twice the largest value otherwise drawn has no band, and the
    legend says so. Dashed lines are predictions, of what the legend says; crosses mark sizes at which they were not
    compared with measurements.

    Args:
        records: of the maps that share the figure; failed ones are left out.
        title: above the panels.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or there are more than MOST_SERIES series; no such style.
    """
    series = sensitivity_series(records)
    if not series:
        raise InputError("`records` has no finished record; run the experiment first")
    kinds = list(dict.fromkeys(one.text for one in series))
    by_d = len({(one.text, one.map, one.varied) for one in series}) < len(series)
    keys = list(dict.fromkeys(_key(one, by_d=by_d) for one in series))
    if len(keys) > MOST_SERIES:
        columns = dict.fromkeys(["map", "d", *(key.partition(" = ")[0] for one in series for key in one.varied)])
        raise InputError(
            f"`records` makes {len(keys)} series (by {', '.join(columns)}), but a figure tells at most {MOST_SERIES} "
            "apart; filter them, such as [r for r in records if r.d == 384], and draw several figures"
        )
    style_of = dict(zip(keys, series_styles([(key, key[0]) for key in keys]), strict=True))
    entries = max(_entries([one for one in series if one.text == kind]) for kind in kinds)
    width = max(COLUMN_INCHES if len(kinds) == 1 else PAGE_INCHES, len(kinds) * _legend_width(series))
    figure = StyledFigure(figsize=(width, _HEIGHT_INCHES + _LEGEND_LINE_INCHES * entries), layout="constrained")
    panels = figure.subplots(1, len(kinds), sharex=True, sharey=True, squeeze=False)[0]
    sizes = sorted({point.n for one in series for point in one.points})
    guides = {kind: _guide([one for one in series if one.text == kind]) for kind in kinds}
    limits = _limits(series, [value for guide in guides.values() for _, value in guide])
    for panel, kind in zip(panels, kinds, strict=True):
        own = [one for one in series if one.text == kind]
        _set_axes(panel, sizes, limits)
        _draw_panel(panel, [(one, style_of[_key(one, by_d=by_d)]) for one in own], guides[kind], limits)
        panel.set_title(_panel_title(kind, own))
    panels[0].set_ylabel("word sensitivity S (attained)")
    if title:
        figure.suptitle(title)
    return figure


_Key = tuple[str, int, tuple[str, ...]]


def _key(series: Series, *, by_d: bool) -> _Key:
    return (series.map, series.d if by_d else 0, series.varied)


def _label(series: Series, *, with_d: bool) -> str:
    """The line of the legend for a series."""
    name = ", ".join([map_title(series.map), *([f"d = {series.d}"] if with_d else []), *series.varied])
    return f"{name}: exponent {exponent_text(series.fit)}".replace("-0.", "\u22120.")


def _legend_width(series: Sequence[Series]) -> float:
    """Wide enough for the longest line of a legend."""
    longest = max(len(_label(one, with_d=True)) for one in series)
    return _LEGEND_SIGN_INCHES + _LETTER_INCHES * longest


def _panel_title(kind: str, series: Sequence[Series]) -> str:
    name, alone = text_title(kind), len({one.d for one in series}) == 1
    return f"{name[0].upper()}{name[1:]}" + (f", d = {series[0].d}" if alone else "")


def _guide(series: Sequence[Series]) -> list[tuple[float, float]]:
    """1/sqrt(n), a little under the lowest curve's first point."""
    sizes = sorted({point.n for one in series for point in one.points})
    start = 0.85 * min(one.points[0].mean for one in series)
    return [(n, start * math.sqrt(sizes[0] / n)) for n in np.geomspace(sizes[0], sizes[-1]).tolist()]


def _limits(series: Sequence[Series], others: Iterable[float]) -> tuple[float, float]:
    """The S axis: every mean with its bar, the other values, and a twentieth of the decades to spare."""
    points = [point for one in series for point in one.points]
    ends = [_bar(point.mean, point.standard_deviation) for point in points]
    values = [value for end in ends for value in end] + list(others)
    values += [point.predicted for point in points if point.predicted is not None]
    highest = _TALLEST_BAND * max(values)
    values += [point.words[0] for one in series if one.all_words for point in one.points if point.words is not None]
    values += [upper for one in series if max(uppers := _uppers(one), default=math.inf) <= highest for upper in uppers]
    shown = [value for value in values if value > 0] or [0.1, 1.0]
    spare = max((max(shown) / min(shown)) ** 0.05, 1.02)
    return min(shown) / spare, max(shown) * spare


def _bar(mean: float, deviation: float) -> tuple[float, float]:
    """Both ends of an error bar; the lower one stays on a logarithmic axis."""
    return max(mean - deviation, mean / 3), mean + deviation


def _draw_panel(
    panel: Axes,
    styles: Sequence[tuple[Series, Style]],
    guide: Sequence[tuple[float, float]],
    limits: tuple[float, float],
) -> None:
    series = [one for one, _ in styles]
    several = len({one.d for one in series}) > 1
    entries: list[tuple[object, str]] = []
    for one, (colour, marker, hollow) in styles:
        sizes = [point.n for point in one.points]
        means = [point.mean for point in one.points]
        ends = [_bar(point.mean, point.standard_deviation) for point in one.points]
        errors = [
            [mean - low for mean, (low, _) in zip(means, ends, strict=True)],
            [high - mean for mean, (_, high) in zip(means, ends, strict=True)],
        ]
        bars = panel.errorbar(
            sizes,
            means,
            yerr=errors,
            fmt=marker,
            color=colour,
            elinewidth=0.8,
            fillstyle="none" if hollow else "full",
        )
        entries.append((bars, _label(one, with_d=several)))
        if one.fit is not None:
            reach = [sizes[0], sizes[-1]]
            panel.plot(reach, [one.fit.at(n) for n in reach], color=colour)
        _draw_words(panel, one, colour)
        _draw_bracket(panel, one, colour, limits[1])
        _draw_predicted(panel, one, colour)
    (line,) = panel.plot(*zip(*guide, strict=True), color=_GUIDE, linestyle=":", linewidth=1.2, zorder=1)
    entries.append((line, r"falls as $1/\sqrt{n}$"))
    entries += _keys(series, limits[1])
    figure = panel.get_figure()
    assert figure is not None
    panel.legend(
        *zip(*entries, strict=True),
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=panel.transAxes + ScaledTranslation(0, -_LEGEND_DROP_INCHES, figure.dpi_scale_trans),
    )


def _draw_predicted(panel: Axes, series: Series, colour: str) -> None:
    """A dashed line, with crosses where the prediction was not compared with measurements."""
    known = [(point.n, point.predicted) for point in series.points if point.predicted is not None]
    beyond = [(point.n, point.predicted) for point in series.points if point.predicted and not point.in_range]
    if known:
        panel.plot(*zip(*known, strict=True), color=colour, linestyle=_DASHES)
    if beyond:
        panel.plot(*zip(*beyond, strict=True), color=colour, linestyle="", marker="x", markersize=5)


def _uppers(series: Series) -> list[float]:
    return [point.upper for point in series.points if point.upper is not None]


def _draw_words(panel: Axes, series: Series, colour: str) -> None:
    """Every word's value, where every word was searched: from the least to the largest, and the middle half."""
    known = [(point.n, *point.words) for point in series.points if point.words is not None]
    if known and series.all_words:
        sizes, least, low, high, most = (list(column) for column in zip(*known, strict=True))
        panel.fill_between(sizes, least, most, color=colour, alpha=_ALL_WORDS, linewidth=0, zorder=0.3)
        panel.fill_between(sizes, low, high, color=colour, alpha=_MIDDLE_WORDS, linewidth=0, zorder=0.4)


def _draw_bracket(panel: Axes, series: Series, colour: str, top: float) -> None:
    """From the mean attained value up to the mean upper bound, where the panel has room for all of it."""
    known = [(point.n, point.mean, point.upper) for point in series.points if point.upper is not None]
    if known and max(_uppers(series)) <= top:
        sizes, means, uppers = (list(column) for column in zip(*known, strict=True))
        panel.fill_between(sizes, means, uppers, color=colour, alpha=_BRACKET, linewidth=0, zorder=0.5)


def _keys(series: Sequence[Series], top: float) -> list[tuple[object, str]]:
    """Lines of the legend for the bands and the dashed lines, and for the upper bounds that are not shown."""
    bounded = [one for one in series if _uppers(one)]
    beyond = [map_title(one.map) for one in bounded if max(_uppers(one)) > top]
    keys: list[tuple[object, str]] = []
    if any(one.all_words and point.words for one in series for point in one.points):
        pair = (Patch(color=_GUIDE, alpha=_ALL_WORDS, linewidth=0), Patch(color=_GUIDE, alpha=0.3, linewidth=0))
        keys.append((pair, "below: every word, and the middle half of them"))
    if len(bounded) > len(beyond):
        what = "certified upper bound" if all(one.rigor == CERTIFIED for one in bounded) else "upper bound"
        keys.append((Patch(color=_GUIDE, alpha=0.3, linewidth=0), f"band: up to the {what}"))
    predicted = [one for one in series if one.predicted_of is not None]
    if predicted:
        of = " or ".join(dict.fromkeys(str(one.predicted_of) for one in predicted))
        keys.append((Line2D([], [], color=_GUIDE, linestyle=_DASHES), f"predicted, for {of}"))
    if not all(one.in_range for one in predicted):
        cross = Line2D([], [], color=_GUIDE, linestyle=_DASHES, marker="x", markersize=5)
        keys.append((cross, "predicted, not compared at such sizes"))
    if beyond:
        keys.append((Line2D([], [], linestyle=""), f"upper bound off the panel: {_listed(beyond)}"))
    return keys


def _listed(names: Sequence[str]) -> str:
    """The names; what they share at their beginning once.

    >>> _listed(["DRF, L = 4", "DRF, L = 8"])
    'DRF, L = 4, 8'
    """
    first = names[0].rpartition(" ")[0]
    alike = len(names) > 1 and first and all(name.rpartition(" ")[0] == first for name in names)
    return f"{first} {', '.join(name.rpartition(' ')[2] for name in names)}" if alike else ", ".join(names)


def _entries(series: Sequence[Series]) -> int:
    """The number of lines that the legend of these series has, at most."""
    some_beyond = any(_uppers(one) for one in series)
    return len(series) + 1 + len(_keys(series, math.inf)) + some_beyond


def _set_axes(panel: Axes, sizes: Sequence[int], limits: tuple[float, float]) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    low, high = math.log(sizes[0]), math.log(sizes[-1])
    pad = 0.06 * (high - low) or 0.1
    panel.set_xlim(math.exp(low - pad), math.exp(high + pad))
    panel.set_ylim(*limits)
    panel.xaxis.set_major_locator(FixedLocator(spaced(sizes)))
    panel.xaxis.set_minor_locator(FixedLocator([n for n in sizes if n not in spaced(sizes)]))
    panel.yaxis.set_major_locator(FixedLocator(round_values(*limits)))
    panel.yaxis.set_minor_locator(NullLocator())
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("words n")
