"""One style for all figures: the style file, colours, widths that a paper prints, logarithmic axes,
legends, and SVG that a page can colour."""

import functools
import io
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar

from wordsens.display.numbers import Estimate
from wordsens.display.view import Picture, View
from wordsens.errors import InputError, MissingExtraError
from wordsens.maps.registry import MAP_NAMES, base_name

try:
    from matplotlib import style as styles
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
    from matplotlib.transforms import ScaledTranslation
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

COLUMN_INCHES = 3.25
"""One column of a paper in two, as ICML sets it."""

PAGE_INCHES = 6.75
"""Both columns."""

OURS = Path(__file__).with_name("wordsens.mplstyle")

StyleFile = str | Path | None
"""A file, or a name that matplotlib knows; None for our own file."""

Drawing = TypeVar("Drawing", bound=Callable[..., Figure])

# Okabe and Ito's colours, distinguishable for colour-blind readers; each has a marker for print in
# black.
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
)
MOST_SERIES = 2 * len(STYLES)
"""So many series a figure can tell apart: each colour with a filled and with a hollow marker."""

GUIDE = "#777777"
BARS = "Marks are means over draws; bars are 95 % confidence intervals."

Style = tuple[str, str, bool]
"""Colour, marker, whether the marker is hollow."""


class StyledFigure(Figure):
    """A figure that is written in the style it was drawn in: fonts are embedded when a file is
    written.

    Attributes:
        style: the style file.
        titles: by the gid of a line with marks, what a page tells of each of its marks.
        caption: what marks, bars, bands and lines are.
    """

    style: StyleFile = None
    caption: str = ""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.titles: dict[str, tuple[str, ...]] = {}

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """As matplotlib's, in the figure's own style."""
        with in_style(self.style):
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> bytes:
        """The picture that a notebook shows: without pyplot it knows no figures."""
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=130)
        return picture.getvalue()


