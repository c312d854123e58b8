"""Numbers of a text's words, as bars in reading order. Nothing is read or written here, and pyplot is not used."""

from collections.abc import Sequence

from wordsens.errors import InputError, MissingExtraError
from wordsens.figures.style_file import COLUMN_INCHES, PAGE_INCHES, StyledFigure, StyleFile, styled

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_BARE, _MARKED = "#0072B2", "#D55E00"
_MOST_NAMES = 60
"""More names under one axis of a page's width would touch."""


@styled
def words(
    names: Sequence[str],
    values: Sequence[float],
    *,
    upper: Sequence[float] | None = None,
    label: str = "word sensitivity",
    title: str = "",
    style: StyleFile = None,
) -> Figure:
    """A bar a word, the largest in another colour; lines reach up to the upper bounds, where there are some.

    Args:
        names: of the words.
        values: attained, one a word.
        upper: bounds, one a word.
        label: what the values are.
        title: above the panel.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.
    """
    if not names or len(names) != len(values):
        raise InputError(f"`values` has {len(values)} entries for {len(names)} names; give one a name, at least one")
    few = len(names) <= _MOST_NAMES // 3
    figure = StyledFigure(figsize=(COLUMN_INCHES if few else PAGE_INCHES, 2.2), layout="constrained")
    axes = figure.subplots()
    places = range(len(names))
    largest = max(places, key=lambda at: values[at])
    axes.bar(places, values, 0.8, color=[_MARKED if at == largest else _BARE for at in places], zorder=2)
    if upper is not None:
        axes.vlines(places, values, upper, color="#777777", linewidth=0.8)
        axes.scatter(places, upper, s=9, marker="_", color="#777777", label="upper bound")
        figure.legend(loc="outside upper right")
    axes.grid(False, axis="x")
    if len(names) <= _MOST_NAMES:
        shown = [name.replace("$", r"\$") for name in names]
        axes.set_xticks(list(places), shown, rotation=90)
    else:
        axes.set_xlabel("words of the text, in reading order")
    axes.set_ylabel(label)
    axes.set_title(title.replace("$", r"\$"))
    return figure
