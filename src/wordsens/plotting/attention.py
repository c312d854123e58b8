"""Attention of two texts side by side, with the difference; the answers to two prompts."""

from wordsens.errors import MissingExtraError
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.transformer.prompt_pair import PromptPair
from wordsens.plotting.style import COLUMN_INCHES, PAGE_INCHES, StyledFigure, StyleFile, styled

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_MOST_TOKENS = 40
"""Longer texts have no names at their rows: the letters would touch."""

_WEIGHTS = LinearSegmentedColormap.from_list(
    "weights", ["#ffffff", "#56B4E9", "#0072B2", "#00304d"]
)
_DIFFERENCE = LinearSegmentedColormap.from_list(
    "difference", ["#0072B2", "#8fc1de", "#ffffff", "#eeae7a", "#D55E00"]
)


@styled
def attention(pair: AttentionPair, *, style: StyleFile = None) -> Figure:
    """Figure 1 of the paper: a heat map for each text on one scale, and the second less the first;
    a page wide.

    Row j, column i: how much token j takes from token i. The difference is left out for texts of
    different length.

    Args:
        pair: of `attention_pair`.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.
    """
    difference = pair.difference
    panels = 2 if difference is None else 3
    figure = StyledFigure(figsize=(PAGE_INCHES, PAGE_INCHES / panels + 0.75), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    top = max(float(weights.max()) for weights in pair.weights)
    images = [
        panel.imshow(weights.numpy(), cmap=_WEIGHTS, vmin=0, vmax=top)
        for panel, weights in zip(axes[:2], pair.weights, strict=True)
    ]
    for panel, tokens, text in zip(
        axes[:2], pair.tokens, ("first text", "second text"), strict=True
    ):
        _label(panel, tokens, pair.changed)
        panel.set_title(text)
    figure.caption = (
        "Row by row: how much each word takes from each word. Bold: where the texts differ."
    )
    below = {"location": "bottom", "aspect": 30, "shrink": 0.8}
    figure.colorbar(
        images[0], ax=list(axes[:2]), label="attention of the row's token to the column's", **below
    )
    if difference is not None:
        most = float(difference.abs().max()) or 1.0
        shown = axes[2].imshow(difference.numpy(), cmap=_DIFFERENCE, vmin=-most, vmax=most)
        names = tuple(
            one if one == other else f"{one}/{other}"
            for one, other in zip(*pair.tokens, strict=True)
        )
        _label(axes[2], names, pair.changed)
        axes[2].set_title("second less first")
        figure.colorbar(shown, ax=axes[2], label="difference", **{**below, "aspect": 15})
    heads = "mean over the heads" if pair.head is None else f"head {pair.head}"
    figure.suptitle(_plain(f"{pair.model}: attention of layer {pair.layer}, {heads}"))
    return figure


@styled
def prompts(pair: PromptPair, *, style: StyleFile = None) -> Figure:
    """The probability of each answer behind the first and the second prompt, and the change; a
    column wide.

    `style` is a .mplstyle file in place of ours, or a name that matplotlib knows.
    """
    figure = StyledFigure(
        figsize=(max(COLUMN_INCHES, 0.8 + 0.8 * len(pair.answers)), 2.3), layout="constrained"
    )
    axes = figure.subplots()
    axes.grid(False, axis="x")
    places = range(len(pair.answers))
    for shift, row, colour, name in (
        (-0.2, 0, "#0072B2", "first prompt"),
        (0.2, 1, "#D55E00", "second prompt"),
    ):
        axes.bar(
            [at + shift for at in places],
            pair.probabilities[row].tolist(),
            0.38,
            color=colour,
            label=name,
        )
    top = float(pair.probabilities.max())
    for at, (change, highest) in enumerate(
        zip(pair.change.tolist(), pair.probabilities.max(dim=0).values, strict=True)
    ):
        text = f"{change:+.3g}".replace("-", "\N{MINUS SIGN}")
        axes.text(at, float(highest) + 0.03 * top, text, ha="center", va="bottom")
    axes.set_xticks(list(places), [_plain(answer) for answer in pair.answers])
    axes.set_ylim(0, top * 1.18)
    axes.set_ylabel("probability of the answer")
    axes.set_title(_plain(pair.model))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _label(panel: Axes, tokens: tuple[str, ...], changed: tuple[int, ...]) -> None:
    panel.grid(False)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(True)
    if len(tokens) > _MOST_TOKENS:
        panel.set_xticks([])
        panel.set_yticks([])
        return
    places = list(range(len(tokens)))
    panel.set_xticks(places, [_plain(token) for token in tokens], rotation=90)
    panel.set_yticks(places, [_plain(token) for token in tokens])
    for labels in (panel.get_xticklabels(), panel.get_yticklabels()):
        for at in changed:
            labels[at].set_fontweight("bold")


def _plain(token: str) -> str:
    """The token as it is: a dollar sign starts no formula. GPT-2's and Llama's marks for a blank
    are left out."""
    return token.lstrip("Ġ▁").replace("$", r"\$") or "␣"
