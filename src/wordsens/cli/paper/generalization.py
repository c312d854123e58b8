"""`wordsens paper generalization`: the error on a changed text, its figures and its table."""

from collections.abc import Sequence
from pathlib import Path

from wordsens.cli.paper.run import Experiment, save_figure, source_of
from wordsens.cli.terminal import stdout, table
from wordsens.experiments.generalization.preset import paper_generalization
from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.spec import FRONTIER
from wordsens.experiments.generalization.summary import (
    LIMIT,
    GeneralizationSeries,
    generalization_findings,
    summarise_generalization,
)
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.figures import frontier, generalization


def write_generalization_figures(
    records: Sequence[GeneralizationRecord], folder: Path, style: str | None
) -> list[Path]:
    """For each kind of text: Err against gamma, and the frontier."""
    written: list[Path] = []
    for text in dict.fromkeys(record.text for record in records):
        own = [record for record in records if record.text == text]
        name = text_title(text)
        drawn = {}
        if any(record.objective != FRONTIER for record in own):
            drawn["error"] = generalization(own, title=f"Error on the changed text: {name}", style=style)
        if any(record.objective == FRONTIER for record in own):
            drawn["frontier"] = frontier(own, title=rf"Least error under a limit on $\gamma$: {name}", style=style)
        for kind, figure in drawn.items():
            written += save_figure(figure, folder, f"generalization-{kind}-{text}")
    return written


def show_errors(series: Sequence[GeneralizationSeries]) -> None:
    """The least errors of each map and training set, and sentences about them."""
    console = stdout()
    made = table(
        ("map", "left"),
        ("text", "left"),
        ("n", "right"),
        ("N", "right"),
        ("training", "left"),
        ("held-out\naccuracy", "right"),
        ("least F", "right"),
        (f"median Err\ngamma<{LIMIT:g}", "right"),
        ("Err < 1", "right"),
    )
    for one in series:
        median, share = one.median(), one.share_below(1.0)
        made.add_row(
            one.map,
            one.text,
            str(one.n),
            str(one.texts),
            one.training,
            f"{one.accuracy:.2f}",
            f"{one.least_alignment:+.2f}",
            "" if median is None else f"{median:.2f}",
            "" if share is None else f"{share:.0%}",
        )
    console.print(
        "One word changed, the label flipped: does the model that just learned the text notice?", style="bold"
    )
    console.print(made)
    console.print()
    for sentence in generalization_findings(series):
        console.print(sentence)
    console.print()
    below = sum(one.below_bound for one in series)
    console.print(
        "Every error is attained by a perturbation that was found: an upper bound of the least one. "
        + (
            f"{below} errors lie below their finite-sample bound."
            if below
            else "None lies below its finite-sample bound."
        )
    )


EXPERIMENT = Experiment(
    name="generalization",
    spec="generalization.yaml",
    preset=lambda options: paper_generalization(
        options.scale, source_of(options), seed=options.seed, labels=options.labels, search=options.search
    ),
    draw=lambda *given: write_generalization_figures(*given),
    summarise=summarise_generalization,
    findings=generalization_findings,
    show=show_errors,
)
