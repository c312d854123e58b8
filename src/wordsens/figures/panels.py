"""Figures as data: what the page draws and lets a reader take apart. No drawing library, no input or output."""

from dataclasses import dataclass

from wordsens.figures.styles import STYLES, Style

Number = int | float
Point = tuple[Number, Number]

MARKS = 4000
"""So many marks a figure draws: a browser takes a tenth of a second for them (measured in Chromium, two cores)."""


@dataclass(frozen=True)
class Mark:
    """One measured place.

    Attributes:
        x, y: where it is.
        low, high: the ends of its bar; None for none.
        told: what else a reader sees there: "3 draws", "upper bound 4.81".
    """

    x: Number
    y: Number
    low: Number | None = None
    high: Number | None = None
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Curve:
    """One series of a panel.

    Attributes:
        name: in the legend; curves of one name in several panels are switched together.
        note: told with each of its marks: its exponent, say.
        style: colour, marker, whether hollow; see `styles.series_styles`.
        marks: what was measured.
        joined: whether a line runs through the marks.
        band: (x, from, to), shaded: the sup lies in it.
        words: (x, least, lower quartile, upper quartile, largest) over a text's words, shaded faintly.
        fit: the ends of a fitted line, straight on logarithmic axes.
        predicted: (x, y), dashed.
        faint: lines of single samples behind the marks.
    """

    name: str
    style: Style
    marks: tuple[Mark, ...]
    note: str = ""
    joined: bool = False
    band: tuple[tuple[Number, Number, Number], ...] = ()
    words: tuple[tuple[Number, Number, Number, Number, Number], ...] = ()
    fit: tuple[Point, ...] = ()
    predicted: tuple[Point, ...] = ()
    faint: tuple[tuple[Point, ...], ...] = ()

    @property
    def colour(self) -> int:
        """The place of its colour in STYLES."""
        return [colour for colour, _ in STYLES].index(self.style[0])


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it.
        curves: in the order of the legend.
        guides: lines of theory, (name, points).
        x_limits, y_limits: of the axes; None for those of the curves.
    """

    title: str
    curves: tuple[Curve, ...]
    guides: tuple[tuple[str, tuple[Point, ...]], ...] = ()
    x_limits: Point | None = None
    y_limits: Point | None = None


@dataclass(frozen=True)
class FigureData:
    """A figure: panels that share what their axes mean.

    Attributes:
        title: a sentence about what is drawn.
        caption: what marks, bars, bands and lines are.
        x_label, y_label: of the axes.
        panels: from left to right.
        logarithmic: whether each axis starts out logarithmic; None where it cannot be.
        shared: whether the panels show one quantity, so that they have one y axis.
        left_out: a note of what was not drawn; "" where all is.
    """

    title: str
    caption: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    logarithmic: tuple[bool | None, bool | None] = (True, True)
    shared: bool = True
    left_out: str = ""
