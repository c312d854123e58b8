"""One style for all figures: the style file, widths that a paper prints, and a colour and mark for
each map."""

import functools
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from matplotlib import style as styles
from matplotlib.figure import Figure

from wordsens.errors import InputError, argument
from wordsens.maps.registry import MAPS, base_name

# One column of a paper in two, as ICML sets it, and both columns.
COLUMN_INCHES, PAGE_INCHES = 3.25, 6.75

# A file, or a name that matplotlib knows; None for our own file.
StyleFile = str | Path | None

Drawing = TypeVar("Drawing", bound=Callable[..., Figure])

# Colour, marker, whether the marker is hollow.
Style = tuple[str, str, bool]

# Okabe and Ito's colours, distinguishable for colour-blind readers; each has a marker for print in
# black. The first are those of the registry's maps.
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
)

# The most series that a figure can tell apart: each colour with a filled and a hollow marker.
MOST_SERIES = 2 * len(STYLES)

# The colour of guide lines.
GUIDE = "#777777"

_OURS = Path(__file__).with_name("wordsens.mplstyle")

# The style in which figures are drawn.
_IN_USE: ContextVar[str | Path] = ContextVar("style", default=_OURS)


class StyledFigure(Figure):
    """A figure that is written in the style it was drawn in.

    Attributes:
        titles: by the gid of a line with marks, the titles that a page gives to its marks.
        caption: what marks, bars, bands and lines are.
    """

    caption: str = ""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.titles: dict[str, tuple[str, ...]] = {}
        self.style = _IN_USE.get()

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """As matplotlib's, in the figure's style: fonts are embedded when a file is written."""
        with in_style(self.style):
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> bytes:
        """The picture for a notebook, which without pyplot shows no figures."""
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=130)
        return picture.getvalue()


@contextmanager
def in_style(style: StyleFile) -> Iterator[None]:
    """Inside, matplotlib's settings are its defaults with this style over them, whatever the user's
    own are; None leaves the style that is in use.

    Raises:
        InputError: there is no such style.
    """
    chosen = style or _IN_USE.get()
    with ExitStack() as stack:
        try:
            stack.enter_context(styles.context(str(chosen), after_reset=True))
        except OSError as error:
            raise InputError(
                f"{argument('style')} (={str(style)!r}) is neither a file nor a style of "
                "matplotlib; give a .mplstyle file, or one of matplotlib.style.available"
            ) from error
        stack.callback(_IN_USE.reset, _IN_USE.set(chosen))
        yield


def styled(draw: Drawing) -> Drawing:
    """Makes a function draw in the style that its keyword `style` names."""

    @functools.wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Figure:
        with in_style(options.get("style")):
            return draw(*arguments, **options)

    return drawn  # pyright: ignore[reportReturnType]


def styles_of(maps: Mapping[Any, str | None]) -> dict[Any, Style]:
    """A style for each series, given with the map of its records or None; no two are alike.

    A map of the registry has its own colour and mark; a deeper one, and the other series of a map,
    have its colour and other marks. Series of no such map take what is left.

    Raises:
        InputError: more series than a figure can tell apart.

    >>> list(styles_of({"a": "drf2", "b": "drf4", "c": "rf"}).values())
    [('#D55E00', 's', False), ('#D55E00', 'D', True), ('#0072B2', 'o', False)]
    """
    if len(maps) > MOST_SERIES:
        raise InputError(
            f"{argument('colour')} gives {len(maps)} series, but a figure tells at most "
            f"{MOST_SERIES} apart; choose some, and draw several figures"
        )
    chosen: dict[Any, Style | None] = {}
    for series, name in maps.items():
        own = (style for style in _of_map(name or "") if style not in chosen.values())
        chosen[series] = next(own, None)
    # Beside maps of the registry the colours of the least common ones come first.
    left = STYLES[::-1] if any(maps.values()) else STYLES
    styles = [(*style, hollow) for hollow in (False, True) for style in left]
    free = (style for style in styles if style not in chosen.values())
    return {series: style or next(free) for series, style in chosen.items()}


def _of_map(name: str) -> list[Style]:
    """The styles in the colour of a map of the registry, its own first; of a deep one the mark of
    its depth."""
    colours = dict(zip(MAPS, STYLES, strict=False))
    base = base_name(name)
    if base not in colours:
        return []
    colour, mark = colours[base]
    depth = int(name.partition("(")[0].removeprefix(base) or 2)
    marks = [other for _, other in STYLES]
    first = (marks.index(mark) + depth - 2) % len(marks)
    turned = marks[first:] + marks[:first]
    return [(colour, each, each != mark) for each in turned]
