"""The four figures, each of columns by name: lines, points, bars and heat maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from wordsens.display.view import Chart
from wordsens.errors import InputError, argument, require_choice
from wordsens.maps.registry import map_title
from wordsens.plotting.axes import (
    LEGEND_LETTERS,
    finish,
    guide,
    marks,
    name_axes,
    panels,
    plain,
    reaches,
    ticks,
)
from wordsens.plotting.style import (
    GUIDE,
    PAGE_INCHES,
    STYLES,
    StyledFigure,
    StyleFile,
    styled,
    styles_of,
)
from wordsens.results import split_estimates
from wordsens.sweeps.study import key_text

Columns = str | Sequence[str] | None

# The width in which the intervals of the series at one x lie side by side, at most 2.5 apart, in
# points.
_ASIDE, _MOST_ASIDE = 8.0, 2.5

# Names under the bars of a figure that is a column wide, of one that is a page wide, and beside a
# heat map: more would touch.
_MOST_IN_A_COLUMN, _MOST_NAMES, _MOST_TOKENS = 20, 60, 40

# The width of a letter in a name under a bar.
_LETTER_INCHES = 0.056

# White at zero, blue above and orange below, as the words on a page.
_SIGNED = LinearSegmentedColormap.from_list(
    "signed", ["#5c2800", "#D55E00", "#eeae7a", "#ffffff", "#56B4E9", "#0072B2", "#00304d"]
)

# The lines of a series besides that through its marks, and their look.
_LINES: dict[str, dict[str, Any]] = {
    "fit": {},
    "dashes": {"linestyle": (0, (4, 2)), "zorder": 1},
}


def draw(chart: Chart, *, style: StyleFile = None) -> StyledFigure:
    """The figure of a view's chart.

    Args:
        chart: of a view that has one.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: what the chart's figure raises.

    >>> chart = Chart("points", {"n": [8, 16], "S": [0.4, 0.3]}, {"x": "n", "y": "S"})
    >>> draw(chart).axes[0].get_ylabel()
    'S'
    """
    figure = {"lines": lines, "points": points, "bars": bars, "heat": heat}[chart.kind]
    return figure(chart.columns, **chart.options, style=style)


@styled
def lines(
    columns: Any,
    *,
    x: str,
    y: str,
    colour: Columns = None,
    panel: Columns = None,
    log: str = "",
    band: tuple[str, str] = ("", ""),
    fit: str = "",
    dashes: str = "",
    about: str = "",
    guides: Mapping[str, Sequence[tuple[float | None, float | None]]] | None = None,
    limits: tuple[float | None, float | None] = (None, None),
    joined: bool = True,
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
    named = labels or {}
    roles = {"x": x, "y": y, "bottom": band[0], "top": band[1], "fit": fit, "dashes": dashes}
    rows = _rows(columns, colour, panel, named, **roles, about=about)
    if band == (f"{y} low", f"{y} high"):
        rows[["low", "high"]] = None
    for axis in log:
        if (least := min(rows[axis])) <= 0:
            raise InputError(
                f"{argument('log')} (={log!r}) needs numbers above 0, but {roles[axis]} has {least}"
            )
        # Matplotlib divides by 0 where the ends of an axis differ in the last digit alone.
        rows[axis] = [float(f"{v:.12g}") if isinstance(v, float) else v for v in rows[axis]]
    styles = styles_of(dict(zip(rows["series"], rows["map"], strict=True)))
    heads = rows["panel"].unique().tolist()
    wide = len(heads) == 1 and max(map(len, styles)) > LEGEND_LETTERS
    figure, pairs = panels(heads, log=log, share_y=share_y, wide=wide)
    if not isinstance(rows["x"].iloc[0], str):
        rows = rows.sort_values("x", kind="stable")
    for axes, head in zip(pairs, heads, strict=True):
        axes.margins(x=0.07)
        part = rows[rows["panel"] == head]
        names = [name for name in styles if name in set(part["series"])]
        apart = joined * part["low"].notna().any() * min(_MOST_ASIDE, _ASIDE / len(names))
        for number, name in enumerate(names):
            curve, ink = part[part["series"] == name], styles[name][0]
            aside = apart * (number - (len(names) - 1) / 2)
            is_joined = joined and curve["fit"].isna().all()
            marks(axes, curve, styles[name], name, joined=is_joined, aside=aside)
            for role, look in _LINES.items():
                line = curve.dropna(subset=role)
                if len(line):
                    axes.plot(line["x"].tolist(), line[role].tolist(), color=ink, **look)
            shaded = curve.dropna(subset=["bottom", "top"])
            if len(shaded):
                ends = [shaded[role].tolist() for role in ("x", "bottom", "top")]
                axes.fill_between(*ends, color=ink, alpha=0.2, linewidth=0)
        for name, places in (guides or {}).items():
            guide(axes, places, name)
        first: Any = axes.get_subplotspec()
        named_y = named.get(y, y) if first.is_first_col() or not share_y else ""
        name_axes(axes, named.get(x, x), named_y)
    for axes, head in zip(pairs, heads, strict=True):  # with the limits that all panels give
        if limits != (None, None):
            axes.set_ylim(*limits)
        part = rows[rows["panel"] == head]
        ticks(axes.xaxis, [place for place in part["x"] if not isinstance(place, str)])
        ticks(axes.yaxis, part["y"].tolist(), every=False)
    finish(figure, pairs, title, caption)
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
    reaching: str = "",
    above: str = "",
    labels: Mapping[str, str] | None = None,
    title: str = "",
    caption: str = "",
    style: StyleFile = None,
) -> StyledFigure:
    """A bar from zero for each row, the largest in another colour; with colour columns the bars of
    one x are side by side.

    Args:
        columns, x, y, labels, title, caption, style: as for `lines`.
        colour: columns that tell the bars of one x apart.
        reaching: what the ends of the intervals are, for the legend.
        above: a column of texts, written above the bars.

    Raises:
        InputError: no such column, or nothing to draw.

    >>> figure = bars({"word": ["not", "good"], "S": [0.8, 0.3]}, x="word", y="S")
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [0.8, 0.3]
    """
    named = labels or {}
    rows = _rows(columns, colour, None, named, x=x, y=y, above=above)
    styles = styles_of(dict(zip(rows["series"], rows["map"], strict=True)))
    figure, (axes,) = panels([""], wide=len(rows) > _MOST_IN_A_COLUMN)
    names = rows["x"].drop_duplicates().tolist() if colour else rows["x"].tolist()
    rows["place"] = rows["x"].map(names.index) if colour else range(len(rows))
    largest, width = rows["y"].astype(float).idxmax(), 0.8 / len(styles)
    for number, (name, look) in enumerate(styles.items()):
        own = rows[rows["series"] == name]
        places = own["place"] + width * (number - (len(styles) - 1) / 2)
        heights, reach = own["y"].tolist(), reaches(own)
        shades = [look[0] if colour else STYLES[row == largest][0] for row in own.index]
        drawn = axes.bar(places, heights, 0.95 * width, color=shades, label=plain(name) or "_")
        if reach.any():
            line = {"fmt": "none", "ecolor": GUIDE, "elinewidth": 0.8}
            axes.errorbar(places, heights, reach, label=plain(reaching) or "_", **line)
        if above:
            axes.bar_label(drawn, [text or "" for text in own["above"]], padding=2)
            axes.margins(y=0.12)
    axes.grid(False, axis="x")
    name_axes(axes, named.get(x, x), named.get(y, y))
    axes.set_xticks(range(len(names)), map(plain, names))
    room = (figure.get_figwidth() - 0.7) / len(names)
    if len(names) > _MOST_NAMES:
        axes.set_xticks([])
    elif _LETTER_INCHES * (max(len(str(name)) for name in names) + 1) > room:
        axes.tick_params(axis="x", rotation=90)
    finish(figure, [axes], title, caption)
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

    >>> columns = {"to": [0, 1], "from": [0, 0], "S": [1.0, -2.0]}
    >>> heat(columns, x="to", y="from", colour="S").axes[0].images[0].get_array().tolist()
    [[1.0, -2.0]]
    """
    named = labels or {}
    rows = _rows(columns, None, panel, named, x=x, y=y, value=colour, scale=scale)
    heads = rows["panel"].unique().tolist()
    size = (PAGE_INCHES, PAGE_INCHES / max(2, len(heads)) + 0.75)
    figure = StyledFigure(figsize=size, layout="constrained")
    pairs = dict(zip(heads, figure.subplots(1, len(heads), squeeze=False)[0], strict=True))
    rows["scale"] = rows["scale"].where(rows["scale"].notna(), named.get(colour, colour))
    for label, shared in rows.groupby("scale", sort=False):
        least, most = min(shared["value"]), max(map(abs, shared["value"])) or 1.0
        image: Any = None
        beside = [pairs[head] for head in shared["panel"].unique()]
        for head, cells in shared.groupby("panel", sort=False):
            axes = pairs[head]
            matrix = np.full((max(cells["y"]) + 1, max(cells["x"]) + 1), np.nan)
            matrix[cells["y"].tolist(), cells["x"].tolist()] = cells["value"]
            image = axes.imshow(matrix, cmap=_SIGNED, vmin=-most, vmax=most)
            axes.set_title(plain(head))
            axes.grid(False)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(True)
            if names is not None:
                _name_cells(axes, names[str(head)], bold)
        look = {"location": "bottom", "aspect": 15 * len(beside), "shrink": 0.8}
        key = figure.colorbar(image, ax=beside, label=plain(label), **look)
        key.ax.set_xlim(-most if least < 0 else 0, most)
    finish(figure, [], title, caption)
    return figure