@contextmanager
def in_style(style: StyleFile) -> Iterator[None]:
    """Inside, matplotlib's settings are its defaults with this style over them, whatever the user's
    own are.

    Raises:
        InputError: there is no such style.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(styles.context(str(style or OURS), after_reset=True))
        except OSError as error:
            raise InputError(
                f"`style` (={str(style)!r}) is neither a file nor a style of matplotlib; give a "
                ".mplstyle file, or one "
                "of matplotlib.style.available"
            ) from error
        yield


def styled(draw: Drawing) -> Drawing:
    """Makes a function draw in the style that its keyword `style` names, in which its figure is
    written too."""

    @functools.wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Figure:
        style = options.get("style")
        with in_style(style):
            figure = draw(*arguments, **options)
        figure.style = style  # pyright: ignore[reportAttributeAccessIssue] - a StyledFigure
        return figure

    return drawn  # pyright: ignore[reportReturnType]


def series_styles(keys: Sequence[tuple[Hashable, str | None]]) -> list[Style]:
    """A style for each series, given as (key, map of its records or None); no two are alike up to
    MOST_SERIES.

    The first series of a map of the registry has the map's own colour; the others take those that
    are left.

    >>> series_styles([("a", "drf2"), ("b", "rf"), ("c", "drf4")])[:2]
    [('#D55E00', 's', False), ('#0072B2', 'o', False)]
    """
    styles: list[Style | None] = [None] * len(keys)
    free = [(*style, hollow) for hollow in (False, True) for style in STYLES]
    for at, (_, name) in enumerate(keys):
        base = None if name is None else base_name(name)
        if base in MAP_NAMES and (place := MAP_NAMES.index(base)) < len(STYLES):
            own = (*STYLES[place], False)
            if own in free:
                styles[at] = own
                free.remove(own)
    return [style or free.pop(0) for style in styles]


def styles_of(names: Iterable[str] | Mapping[str, str | None]) -> dict[str, Style]:
    """A style for each of these names of series, which may be given with the map of each."""
    maps = names if isinstance(names, Mapping) else dict.fromkeys(names)
    return dict(zip(maps, series_styles(list(maps.items())), strict=True))


def bar_ends(value: Estimate, *, positive: bool = False) -> tuple[float, float]:
    """Both ends of an interval's bar, the value itself without one; on a logarithmic axis the lower
    one stays above 0."""
    if value.low is None or value.high is None:
        return value.value, value.value
    return (max(value.low, value.value / 3) if positive else value.low), value.high


def draws_text(count: int) -> str:
    """
    >>> draws_text(1), draws_text(3)
    ('1 draw', '3 draws')
    """
    return f"{count} draw{'' if count == 1 else 's'}"


def marks(
    axes: Axes,
    points: Sequence[tuple[Any, Estimate]],
    style: Style,
    label: str,
    *,
    joined: bool = True,
    positive: bool = False,
    notes: Sequence[str] = (),
    aside: float = 0.0,
) -> Any:
    """Draw means with bars of their intervals, none where no mean has one; `notes`, one a
    point, are told of the marks in a page; `aside` points to the right, so that series hide no bars
    of each other."""
    colour, marker, hollow = style
    places, means = [x for x, _ in points], [value.value for _, value in points]
    ends = [bar_ends(value, positive=positive) for _, value in points]
    low, high = (
        [abs(mean - end[side]) for mean, end in zip(means, ends, strict=True)] for side in (0, 1)
    )
    bars = axes.errorbar(
        places,
        means,
        yerr=[low, high] if any(high) else None,
        fmt=marker,
        color=colour,
        elinewidth=0.8,
        linestyle="-" if joined else "none",
        fillstyle="none" if hollow else "full",
        label=label,
    )
    line, caps, reaches = bars.lines
    for artist in (line, *caps, *reaches):
        artist.set_transform(
            axes.transData + ScaledTranslation(aside / 72, 0, axes.figure.dpi_scale_trans)
        )
    said = notes or [draws_text(value.n or 1) for _, value in points]
    name = label.partition(": exponent")[0]
    titles = [
        f"{name}: {value.value:.3g}"
        + (f" at {x:.4g} ({note})" if isinstance(x, int | float) else "")
        for (x, value), note in zip(points, said, strict=True)
    ]
    tell(axes, line, titles)
    return bars


def tell(axes: Axes, line: Any, titles: Sequence[str]) -> None:
    """Have a page tell these titles of the marks of a line or scatter."""
    figure = axes.get_figure()
    if isinstance(figure, StyledFigure):
        line.set_gid(f"marks{len(figure.titles)}")
        figure.titles[line.get_gid()] = tuple(titles)


def guide(axes: Axes, points: Sequence[tuple[float, float]], label: str) -> None:
    """Draw a dotted line of theory, of as many points as it takes to be right on any axes."""
    axes.plot(
        *zip(*points, strict=True), color=GUIDE, linestyle=":", linewidth=1.2, zorder=1, label=label
    )


def log_axes(
    axes: Axes, places: Sequence[float] = (), limits: tuple[float, float] | None = None
) -> None:
    """Make both axes logarithmic, or only that of x without limits, with plain numbers where they
    do not touch.

    Args:
        places: of the marks: ticks of x.
        limits: of y.
    """
    if places:
        axes.set_xscale("log")
        low, high = math.log(min(places)), math.log(max(places))
        pad = 0.06 * (high - low) or math.log(2)
        axes.set_xlim(math.exp(low - pad), math.exp(high + pad))
        ticks = sorted(set(places))
        chosen = all(map(_plain_size, ticks)) and spaced(ticks) == ticks
        _ticks(
            axes.xaxis, ticks if chosen else round_values(math.exp(low - pad), math.exp(high + pad))
        )
    if limits is not None:
        axes.set_yscale("log")
        axes.set_ylim(*limits)
        _ticks(axes.yaxis, round_values(*limits))


def _plain_size(value: float) -> bool:
    """True of a whole number that a person would write at an axis: of one or two digits before its
    zeros, or a small number doubled again and again.

    >>> [size for size in (16, 39, 151, 250, 301, 384, 81920) if _plain_size(size)]
    [16, 39, 250, 384, 81920]
    """
    if not float(value).is_integer() or value < 1:
        return False
    doublings = int(value) & -int(value)
    return int(value) // doublings < 10 or len(f"{value:.0f}".rstrip("0")) <= 2


def _ticks(axis: Axis, places: Sequence[float]) -> None:
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def round_values(low: float, high: float, *, most: int = 5) -> list[float]:
    """Between 3 and `most` round numbers for the ticks of a logarithmic axis: 1-2-5 a decade,
    fewer, or even steps.

    >>> round_values(8, 250), round_values(0.7, 400), round_values(42, 130)
    ([10.0, 20.0, 50.0, 100.0, 200.0], [1.0, 10.0, 100.0], [60.0, 80.0, 100.0, 120.0])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        inside = [
            value
            for power in decades
            for digit in digits
            if low <= (value := digit * 10.0**power) <= high
        ]
        if 3 <= len(inside) <= most:
            return inside
    for step in (
        digit * 10.0**power for power in decades for digit in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5)
    ):
        inside = [
            step * count for count in range(math.ceil(low / step), math.floor(high / step) + 1)
        ]
        if 3 <= len(inside) <= most:
            return inside
    return [low, high]


def spaced(sizes: Sequence[Any], *, least: float = 0.085) -> list[Any]:
    """The sizes whose labels do not touch on a logarithmic axis; the last one always stays."""
    span = math.log(sizes[-1] / sizes[0]) or 1.0
    shown: list[Any] = []
    for size in sizes[:-1]:
        clear_of_last = math.log(sizes[-1] / size) / span >= least
        if clear_of_last and (not shown or math.log(size / shown[-1]) / span >= least):
            shown.append(size)
    return [*shown, sizes[-1]]


