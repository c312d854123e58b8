"""The four figures, each of columns by name: lines, points, bars and heat maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from wordsens.display.numbers import Estimate
from wordsens.display.view import Chart
from wordsens.errors import InputError, require_choice
from wordsens.maps.registry import map_title
from wordsens.plotting.axes import Panel, finish, grid, interval, name_axes, panels, plain
from wordsens.plotting.style import (
    GUIDE,
    PAGE_INCHES,
    STYLES,
    Style,
    StyledFigure,
    StyleFile,
    styled,
    styles_of,
)
from wordsens.results import split_estimates
from wordsens.sweeps.study import key_text

Columns = str | Sequence[str] | None

_MOST_IN_A_COLUMN, _MOST_NAMES, _MOST_TOKENS = 20, 60, 40
"""Names under the bars of a figure that is a column wide, of one that is a page wide, and beside a
heat map: more would touch."""

_LETTER_INCHES = 0.056
"""The width of a letter in a name under a bar."""

_SIGNED = LinearSegmentedColormap.from_list(
    "signed", ["#5c2800", "#D55E00", "#eeae7a", "#ffffff", "#56B4E9", "#0072B2", "#00304d"]
)
"""White at zero, blue above and orange below, as the words on a page."""


def draw(chart: Chart | None, *, style: StyleFile = None) -> StyledFigure:
    """The figure of what a view draws.

    Args:
        chart: of a view; None in the view of a result that has nothing to draw.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no chart, or what the chart's figure raises.

    >>> chart = Chart("points", {"n": [8, 16], "S": [0.4, 0.3]}, {"x": "n", "y": "S"})
    >>> draw(chart).axes[0].get_ylabel()
    'S'
    """
    if chart is None:
        raise InputError("`chart` (=None) has nothing to draw; use show() or table()")
    figure = {"lines": lines, "points": points, "bars": bars, "heat": heat}[chart.kind]
    return figure(chart.columns, **chart.options, style=style)


def attention(pair: Any, *, style: StyleFile = None) -> StyledFigure:
    """The heat maps of an `attention_pair`: each text, and the second minus the first."""
    return draw(pair.view().chart, style=style)


def prompts(pair: Any, *, style: StyleFile = None) -> StyledFigure:
    """The bars of a `prompt_pair`: each answer after both prompts, and its change."""
    return draw(pair.view().chart, style=style)


@styled
def lines(
    columns: Any,
    *,
    x: str,
    y: str,
    colour: Columns = None,
    panel: Columns = None,
    log: str = "",
    band: tuple[str, str] | None = None,
    fit: str = "",
    dashes: str = "",
    about: str = "",
    guides: Mapping[str, Sequence[tuple[float | None, float | None]]] | None = None,
    limits: tuple[float | None, float | None] = (None, None),
    joined: bool = True,
    steps: bool = False,
    share_y: bool = True,
    labels: Mapping[str, str] | None = None,
    title: str = "",
    caption: str = "",
    style: StyleFile = None,
) -> StyledFigure:
    """A line of y against x for each series; rows without x or y are left out.

    Args:
        columns: sequences by name, equally long, or a DataFrame.
        x, y: columns. Texts of x are places in their order. Cells of y are numbers or Estimates;
            the interval of a number is in the columns "<y> low" and "<y> high", where there are
            such.
        colour: columns that tell series apart; a map has one colour and mark in every figure.
        panel: columns that tell panels apart.
        log: the logarithmic axes: "x", "y" or "xy".
        band: two columns between which a series is shaded; those of the interval take the place of
            its bars.
        fit: a column whose line is drawn in place of the line through the marks.
        dashes: a column whose line is dashed in the colour of its series: theory, say.
        about: a column with what a page says of each mark.
        guides: by name, the points of a dotted line; None in a single point means the whole axis,
            such as (0.5, None) for a vertical line.
        limits: of y; an end may be None.
        joined: whether lines join the marks.
        steps: whether lines are level from each x to the next.
        share_y: whether all panels have one scale of y.
        labels: the names of columns, series and panels in the figure, where they differ.
        title: above the panels.
        caption: what marks, intervals, bands and lines are.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no such column, nothing to draw, or more series than a figure can tell apart.

    >>> figure = lines({"n": [8, 16], "S": [0.4, 0.3]}, x="n", y="S", log="xy")
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_xscale()
    ('n', 'log')
    """
    named, low, high = labels or {}, f"{y} low", f"{y} high"
    rows = _rows(columns, (x, y), colour, panel, band, fit, dashes, about)
    for name in [{"x": x, "y": y}[axis] for axis in log]:
        if (least := min(row[name] for row in rows)) <= 0:
            raise InputError(f"`log` (={log!r}) needs numbers above 0, but {name} has {least}")
    styles = _styles(rows, colour, named)
    heads = dict.fromkeys(label_of(row, panel, named) for row in rows)
    drawn = {head: Panel(head, {}, guides or {}, limits=limits) for head in heads}
    if not isinstance(rows[0][x], str):
        rows.sort(key=lambda row: row[x])
    for row in rows:
        name, one = label_of(row, colour, named), drawn[label_of(row, panel, named)]
        ends = (None, None) if band == (low, high) else (row[low], row[high])
        one.curves.setdefault(name, []).append((row[x], Estimate(row[y], *ends)))
        if band is not None and None not in (row[band[0]], row[band[1]]):
            one.bands.setdefault(name, []).append((row[x], row[band[0]], row[band[1]]))
        if fit and row[fit] is not None:
            one.fits.setdefault(name, []).append((row[x], row[fit]))
        if dashes and row[dashes] is not None:
            one.dashes.setdefault(name, []).append((row[x], row[dashes]))
        if about:
            one.titles.setdefault(name, []).append(row[about])
        if not joined:
            one.scattered |= {name}
    axis_labels = (named.get(x, x), named.get(y, y))
    options = {"log": log, "steps": steps, "share_y": share_y, "caption": caption}
    figure = grid(title, list(drawn.values()), styles, axis_labels, **options)
    assert figure is not None, "there are rows"
    return figure


def points(columns: Any, **options: Any) -> StyledFigure:
    """A mark for each row, with the options of `lines`.

    >>> points({"n": [8, 16], "S": [0.4, 0.3]}, x="n", y="S").axes[0].get_xlabel()
    'n'
    """
    return lines(columns, joined=False, **options)


@styled
def bars(
    columns: Any,
    *,
    x: str,
    y: str,
    colour: Columns = None,
    panel: Columns = None,
    log: str = "",
    reaching: str = "",
    above: str = "",
    labels: Mapping[str, str] | None = None,
    title: str = "",
    caption: str = "",
    style: StyleFile = None,
) -> StyledFigure:
    """A bar from zero for each row, the largest of a panel in another colour; with colour columns
    the bars of one x are side by side.

    Args:
        columns, x, y, panel, labels, title, caption, style: as for `lines`.
        colour: columns that tell the bars of one x apart.
        log: "y" for a logarithmic axis.
        reaching: what the ends of the intervals are, for the legend.
        above: a column of texts, written above the bars.

    Raises:
        InputError: no such column, or nothing to draw.

    >>> figure = bars({"word": ["not", "good"], "S": [0.8, 0.3]}, x="word", y="S")
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [0.8, 0.3]
    """
    named = labels or {}
    rows = _rows(columns, (x, y), colour, panel, above)
    heads = dict.fromkeys(label_of(row, panel, named) for row in rows)
    looks = _styles(rows, colour, named)
    width = 0.8 / len(looks)
    figure, pairs = panels(list(heads), log=log, wide=len(rows) > _MOST_IN_A_COLUMN)
    for axes, head in zip(pairs, heads, strict=True):
        part = [row for row in rows if label_of(row, panel, named) == head]
        names = list(dict.fromkeys(row[x] for row in part)) if colour else [row[x] for row in part]
        largest = max(part, key=lambda row: row[y])
        for number, (name, look) in enumerate(looks.items()):
            own = [row for row in part if label_of(row, colour, named) == name]
            middle = [names.index(row[x]) for row in own] if colour else range(len(own))
            places = [place + width * (number - (len(looks) - 1) / 2) for place in middle]
            heights = [row[y] for row in own]
            ends = [interval(Estimate(row[y], row[f"{y} low"], row[f"{y} high"])) for row in own]
            reach = np.abs(np.reshape(ends, (-1, 2)).T - heights)
            shades = [look[0] if colour else STYLES[row is largest][0] for row in own]
            drawn = axes.bar(places, heights, 0.95 * width, color=shades, label=plain(name) or "_")
            if reach.any():
                line = {"fmt": "none", "ecolor": GUIDE, "elinewidth": 0.8}
                axes.errorbar(places, heights, reach, label=plain(reaching) or "_", **line)
            if above:
                axes.bar_label(drawn, [row[above] or "" for row in own], padding=2)
                axes.margins(y=0.12)
        axes.grid(False, axis="x")
        name_axes(axes, named.get(x, x), named.get(y, y))
        axes.set_xticks(range(len(names)), map(plain, names))
        each = (figure.get_figwidth() - 0.7) / len(pairs) / len(names)
        if len(names) > _MOST_NAMES:
            axes.set_xticks([])
        elif _LETTER_INCHES * (max(len(str(name)) for name in names) + 1) > each:
            axes.tick_params(axis="x", rotation=90)
    finish(figure, pairs, title, caption)
    return figure


@styled
def heat(
    columns: Any,
    *,
    x: str,
    y: str,
    colour: str,
    panel: Columns = None,
    scale: str = "",
    names: Mapping[str, Sequence[str]] | None = None,
    bold: Sequence[int] = (),
    labels: Mapping[str, str] | None = None,
    title: str = "",
    caption: str = "",
    style: StyleFile = None,
) -> StyledFigure:
    """Heat maps side by side, a page wide: white is zero, blue above, orange below.

    Args:
        columns, panel, labels, title, caption, style: as for `lines`.
        x, y: columns with the place of each cell, from 0: its column, and its row from the top.
        colour: the column with its number.
        scale: a column that tells which panels share a scale of colours, which bears its value as
            a label; "" for one scale.
        names: by panel, the names of its rows and columns.
        bold: the places whose names are bold.

    Raises:
        InputError: no such column, or nothing to draw.

    >>> figure = heat({"to": [0, 1], "from": [0, 0], "S": [1.0, -2.0]}, x="to", y="from", colour="S")
    >>> figure.axes[0].images[0].get_array().tolist()
    [[1.0, -2.0]]
    """  # noqa: E501
    named = labels or {}
    rows = _rows(columns, (x, y, colour), panel, scale)
    scales: dict[str, list[str]] = {}
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        head = label_of(row, panel, named)
        cells.setdefault(head, []).append(row)
        shared = scales.setdefault(row[scale] if scale else named.get(colour, colour), [])
        shared += [head] * (head not in shared)
    size = (PAGE_INCHES, PAGE_INCHES / max(2, len(cells)) + 0.75)
    figure = StyledFigure(figsize=size, layout="constrained")
    pairs = dict(zip(cells, figure.subplots(1, len(cells), squeeze=False)[0], strict=True))
    for label, heads in scales.items():
        values = [row[colour] for head in heads for row in cells[head]]
        most = max(map(abs, values)) or 1.0
        image: Any = None
        for head in heads:
            image = _matrix(pairs[head], cells[head], (x, y, colour), most)
            pairs[head].set_title(plain(head))
            if names is not None:
                _name(pairs[head], names[head], bold)
        look = {"location": "bottom", "aspect": 15 * len(heads), "shrink": 0.8}
        beside = [pairs[head] for head in heads]
        key = figure.colorbar(image, ax=beside, label=plain(label), **look)
        key.ax.set_xlim(-most if min(values) < 0 else 0, most)
    finish(figure, [], title, caption)
    return figure


def _matrix(axes: Axes, cells: Sequence[dict[str, Any]], names: Sequence[str], most: float) -> Any:
    columns, rows, values = ([cell[name] for cell in cells] for name in names)
    matrix = np.full((max(rows) + 1, max(columns) + 1), np.nan)
    matrix[rows, columns] = values
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    return axes.imshow(matrix, cmap=_SIGNED, vmin=-most, vmax=most)


def _name(axes: Axes, names: Sequence[str], bold: Sequence[int]) -> None:
    written = [plain(name) for name in names] if len(names) <= _MOST_TOKENS else []
    axes.set_xticks(range(len(written)), written, rotation=90)
    axes.set_yticks(range(len(written)), written)
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        for place in bold if written else ():
            labels[place].set_fontweight("bold")


def _names(columns: Columns) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def _rows(columns: Any, needed: tuple[str, ...], *others: Any) -> list[dict[str, Any]]:
    """The rows that lack nothing needed (x, y, ...), with the other columns; the ends of the
    interval of y are None where it has none."""
    if hasattr(columns, "notna"):
        columns = columns.astype(object).where(columns.notna(), None)
    cells = split_estimates(dict(columns))
    x, y = needed[:2]
    wanted = [*needed, *filter(None, (name for other in others for name in _names(other)))]
    for name in wanted:
        require_choice("columns", name, list(map(str, cells)))
    count = len(cells[x])
    ends = {end: cells.get(end, [None] * count) for end in (f"{y} low", f"{y} high")}
    cells = {name: cells[name] for name in wanted} | ends
    if any(len(values) != count for values in cells.values()):
        lengths = ", ".join(f"{name} {len(values)}" for name, values in cells.items())
        raise InputError(f"`columns` differ in length ({lengths}); give one cell per row to each")
    known = [[None if value != value else value for value in values] for values in cells.values()]
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*known, strict=True)]
    rows = [row for row in rows if all(row[name] is not None for name in needed)]
    if not rows:
        raise InputError(f"`columns` has no row with {', '.join(needed)}; there is nothing to draw")
    return rows


def _styles(
    rows: Sequence[dict[str, Any]], colour: Columns, named: Mapping[str, str]
) -> dict[str, Style]:
    """The style of each series, in the order of the rows."""
    with_map = "map" in _names(colour)
    return styles_of(
        {label_of(row, colour, named): row["map"] if with_map else None for row in rows}
    )


def label_of(
    row: Mapping[str, Any], columns: Columns, named: Mapping[str, str] | None = None
) -> str:
    """The name of the series or panel of a row: its values in these columns."""
    names = _names(columns)
    parts = [
        map_title(row[name])
        if name == "map"
        else row[name]
        if isinstance(row[name], str) and (name == "text" or len(names) == 1)
        else key_text(name, row[name])
        for name in names
        if row[name] is not None
    ]
    label = ", ".join(parts)
    return (named or {}).get(label, label)
