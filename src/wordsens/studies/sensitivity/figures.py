"""S against n, all maps on one axis, then each family by itself."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wordsens.certificates.base import CERTIFIED
from wordsens.display.numbers import plural
from wordsens.errors import InputError, MissingExtraError
from wordsens.maps.registry import MAPS, base_name, map_title
from wordsens.plotting.axes import interval, marks, ticks
from wordsens.plotting.records import Figures
from wordsens.plotting.style import (
    BARS,
    COLUMN_INCHES,
    GUIDE,
    MOST_SERIES,
    PAGE_INCHES,
    Style,
    StyledFigure,
    StyleFile,
    styled,
    styles_of,
)
from wordsens.studies.sensitivity.series import Series, SizePoint, sensitivity_series
from wordsens.sweeps.experiment import text_title
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import Record, as_records
from wordsens.theory.random_features import finite_width_sensitivity

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_DASHES = (0, (4, 2))

_TALLEST_BAND = 2.0
"""A series whose upper bounds go farther beyond everything else has no band: it would press the
curves flat."""

_ALL_WORDS, _MIDDLE_WORDS, _BRACKET, _HATCH = 0.12, 0.28, 0.16, "////"
"""The strength of a band: every word, the middle half of the words, and up to the upper bound,
which is hatched."""

_SAME_LAW = 0.02

_HEIGHT_INCHES = 2.35

_SIGN_INCHES, _LETTER_INCHES = 0.75, 0.049  # of a legend

_LEGEND_LINE_INCHES, _LEGEND_DROP_INCHES = 0.135, 0.4


@styled
def sensitivity_figure(
    records: Iterable[Record], *, title: str = "", detail: bool = True, style: StyleFile = None
) -> Figure:
    """S against n on logarithmic axes, all maps on one axis; a panel for each kind of text, with
    common axes.

    Draws that differ in their seeds alone are a series: each map, d and value of any other key of
    the specs that varies has its own, and the legend says which. Where a panel has one d it stands
    in the panel's title. Markers are means over the draws and bars 95 % intervals; lines are
    the fitted power laws, whose exponents stand in the legend with 95 % intervals. A band reaches
    from the mean attained value to the mean upper bound: the sup lies in it; a series whose bounds
    go beyond twice the largest value otherwise drawn has none, and the legend says so. Dashed lines
    are theory: under a fully connected layer the law at each n, under attention what is predicted
    of the measured texts.

    Args:
        records: of the maps that share the figure; failed ones are left out.
        title: above the panels.
        detail: also bands of every word's value and of the middle half of the words, where every
            word was searched.
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
        columns = dict.fromkeys(
            ["map", "d", *(key.partition(" = ")[0] for one in series for key in one.varied)]
        )
        raise InputError(
            f"`records` makes {len(keys)} series (by {', '.join(columns)}), but a figure tells at "
            f"most {MOST_SERIES} "
            "apart; filter them, such as [r for r in records if r.d == 384], and draw several "
            "figures"
        )
    style_of = styles_of({key: key[0] for key in keys})
    theory = {id(one): _theory(one) for one in series}
    entries = max(sum(one.text == kind for one in series) for kind in kinds) + 5
    longest = max(len(_label(one, with_d=True)) for one in series)
    least = COLUMN_INCHES if len(kinds) == 1 else PAGE_INCHES
    width = max(least, len(kinds) * (_SIGN_INCHES + _LETTER_INCHES * longest))
    figure = StyledFigure(
        figsize=(width, _HEIGHT_INCHES + _LEGEND_LINE_INCHES * entries), layout="constrained"
    )
    axes = figure.subplots(1, len(kinds), sharex=True, sharey=True, squeeze=False)[0]
    sizes = sorted({point.n for one in series for point in one.points})
    limits = _limits(
        series, [value for points in theory.values() for _, value in points], detail=detail
    )
    for panel, kind in zip(axes, kinds, strict=True):
        group = [one for one in series if one.text == kind]
        panel.set(xlabel="words n", xscale="log", yscale="log", ylim=limits)
        with_d = len({one.d for one in group}) > 1
        for one in group:
            label = _label(one, with_d=with_d)
            _draw(
                panel,
                one,
                style_of[_key(one, by_d=by_d)],
                label,
                theory[id(one)],
                limits[1],
                detail=detail,
            )
        _legend(panel, group, limits[1], detail=detail)
        panel.set_title(_panel_title(kind, group))
        ticks(panel.xaxis, sizes)
        ticks(panel.yaxis, limits, every=False)
    axes[0].set_ylabel("word sensitivity S (attained)")
    if title:
        figure.suptitle(title)
    figure.caption = (
        f"{BARS} Solid: fitted power laws. Dashed: theory, no bound. Hatched: up to "
        "the upper bound."
    )
    return figure


