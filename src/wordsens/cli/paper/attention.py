"""`wordsens paper attention`: figure 1, the attention of two texts that differ in a word, side by side."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from wordsens.cli.paper.options import PaperOptions
from wordsens.cli.paper.run import Experiment, save_figure
from wordsens.cli.terminal import stdout, table
from wordsens.errors import InputError
from wordsens.experiments.attention.cell import AttentionCell, is_causal, pairs_of
from wordsens.experiments.attention.record import AttentionRecord
from wordsens.experiments.attention.summary import AttentionSummary, attention_findings, summarise_attention
from wordsens.experiments.grid.preset import Preset
from wordsens.experiments.grid.sweep import Sweep
from wordsens.figures import attention, prompts

PAIR = ("I love her much", "I love her smile")
"""The pair of the paper's figure 1."""

PROMPTS = (
    "Review: I was moved by this film from its first minute. Positive or negative? The review is",
    "Review: I was bored by this film from its first minute. Positive or negative? The review is",
)
ANSWERS = ("positive", "negative")


def attention_preset(options: PaperOptions) -> Preset:
    """The cell that the options ask for, tried once: what is wrong is refused before anything is written.

    Raises:
        InputError: no such model, layer or head; texts that cannot be compared.
    """
    first, second = options.pair or PAIR
    keys = {"model": options.model, "first": first, "second": second, "layer": options.layer, "head": options.one_head}
    causal = is_causal(options.model, options.device)
    if (options.prompt or options.answer) and not causal:
        raise InputError(
            f"`prompt` and `answer` need a causal language model, and {options.model} reads both ways; drop them"
        )
    if causal:
        keys |= {"prompts": options.prompt or PROMPTS, "answers": options.answer or ANSWERS}
    pairs_of(AttentionCell.parse({**keys, "device": options.device}))
    grid = {key: [list(value)] if isinstance(value, (tuple, list)) else value for key, value in keys.items()}
    return Preset(Sweep.parse({"name": "paper-attention", "kind": "attention", "grids": [grid]}), ())


def write_attention_figures(records: Sequence[AttentionRecord], folder: Path, style: str | None) -> list[Path]:
    """Figure 1; of a causal language model also the answers to two prompts."""
    written: list[Path] = []
    for record in records:
        written += save_figure(attention(record.pair(), style=style), folder, "attention")
        if (answers := record.prompt_pair()) is not None:
            written += save_figure(prompts(answers, style=style), folder, "prompts")
    return written


def show_attention(summaries: Sequence[AttentionSummary]) -> None:
    """Print each row's attention to the changed words, before and after, and the share of its attention that moves."""
    console = stdout()
    for one in summaries:
        columns = [(f"from {name}", "right") for at in one.changed for name in (one.tokens[0][at], one.tokens[1][at])]
        made = table(("row", "left"), *columns, ("moved", "right"))
        for row, name in enumerate(one.names):
            taken = [f"{weights[row][at]:.3f}" for at in one.changed for weights in one.weights]
            made.add_row(*map(Text, (name, *taken, f"{one.moved[row]:.1%}")))
        console.print(Text(f"{one.first}  |  {one.second}"), style="bold")
        console.print(made)
    console.print()
    for sentence in attention_findings(summaries):
        console.print(Text(sentence))
    console.print(
        "moved: half the sum of a row's absolute differences, the share of its attention that goes elsewhere."
    )


EXPERIMENT = Experiment(
    name="attention",
    spec="attention.yaml",
    preset=attention_preset,
    draw=lambda *given: write_attention_figures(*given),
    summarise=summarise_attention,
    findings=attention_findings,
    show=show_attention,
)
