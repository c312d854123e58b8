"""Results as figures: what `plot` of a result draws. Nothing is read or written here, and pyplot is not used."""

from typing import Any

from wordsens.errors import InputError, MissingExtraError
from wordsens.figures.attention_pairs import attention, prompts
from wordsens.figures.style_file import COLUMN_INCHES, StyledFigure, StyleFile, styled
from wordsens.figures.words import words
from wordsens.generalization.frontier import OneWordFrontier
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.transformer.prompt_pair import PromptPair
from wordsens.results import Shown

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error


def plot(result: Shown, *, style: StyleFile = None) -> Figure:
    """The figure of a result: a pair, a frontier, or bars of a number for each word or row.

    Raises:
        InputError: its table has no number to rank by.
    """
    if isinstance(result, AttentionPair):
        return attention(result, style=style)
    if isinstance(result, PromptPair):
        return prompts(result, style=style)
    if isinstance(result, OneWordFrontier):
        return one_frontier(result, style=style)
    look = result.look()
    if look.ranked is None:
        raise InputError(f"a {type(result).__name__} is a table without a number to draw; use show() or to_pandas()")
    names: Any = look.columns[look.names or next(iter(look.columns))]
    upper = None if look.upper is None else look.columns[look.upper]
    return words(
        list(map(str, names)),
        look.columns[look.ranked],
        upper=upper,
        label=look.ranked,
        title=look.heading,
        style=style,
    )


@styled
def one_frontier(frontier: OneWordFrontier, *, style: StyleFile = None) -> Figure:
    """The least error found under each limit on gamma, with the theorems' (2 - gamma)²."""
    figure = StyledFigure(figsize=(COLUMN_INCHES, 2.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(frontier.gammas.tolist(), frontier.errors.tolist(), marker="o", label="least error found")
    axes.plot(frontier.gammas.tolist(), frontier.theorem.tolist(), color="#333333", label=r"$(2-\gamma)^2$")
    axes.set_xlabel(r"limit on $\gamma$")
    axes.set_ylabel("error on the changed text")
    axes.set_title(f"{frontier.map_name}, {frontier.training}".replace("$", r"\$"))
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure
