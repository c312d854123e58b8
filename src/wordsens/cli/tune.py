"""`wordsens tune`: its options, its work and what it prints."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from wordsens.cli.model_choice import TextOptions
from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.cli.terminal import print_json, printing, reporting, stdout, table
from wordsens.errors import require_count
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.training.held_out import Tuned

_TRAINING = "Training"


@dataclass(frozen=True, kw_only=True)
class TuneOptions(TextOptions):
    """The options of `wordsens tune`; `texts` are those from which near misses are made."""

    model: Annotated[
        str, typer.Argument(help="minilm, a folder with a model, or a name on the hub.", show_default=False)
    ]
    out: Annotated[str, typer.Argument(help="The folder of the tuned model, new or empty.", show_default=False)]
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Your own pairs: CSV, TSV, JSON lines or Parquet with kind, first, second, same.",
            show_default=False,
        ),
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="Steps of the optimiser; default: 100.", rich_help_panel=_TRAINING)
    ] = None
    batch: Annotated[int | None, typer.Option(help="Triples a step; default: 32.", rich_help_panel=_TRAINING)] = None
    rate: Annotated[
        float | None, typer.Option(help="The highest learning rate; default: 8e-5.", rich_help_panel=_TRAINING)
    ] = None
    lora: Annotated[
        bool,
        typer.Option(
            "--lora", help="Train low-rank matrices (peft), and add them to the weights.", rich_help_panel=_TRAINING
        ),
    ] = False
    seed: Seed = 0
    device: Device = "cpu"
    threads: Threads = os.cpu_count() or 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        require_count("threads", self.threads)
        if self.limit is not None:
            require_count("limit", self.limit)


def run_tune(options: TuneOptions) -> None:
    """Tune, then print the table and what was reached."""
    from wordsens.training.tuning import TunePlan, tune

    chosen = {name: getattr(options, name) for name in ("steps", "batch", "rate") if getattr(options, name) is not None}
    plan = TunePlan(**chosen, lora=options.lora, device=options.device)
    texts = None if options.texts is None else options.documents(quiet=options.quiet)
    with reporting(1, "of the tuning", quiet=options.quiet) as report:

        def progress(now: str, share: float) -> None:
            start, part = {"before": (0.0, 0.05), "training": (0.05, 0.9), "after": (0.95, 0.05)}[now]
            report.update(start + part * share, now=f"({now})")

        given = (options.model, options.out, options.pairs, texts)
        try:
            tuned = tune(*given, plan=plan, seed=options.seed, progress=progress)
        except KeyboardInterrupt:
            checkpoints = f"{options.out.rstrip('/')}.checkpoints"
            raise KeyboardInterrupt(f"interrupted; the same command goes on from {checkpoints}") from None
    with printing():
        if options.as_json:
            print_json({"command": "tune", "version": __version__, "seed": options.seed, **tuned.to_dict()})
        else:
            print_tuned(tuned)


def print_tuned(tuned: "Tuned") -> None:
    """Where the model is, the table, its notes, and last what was reached."""
    from wordsens.training.held_out import interval

    console = stdout()
    console.print(Text(f"The tuned model is in {tuned.folder}; trained on {tuned.triples} triples.", style="bold"))
    console.print()
    right = ("count", "before [95 %]", "after [95 %]", "new", "new before", "new after")
    shown = table(("AUC", "left"), *((name, "right") for name in right))
    for row in tuned.rows():
        new: list[Any] = [row["new"] or "", *(_number(row[name]) for name in ("new_before", "new_after"))]
        shown.add_row(
            row["what"], str(row["count"]), interval(row, "before"), interval(row, "after"), *map(str, new)
        )  # fmt: skip
    console.print(shown)
    where = f"the domains {', '.join(tuned.domains)}" if tuned.domains else "a third of the texts"
    console.print(
        f"On pairs of {where}, which took no part in the training. new: opposites none of whose changed words "
        "was changed in the training; the others share some. AUC as in check. recall@1 of "
        f"{tuned.queries} queries, either side of a paraphrase, each looked for among {tuned.among} texts."
    )
    for note in tuned.notes:
        console.print(Text(f"Note: {note}"))
    console.print(Text(tuned.reached, style="bold"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
