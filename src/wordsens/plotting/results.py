"""Results as figures: what `plot` of a result draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wordsens.errors import InputError, MissingExtraError
from wordsens.evaluation.audit.cell import audited
from wordsens.evaluation.calibrate import Calibration
from wordsens.evaluation.check import Check
from wordsens.generalization import OneWordFrontier
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.transformer.prompt_pair import PromptPair
from wordsens.plotting.attention import attention, prompts
from wordsens.plotting.style import (
    COLUMN_INCHES,
    GUIDE,
    PAGE_INCHES,
    STYLES,
    StyledFigure,
    StyleFile,
    legend_below,
    log_axes,
    panels,
    styled,
    styles_of,
    tell,
)
from wordsens.results import Result
from wordsens.sweeps.store import Record
from wordsens.text.english import KINDS, kind_of

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_MOST_NAMES = 60
"""More names under one axis of a page's width would touch."""


def plot(result: Result, *, style: StyleFile = None) -> Figure:
    """The figure of a result: a pair, a frontier, or bars of a number for each word or row.

    Raises:
        InputError: its table has no number to rank by.
    """
    own: dict[type, Any] = {
        AttentionPair: attention,
        PromptPair: prompts,
        OneWordFrontier: frontier,
        Calibration: budgets,
        Check: cosines,
    }
    if type(result) in own:
        return own[type(result)](result, style=style)
    view = result.view()
    if view.chart is None:
        raise InputError(
            f"a {type(result).__name__} is a table without a number to draw; use show() or table()"
        )
    columns, ranked = view.chart.columns, view.chart.options["y"]
    upper: Any = columns.get("upper")
    return words(
        columns["name"],
        columns[ranked],
        upper=None if upper is None or None in upper else upper,
        label=ranked,
        title=view.headline,
        style=style,
    )


@styled
def cosines(result: Check, *, style: StyleFile = None) -> Figure:
    """The cosines of opposites and of near-duplicates of the same meaning, as shares of each, with
    the threshold."""
    figure = StyledFigure(figsize=(COLUMN_INCHES * 1.3, 2.2), layout="constrained")
    axes = figure.subplots()
    measured = result.measured
    filled: dict[str, Any] = {
        "label": "near-duplicates (same meaning)",
        "color": STYLES[0][0],
        "alpha": 0.5,
    }
    outlined: dict[str, Any] = {
        "label": "opposites",
        "color": STYLES[1][0],
        "histtype": "step",
        "linewidth": 1.5,
    }
    low = float(np.quantile(measured.values, 0.01))
    edges = np.linspace(low, max(measured.values), 31)
    for members, look in ((measured.near, filled), (measured.opposite, outlined)):
        values = measured.values[members]
        axes.hist(
            np.maximum(values, low), edges, weights=np.full(len(values), 1 / len(values)), **look
        )
    axes.axvline(
        result.threshold,
        color=GUIDE,
        linestyle=":",
        linewidth=1.2,
        label=f"threshold {result.threshold:.3f}",
    )
    axes.set_xlabel("cosine of the two texts" if measured.cosines else "score of the two texts")
    axes.set_ylabel("share of the pairs")
    legend_below(figure, [axes])
    figure.caption = (
        "Right of the threshold two texts count as the same: the opposites there are false hits."
    )
    return figure