def panels(
    titles: Sequence[str], *, entries: int = 3, share_y: bool = True
) -> tuple[Any, list[Axes]]:
    """A figure and its axes under these titles, at most three abreast; `entries` of a legend have
    room below."""
    abreast = 2 if len(titles) == 4 else min(3, len(titles))
    rows = -(-len(titles) // abreast)
    width = COLUMN_INCHES if abreast == 1 else PAGE_INCHES
    lines = -(-entries // (1 if abreast == 1 else 2))
    figure = StyledFigure(figsize=(width, 1.95 * rows + 0.14 * lines + 0.2), layout="constrained")
    axes = list(figure.subplots(rows, abreast, squeeze=False, sharey=share_y).flatten())
    letters = 44 if abreast < 3 else 28
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(fill(title.replace("$", r"\$"), letters))
    for panel in axes[len(titles) :]:
        panel.set_visible(False)
    return figure, axes[: len(titles)]


def legend_below(figure: Figure, axes: Sequence[Axes], *, extra: Sequence[Any] = ()) -> None:
    """One legend below all panels: each name once."""
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries |= {handle.get_label(): handle for handle in extra}
    if entries:
        wide = figure.get_size_inches()[0] > COLUMN_INCHES
        labels = [fill(label, 52) for label in entries]
        columns = 1 if not wide else 2 if max(map(len, labels)) > 34 else 3
        figure.legend(list(entries.values()), labels, loc="outside lower center", ncols=columns)


_PAGE_COLOURS = {
    **{colour.lower(): f"var(--c{at})" for at, (colour, _) in enumerate(STYLES)},
    "#222222": "var(--ink)",
    "#444444": "var(--soft)",
    "#333333": "var(--soft)",
    "#777777": "var(--soft)",
    "#999999": "var(--soft)",
    "#e3e3e3": "var(--line)",
    "#ffffff": "var(--paper)",
}
"""Colours of figures, and the variables of a page that stand for them, which a dark page has its
own of."""

_COLOUR = re.compile(f'"({"|".join(_PAGE_COLOURS)})"', re.IGNORECASE)
_FONT = re.compile(r"^(?:(bold|[1-9]00) )?([\d.]+)px .*$")


def svg(figure: Figure, *, prefix: str = "figure") -> str:
    """The figure as `savefig` writes it as SVG, for the inside of a page: text as text, colours by
    the page's CSS variables, a title on every mark, ids that begin with `prefix`, and no style
    attributes, which a strict policy forbids."""
    file = io.StringIO()
    figure.savefig(
        file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>\s*|<defs>\s*</defs>", "", text, flags=re.DOTALL)
    for gid, titles in getattr(figure, "titles", {}).items():
        text = _with_titles(text, gid, titles)
    text = re.sub("<[^<>]*>", lambda tag: _page_tag(tag[0], prefix), text)
    width = figure.get_size_inches()[0]
    kind = "column" if width <= COLUMN_INCHES * 1.3 else "page"
    view = re.search(r'viewBox="([^"]*)"', text)
    assert view is not None, "matplotlib gives every SVG its size"
    head = (
        f'<svg class="plot {kind}" viewBox="{view[1]}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + text[text.index(">") + 1 :].rstrip()


def _page_tag(tag: str, prefix: str) -> str:
    """A tag with the page's colours, with its styles as attributes, and with ids of its figure."""
    tag = re.sub(r' style="([^"]*)"', lambda match: _presentation(match[1]), tag)
    tag = _COLOUR.sub(lambda match: f'"{_PAGE_COLOURS[match[1].lower()]}"', tag)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", tag)


def _presentation(css: str) -> str:
    """Declarations as attributes; the page has the font's family."""
    said = {}
    for name, value in (part.split(":", 1) for part in css.split(";") if ":" in part):
        name, value = name.strip(), value.strip()
        if name == "font":
            match = _FONT.match(value)
            assert match is not None, f"matplotlib's {value!r} has a size"
            said |= {"font-size": match[2]} | ({"font-weight": match[1]} if match[1] else {})
        elif name not in ("font-family", "font-variant", "-webkit-transform"):
            said[name] = value.removesuffix("px") if name == "font-size" else value
    return "".join(f' {name}="{value}"' for name, value in said.items())


def _with_titles(text: str, gid: str, titles: Sequence[str]) -> str:
    """The marks of the group of that id, each with its title."""
    start = text.find(f'<g id="{gid}">')
    if start < 0:
        return text
    end, each = (
        text.index('<g id="', start + 1),
        iter(titles),
    )  # of the next artist: no group inside has an id
    group = re.sub(
        r"<use\b([^>]*)/>",
        lambda match: f"<use{match[1]}><title>{escape(next(each, ''))}</title></use>",
        text[start:end],
    )
    return text[:start] + group + text[end:]


def picture(figure: Figure, *, title: str = "", prefix: str = "figure") -> Picture:
    """The figure with its caption, for a page; its own title is left to the page."""
    figure.suptitle("")
    return Picture(title, svg(figure, prefix=prefix), getattr(figure, "caption", ""))


def with_picture(view: View, figure: Figure) -> View:
    """The view with a figure before its tables."""
    return replace(view, parts=(picture(figure), *view.parts))