_Key = tuple[str, int, tuple[str, ...]]


def _key(series: Series, *, by_d: bool) -> _Key:
    return (series.map, series.d if by_d else 0, series.varied)


def _label(series: Series, *, with_d: bool) -> str:
    """The line of the legend for a series."""
    name = ", ".join(
        [map_title(series.map), *([f"d = {series.d}"] if with_d else []), *series.varied]
    )
    if series.exponent is None:
        return name
    label = f"{name}: exponent {series.exponent}"
    slope = series.theory_exponent
    return (
        label if slope is None else label + f", theory {slope:.2f}".replace("-", "\N{MINUS SIGN}")
    )


def _panel_title(kind: str, series: Sequence[Series]) -> str:
    name, alone = text_title(kind), len({one.d for one in series}) == 1
    return f"{name[0].upper()}{name[1:]}" + (f", d = {series[0].d}" if alone else "")


def _theory(series: Series) -> Sequence[tuple[float, float]]:
    """What theory predicts: under fully connected layers the law of `rf_sensitivity` at every n
    between the measured ones, where it is what was predicted of the texts; else those
    predictions."""
    known = [(point.n, point.predicted) for point in series.points if point.predicted]
    base = base_name(series.map)
    if base not in ("rf", "drf") or len(known) < 2:
        return known
    depth = int(series.map.removeprefix(base) or 1)
    sizes = sorted(
        {round(n) for n in np.geomspace(known[0][0], known[-1][0], 25)} | {n for n, _ in known}
    )
    law = {
        n: finite_width_sensitivity(
            n, series.d, n * series.d, depth, "relu", min(n, series.searched)
        )
        for n in sizes
    }
    same = all(abs(law[n] - value) <= _SAME_LAW * value for n, value in known)
    return list(law.items()) if same else known


def _limits(
    series: Sequence[Series], theory: Iterable[float], *, detail: bool
) -> tuple[float, float]:
    """The S axis: every mean with its bar, theory, the bands that are drawn, and a little to
    spare."""
    points = [point for one in series for point in one.points]
    values = [end for point in points for end in interval(point.value, positive=True)] + list(
        theory
    )
    highest = _TALLEST_BAND * max(values)
    if detail:
        values += [
            point.words[0]
            for one in series
            if one.all_words
            for point in one.points
            if point.words is not None
        ]
    values += [
        upper
        for one in series
        if max(uppers := _uppers(one), default=math.inf) <= highest
        for upper in uppers
    ]
    shown = [value for value in values if value > 0] or [0.1, 1.0]
    spare = max((max(shown) / min(shown)) ** 0.05, 1.02)
    return min(shown) / spare, max(shown) * spare


def _uppers(series: Series) -> list[float]:
    return [point.upper for point in series.points if point.upper is not None]


def _draw(
    panel: Axes,
    series: Series,
    style: Style,
    label: str,
    theory: Sequence[tuple[float, float]],
    top: float,
    *,
    detail: bool,
) -> None:
    colour, points = style[0], series.points
    estimates = [(point.n, point.value) for point in points]
    marks(
        panel,
        estimates,
        style,
        label,
        joined=False,
        titles=[f"{label.partition(': exponent')[0]}: {_told(one, series)}" for one in points],
    )
    if series.exponent is not None and series.constant is not None:
        reach = np.geomspace(points[0].n, points[-1].n, 25)
        panel.plot(reach, series.constant * reach**series.exponent.value, color=colour)
    known = [(point.n, *point.words) for point in points if point.words is not None]
    if known and series.all_words and detail:
        sizes, least, low, high, most = (list(column) for column in zip(*known, strict=True))
        panel.fill_between(
            sizes, least, most, color=colour, alpha=_ALL_WORDS, linewidth=0, zorder=0.3
        )
        panel.fill_between(
            sizes, low, high, color=colour, alpha=_MIDDLE_WORDS, linewidth=0, zorder=0.4
        )
    if _uppers(series) and max(_uppers(series)) <= top:
        bounded = [
            (point.n, point.value.value, point.upper) for point in points if point.upper is not None
        ]
        sizes, means, uppers = (list(column) for column in zip(*bounded, strict=True))
        panel.fill_between(
            sizes, means, uppers, color=colour, alpha=_BRACKET, linewidth=0, zorder=0.5
        )
        lines = {"facecolor": "none", "edgecolor": colour, "linewidth": 0, "hatch": _HATCH}
        panel.fill_between(
            sizes, means, uppers, **lines, zorder=0.5
        )  # an SVG gives lines and ground one opacity
    if len(theory) > 1:
        panel.plot(*zip(*theory, strict=True), color=colour, linestyle=_DASHES, zorder=1)
    beyond = [
        (point.n, point.predicted) for point in points if point.predicted and not point.in_range
    ]
    if beyond:
        panel.plot(*zip(*beyond, strict=True), color=colour, linestyle="", marker="x", markersize=5)