def _name_cells(axes: Axes, names: Sequence[str], bold: Sequence[int]) -> None:
    written = [plain(name) for name in names] if len(names) <= _MOST_TOKENS else []
    axes.set_xticks(range(len(written)), written, rotation=90)
    axes.set_yticks(range(len(written)), written)
    for place in bold if written else ():
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            labels[place].set_fontweight("bold")


def _names(columns: Columns) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def _rows(
    columns: Any, colour: Columns, panel: Columns, named: Mapping[str, str], **roles: str
) -> Any:
    """The rows that have a number to draw at a place: their columns under the names of their roles,
    the ends of the interval of y (`low`, `high`), and the names of their `series` and `panel`. None
    stands for what a row lacks."""
    import pandas as pd

    cells = split_estimates(dict(columns))
    wanted = dict.fromkeys([*filter(None, roles.values()), *_names(colour), *_names(panel)])
    for name in wanted:
        require_choice("columns", name, list(map(str, cells)))
    ends = {end: f"{roles['y']} {end}" for end in ("low", "high")}
    cells = {name: cells[name] for name in (*wanted, *ends.values()) if name in cells}
    lengths = {name: len(values) for name, values in cells.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(
            f"{argument('columns')} differ in length ({listed}); give one cell per row to each"
        )
    table = pd.DataFrame(cells, dtype=object)
    needed = [roles[role] for role in ("x", "y", "value") if role in roles]
    table = table.where(table.notna(), None).dropna(subset=needed)
    if table.empty:
        raise InputError(
            f"{argument('columns')} has no row with {', '.join(needed)}; there is nothing to draw"
        )
    rows = {role: table.get(name) for role, name in (roles | ends).items()}
    rows["map"] = table["map"] if "map" in _names(colour) else None
    for role, names in (("series", colour), ("panel", panel)):
        rows[role] = [label_of(row, names, named) for row in table.to_dict("records")]
    return pd.DataFrame(rows, dtype=object, index=table.index)


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