@styled
def budgets(result: Calibration, *, style: StyleFile = None) -> Figure:
    """The share of near-duplicates that is kept under every limit of false hits, with and without
    the guard."""
    figure = StyledFigure(figsize=(COLUMN_INCHES * 1.3, 2.2), layout="constrained")
    axes = figure.subplots()
    limits = np.geomspace(min(result.budget, 0.002), max(result.budget, 0.5), 200)
    for guard, label in ((False, "threshold alone"), (True, "threshold and guard")):
        points = [result.point_at(float(limit), guard=guard) for limit in limits]
        names = ("recall", "recall_low", "recall_high")
        recall, low, high = ([getattr(point, name) or 0.0 for point in points] for name in names)
        colour = STYLES[guard][0]
        axes.plot(limits, recall, drawstyle="steps-post", color=colour, label=label)
        axes.fill_between(limits, low, high, step="post", color=colour, alpha=0.15, linewidth=0)
    axes.axvline(
        result.budget, color=GUIDE, linestyle=":", linewidth=1.2, label=f"budget {result.budget:g}"
    )
    log_axes(axes, [limits[0], limits[-1]])
    axes.set_xlabel(
        f"upper limit of the share of opposites that pass ({result.confidence:g} confidence)"
    )
    axes.set_ylabel("share of near-duplicates kept")
    axes.set_ylim(0, 1)
    legend_below(figure, [axes])
    figure.caption = (
        "Each budget at its smallest threshold; 0 where no threshold keeps it. "
        "Bands: "
        "95 % intervals."
    )
    return figure


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
    """A bar a word, from zero, the largest in another colour; lines reach up to the upper bounds,
    where there are some.

    Args:
        names: of the words.
        values: attained, one a word.
        upper: bounds, one a word.
        label: what the values are.
        title: above the panel.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.
    """
    if not names or len(names) != len(values):
        raise InputError(
            f"`values` has {len(values)} entries for {len(names)} names; give one a name, at least "
            "one"
        )
    few = len(names) <= _MOST_NAMES // 3
    width = COLUMN_INCHES if few else PAGE_INCHES
    figure = StyledFigure(figsize=(width, 2.2), layout="constrained")
    axes = figure.subplots()
    places = range(len(names))
    largest = max(places, key=lambda at: values[at])
    axes.bar(places, values, 0.8, color=[STYLES[at == largest][0] for at in places], zorder=2)
    if upper is not None:
        axes.vlines(places, values, upper, color=GUIDE, linewidth=0.8)
        axes.scatter(places, upper, s=9, marker="_", color=GUIDE, label="upper bound")
        figure.legend(loc="outside lower right")
    axes.grid(False, axis="x")
    if len(names) <= _MOST_NAMES:
        axes.set_xticks(list(places), [name.replace("$", r"\$") for name in names], rotation=90)
    else:
        axes.set_xlabel("words of the text, in reading order")
    axes.set_ylabel(label)
    axes.set_title(title.replace("$", r"\$"), wrap=True)
    figure.caption = "Bars are attained: lower bounds."
    return figure


THEOREM_COLOUR = "#333333"


@styled
def frontier(result: OneWordFrontier, *, style: StyleFile = None) -> Figure:
    """The least error attained under each limit on gamma, with the theorems' (2 - gamma)²."""
    figure = StyledFigure(figsize=(COLUMN_INCHES, 2.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        result.gammas.tolist(), result.errors.tolist(), marker="o", label="least error attained"
    )
    theorem_curve(axes)
    axes.set_xlabel(r"limit on $\gamma$")
    axes.set_ylabel("error on the changed text")
    axes.set_title(f"{result.map_name}, {result.training}".replace("$", r"\$"))
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def theorem_curve(panel: Axes) -> None:
    gammas = [2 * step / 100 for step in range(101)]
    curve = [(2 - gamma) ** 2 for gamma in gammas]
    panel.plot(
        gammas, curve, color=THEOREM_COLOUR, linewidth=1.2, zorder=2, label=r"$(2-\gamma)^2$"
    )


_MEASURES = {
    "removal": "taken out",
    "sensitivity": "moved as far as it can be",
    "swap": "swapped for the best real word",
}


def audit_figures(records: Sequence[Record]) -> dict[str, Any]:
    """The relative change of the output against the text's tokens, a mark a measured word."""
    words = [(text.tokens, word) for text in map(audited, records) for word in text.measured]
    measures = [name for name in _MEASURES if any(getattr(word, name) > 0 for _, word in words)]
    if not measures:
        return {}
    figure, axes = panels(
        [f"A word is {_MEASURES[name]}" for name in measures], entries=len(KINDS), share_y=False
    )
    for panel, name in zip(axes, measures, strict=True):
        for kind, (colour, marker, _) in styles_of(KINDS).items():
            group = [
                (n, word)
                for n, word in words
                if kind_of(word.word) == kind and getattr(word, name) > 0
            ]
            if group:
                places = [n for n, _ in group], [getattr(word, name) for _, word in group]
                drawn = panel.scatter(
                    *places, s=9, color=colour, marker=marker, alpha=0.7, linewidths=0, label=kind
                )
                swapped = [f" for “{word.swapped_for}”" * (name == "swap") for _, word in group]
                tell(
                    panel,
                    drawn,
                    [f"“{word.word}”{to}" for (_, word), to in zip(group, swapped, strict=True)],
                )
        values = [getattr(word, name) for _, word in words if getattr(word, name) > 0]
        log_axes(panel, [n for n, _ in words], (min(values) / 1.2, max(values) * 1.2))
        panel.set_xlabel("tokens in the text")
    axes[0].set_ylabel("change of the output, relative")
    legend_below(figure, axes)
    figure.suptitle("What one word does to its text")
    figure.caption = "Each mark is a word: how far the output moves, relative to its size."
    return {"audit": figure}
