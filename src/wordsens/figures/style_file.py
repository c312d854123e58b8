"""The style file of the figures, which a user's may replace, and the widths that a paper prints."""

import functools
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from wordsens.errors import InputError, MissingExtraError

try:
    from matplotlib import style as styles
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

COLUMN_INCHES = 3.25
"""One column of a paper in two, as ICML sets it."""

PAGE_INCHES = 6.75
"""Both columns."""

_NOTEBOOK_DPI = 130

OURS = Path(__file__).with_name("wordsens.mplstyle")

StyleFile = str | Path | None
"""A file, or a name that matplotlib knows; None for our own file."""

Drawing = TypeVar("Drawing", bound=Callable[..., Figure])


class StyledFigure(Figure):
    """A figure that is written in the style it was drawn in: fonts are embedded when a file is written."""

    style: StyleFile = None

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """As matplotlib's, in the figure's own style."""
        with in_style(self.style):
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> bytes:
        """The picture that a notebook shows: without pyplot it knows no figures."""
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=_NOTEBOOK_DPI)
        return drawn.getvalue()


@contextmanager
def in_style(style: StyleFile) -> Iterator[None]:
    """Inside, matplotlib's settings are its defaults with this style over them, whatever the user's own are.

    Raises:
        InputError: there is no such style.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(styles.context(str(style or OURS), after_reset=True))
        except OSError as error:
            raise InputError(
                f"`style` (={str(style)!r}) is neither a file nor a style of matplotlib; give a .mplstyle file, or one "
                "of matplotlib.style.available"
            ) from error
        yield


def styled(draw: Drawing) -> Drawing:
    """Makes a function draw in the style that its keyword `style` names, in which its figure is written too."""

    @functools.wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Figure:
        style = options.get("style")
        with in_style(style):
            figure = draw(*arguments, **options)
        figure.style = style  # pyright: ignore[reportAttributeAccessIssue] - a StyledFigure
        return figure

    return drawn  # pyright: ignore[reportReturnType]
