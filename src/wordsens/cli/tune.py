"""`wordsens tune`: its options and its work."""

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.model_choice import CommandOptions, TextOptions, unset
from wordsens.cli.options import Device, Threads, takes
from wordsens.cli.terminal import reporting
from wordsens.errors import require_count

_TRAINING = "Training"


@dataclass(frozen=True, kw_only=True)
class TuneOptions(TextOptions, CommandOptions):
    """The options of `wordsens tune`; `texts` are those from which near misses are made."""

    model: Annotated[
        str,
        typer.Argument(
            help="minilm, a folder with a model, or a name on the hub.", show_default=False
        ),
    ]
    out: Annotated[
        str, typer.Argument(help="The folder of the tuned model, new or empty.", show_default=False)
    ]
    pairs: Annotated[
        str | None,
        unset("Your own pairs: CSV, TSV, JSON lines or Parquet with kind, first, second, same."),
    ] = None
    steps: Annotated[
        int, typer.Option(help="Steps of the optimiser.", rich_help_panel=_TRAINING)
    ] = 100
    batch: Annotated[int, typer.Option(help="Triples per step.", rich_help_panel=_TRAINING)] = 32
    rate: Annotated[
        float, typer.Option(help="The highest learning rate.", rich_help_panel=_TRAINING)
    ] = 8e-5
    lora: Annotated[
        bool,
        typer.Option(
            "--lora",
            help="Train low-rank matrices (peft), and add them to the weights.",
            rich_help_panel=_TRAINING,
        ),
    ] = False
    device: Device = "cpu"
    threads: Threads = os.cpu_count() or 1

    def __post_init__(self) -> None:
        CommandOptions.__post_init__(self)
        if self.limit is not None:
            require_count("limit", self.limit)


@takes(TuneOptions, first=("texts", "pairs", "steps", "lora", "device"))
def tune(options: TuneOptions) -> None:
    """Train a model so that a meaning that one word turns around shows in its embeddings; judged
    on held-out pairs.

    It uses sentence-transformers' trainer on triples from pairs and from near misses of your texts.
    The dimension, the size and the speed stay. A run that was stopped continues from its
    checkpoints, in OUT.checkpoints.

    Example: wordsens tune minilm tuned --texts texts.csv
    """
    from wordsens.training.tuning import tune

    texts = None if options.texts is None else options.documents(quiet=options.quiet)
    with reporting(1, "of the tuning", quiet=options.quiet) as report:

        def progress(now: str, share: float) -> None:
            start, part = {"before": (0.0, 0.05), "training": (0.05, 0.9), "after": (0.95, 0.05)}[
                now
            ]
            report.update(start + part * share, now=f"({now})")

        try:
            tuned = tune(
                options.model,
                options.out,
                options.pairs,
                texts,
                steps=options.steps,
                batch=options.batch,
                rate=options.rate,
                lora=options.lora,
                device=options.device,
                seed=options.seed,
                progress=progress,
            )
        except KeyboardInterrupt:
            checkpoints = f"{options.out.rstrip('/')}.checkpoints"
            raise KeyboardInterrupt(
                f"interrupted; the same command continues from {checkpoints}"
            ) from None
    options.print("tune", {"seed": options.seed, **tuned.to_dict()}, tuned.view())
