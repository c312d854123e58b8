"""One style for all figures: the style file, widths that a paper prints, and a colour and mark for
each map."""

import functools
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from matplotlib import style as styles
from matplotlib.figure import Figure

from wordsens.errors import InputError
from wordsens.maps.registry import MAPS, base_name

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
"""The most series that a figure can tell apart: each colour with a filled and a hollow marker."""

GUIDE, INK = "#777777", "#333333"
"""The colours of guide lines, and of what belongs to no map."""

BARS = "Marks are means over draws; bars are 95 % confidence intervals."

Style = tuple[str, str, bool]
"""Colour, marker, whether the marker is hollow."""


class StyledFigure(Figure):
    """A figure that is written in the style it was drawn in.

    Attributes:
        style: the style file.
        titles: by the gid of a line with marks, the titles that a page gives to its marks.
        caption: what marks, bars, bands and lines are.
    """

    style: StyleFile = None
    caption: str = ""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.titles: dict[str, tuple[str, ...]] = {}

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
                ".mplstyle file, or one of matplotlib.style.available"
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


def series_styles(maps: Sequence[str | None]) -> list[Style]:
    """A style for each series, given as the map of its records or None; no two are alike.

    The first series of a map of the registry has the map's own colour; the others take those that
    are left.

    Raises:
        InputError: more series than a figure can tell apart.

    >>> series_styles(["drf2", "rf", "drf4"])[:2]
    [('#D55E00', 's', False), ('#0072B2', 'o', False)]
    """
    free = [(*style, hollow) for hollow in (False, True) for style in STYLES]
    if len(maps) > len(free):
        raise InputError(
            f"`colour` gives {len(maps)} series, but a figure tells at most {len(free)} apart; "
            "choose some, and draw several figures"
        )
    chosen: list[Style | None] = [None] * len(maps)
    for number, name in enumerate(maps):
        base = None if name is None else base_name(name)
        place = list(MAPS).index(base) if base in MAPS else len(STYLES)
        if place < len(STYLES) and (*STYLES[place], False) in free:
            chosen[number] = (*STYLES[place], False)
            free.remove((*STYLES[place], False))
    return [style or free.pop(0) for style in chosen]


def styles_of(names: Iterable[Any] | Mapping[Any, str | None]) -> dict[Any, Style]:
    """A style for each of these names of series, which may be given with the map of each."""
    maps = names if isinstance(names, Mapping) else dict.fromkeys(names)
    return dict(zip(maps, series_styles(list(maps.values())), strict=True))
