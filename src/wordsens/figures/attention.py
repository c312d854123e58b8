"""Attention of two texts side by side, with the difference; the answers to two prompts."""

from wordsens.errors import MissingExtraError
from wordsens.maps.transformer.attention_pair import AttentionPair, PromptPair

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

_FONT = 8
_CELL_INCHES = 0.3
_MOST_CELLS = 40


def attention_figure(pair: AttentionPair) -> Figure:
    """Figure 1 of the paper: a heat map for each text on one scale, and the second less the first.

    Row j, column i: how much token j takes from token i. The difference is left out for texts of different length.
    """
    difference = pair.difference
    panels = 2 if difference is None else 3
    cells = min(_MOST_CELLS, max(len(tokens) for tokens in pair.tokens))
    side = max(2.0, _CELL_INCHES * cells)
    figure = Figure(figsize=(panels * (side + 1.1), side + 1.0), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    top = max(float(weights.max()) for weights in pair.weights)
    images = [
        panel.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=top)
        for panel, weights in zip(axes[:2], pair.weights, strict=True)
    ]
    for panel, tokens in zip(axes[:2], pair.tokens, strict=True):
        _label(panel, tokens, pair.changed)
    figure.colorbar(images[0], ax=list(axes[:2]), shrink=0.7, label="attention").ax.tick_params(labelsize=_FONT)
    axes[0].set_title("first text", fontsize=_FONT + 1)
    axes[1].set_title("second text", fontsize=_FONT + 1)
    if difference is not None:
        most = float(difference.abs().max()) or 1.0
        shown = axes[2].imshow(difference.numpy(), cmap="RdBu_r", vmin=-most, vmax=most)
        names = tuple(one if one == other else f"{one}/{other}" for one, other in zip(*pair.tokens, strict=True))
        _label(axes[2], names, pair.changed)
        axes[2].set_title("second less first", fontsize=_FONT + 1)
        figure.colorbar(shown, ax=axes[2], shrink=0.7).ax.tick_params(labelsize=_FONT)
    heads = "mean over the heads" if pair.head is None else f"head {pair.head}"
    figure.suptitle(f"{pair.model}: attention of layer {pair.layer}, {heads}", fontsize=_FONT + 2)
    return figure


def prompt_figure(pair: PromptPair) -> Figure:
    """The probability of each answer behind the first and the second prompt, and the change."""
    figure = Figure(figsize=(1.2 + 1.3 * len(pair.answers), 2.6), layout="constrained")
    axes = figure.subplots()
    places = range(len(pair.answers))
    for shift, row, colour, name in ((-0.2, 0, "#0072B2", "first prompt"), (0.2, 1, "#D55E00", "second prompt")):
        axes.bar([at + shift for at in places], pair.probabilities[row].tolist(), 0.38, color=colour, label=name)
    top = float(pair.probabilities.max())
    for at, change in enumerate(pair.change.tolist()):
        axes.text(at, top * 1.05, f"{change:+.3f}", ha="center", fontsize=_FONT)
    axes.set_xticks(list(places), [_plain(answer) for answer in pair.answers], fontsize=_FONT)
    axes.set_ylim(0, top * 1.2)
    axes.set_ylabel("probability of the answer", fontsize=_FONT)
    axes.tick_params(axis="y", labelsize=_FONT)
    axes.set_title(_plain(pair.model), fontsize=_FONT + 1)
    axes.legend(frameon=False, fontsize=_FONT, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return figure


def _label(panel: Axes, tokens: tuple[str, ...], changed: tuple[int, ...]) -> None:
    places = list(range(len(tokens)))
    panel.set_xticks(places, [_plain(token) for token in tokens], rotation=90, fontsize=_FONT)
    panel.set_yticks(places, [_plain(token) for token in tokens], fontsize=_FONT)
    for labels in (panel.get_xticklabels(), panel.get_yticklabels()):
        for at in changed:
            labels[at].set_fontweight("bold")


def _plain(token: str) -> str:
    """The token as it is: a dollar sign starts no formula. GPT-2's and Llama's marks for a blank are left out."""
    return token.lstrip("Ġ▁").replace("$", r"\$") or "␣"