def _told(point: SizePoint, series: Series) -> str:
    parts = [plural(point.value.n or 1, "draw")]
    if point.upper is not None:
        parts.append(f"at most {point.upper:.3g}")
    if point.predicted is not None:
        doubt = "" if point.in_range else " (not compared with measurements at such sizes)"
        parts.append(f"predicted {point.predicted:.3g} for {series.predicted_of}{doubt}")
    return f"{point.value.value:.3g} at {point.n} ({', '.join(parts)})"


def _legend(panel: Axes, series: Sequence[Series], top: float, *, detail: bool) -> None:
    """Below the panel: its series, then what bands and dashes are, and the upper bounds that are
    not shown."""
    handles, labels = panel.get_legend_handles_labels()
    bounded = [one for one in series if _uppers(one)]
    beyond = [map_title(one.map) for one in bounded if max(_uppers(one)) > top]
    predicted = [one for one in series if one.predicted_of is not None]
    grey = {"color": GUIDE, "linewidth": 0}

    def entry(handle: object, label: str) -> None:
        handles.append(handle)  # pyright: ignore[reportArgumentType]
        labels.append(label)

    if detail and any(one.all_words and point.words for one in series for point in one.points):
        entry(Patch(alpha=0.2, **grey), "light: every word")
        entry(Patch(alpha=0.6, **grey), "darker: the middle half of the words")
    if len(bounded) > len(beyond):
        what = (
            "certified upper bound"
            if all(one.rigor == CERTIFIED for one in bounded)
            else "upper bound"
        )
        entry(
            Patch(facecolor="none", edgecolor=GUIDE, linewidth=0, hatch=2 * _HATCH),
            f"hatched: up to the {what}",
        )
    if predicted:
        entry(Line2D([], [], color=GUIDE, linestyle=_DASHES), "theory at these n and d, no bound")
    if not all(one.in_range for one in predicted):
        entry(
            Line2D([], [], color=GUIDE, linestyle=_DASHES, marker="x", markersize=5),
            "theory, not compared at such sizes",
        )
    if beyond:
        entry(Line2D([], [], linestyle=""), f"upper bound off the panel: {_listed(beyond)}")
    figure = panel.get_figure()
    assert figure is not None
    panel.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=panel.transAxes
        + ScaledTranslation(0, -_LEGEND_DROP_INCHES, figure.dpi_scale_trans),
    )


def _listed(names: Sequence[str]) -> str:
    """The names; what they share at their beginning once.

    >>> _listed(["DRF, L = 4", "DRF, L = 8"])
    'DRF, L = 4, 8'
    """
    first = names[0].rpartition(" ")[0]
    alike = len(names) > 1 and first and all(name.rpartition(" ")[0] == first for name in names)
    return (
        f"{first} {', '.join(name.rpartition(' ')[2] for name in names)}"
        if alike
        else ", ".join(names)
    )


_TITLES = {
    "rf": "Random features",
    "drf": "Deep random features",
    "raf": "Random attention features",
}


def overview_figure(records: Iterable[Record], **options: Any) -> Any:
    """All maps on one axis; of too many series those of each map's largest d. None where no length
    varies."""
    group = [
        record
        for record in as_records(records, "sensitivity")
        if record.done and record.text != GIVEN
    ]
    if len({record.n for record in group}) < 2:
        return None
    if len({(record.map, record.d, record.text) for record in group}) > MOST_SERIES:
        largest: dict[tuple[str, str], int] = {}
        for record in group:
            largest[record.map, record.text] = max(
                record.d, largest.get((record.map, record.text), 0)
            )
        group = [record for record in group if record.d == largest[record.map, record.text]]
    return sensitivity_figure(group, title="Word sensitivity", detail=False, **options)


def sensitivity_figures(records: Sequence[Record]) -> Figures:
    """All maps on one axis, then each family by itself, with every word's value."""
    families: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        base = base_name(record.map)
        shipped = MAPS.get(base)  # none for a transformer's layer and a map of one's own
        families["raf" if shipped is not None and shipped.family == "attention" else base].append(
            record
        )
    drawn = {"sensitivity": overview_figure(records)} if len(families) > 1 else {}
    for name in sorted(
        families,
        key=lambda name: (name not in _TITLES, list(_TITLES).index(name) if name in _TITLES else 0),
    ):
        file = "".join(letter if letter.isalnum() else "-" for letter in name)
        drawn[file] = sensitivity_figure(families[name], title=_TITLES.get(name) or map_title(name))
    return drawn
