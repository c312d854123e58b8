"""`wordsens tune`: its options and its work."""

import os
from functools import partial
from typing import Annotated

import typer

from wordsens.cli.command import (
    Answer,
    CommandRun,
    Device,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
)
from wordsens.cli.groups import TextOptions, Texts

_of_training = partial(option, panel="Training")

_CORES = os.cpu_count() or 1

# The progress at which each part of the work starts, and its share.
_PARTS = {"before": (0.0, 0.05), "training": (0.05, 0.9), "after": (0.95, 0.05)}


@command("tune", first=("texts", "pairs", "steps", "lora", "device"))
def tune(
    model: Annotated[
        str,
        typer.Argument(
            help="minilm, a folder with a model, or a name on the hub.", show_default=False
        ),
    ],
    out: Annotated[
        str, typer.Argument(help="The folder of the tuned model, new or empty.", show_default=False)
    ],
    texts: Texts = None,
    *,
    reading: TextOptions,
    pairs: Annotated[
        str | None,
        option(
            "Your own pairs: CSV, TSV, JSON lines or Parquet with the columns kind, first, second "
            "and same."
        ),
    ] = None,
    steps: Annotated[int, _of_training("Steps of the optimiser.")] = 100,
    batch: Annotated[int, _of_training("Triples per step.")] = 32,
    rate: Annotated[float, _of_training("The highest learning rate.")] = 8e-5,
    lora: Annotated[
        bool, _of_training("Train low-rank matrices (peft) and add them to the weights.", "--lora")
    ] = False,
    device: Device = "cpu",
    seed: Seed = 0,
    threads: Threads = _CORES,
    run: CommandRun,
) -> Answer:
    """Train a model to tell apart texts whose meaning is reversed by one word. The result is
    evaluated on held-out pairs.

    It trains with sentence-transformers on triples (a text, a paraphrase, a text with another
    meaning) made from pairs and from your texts. Dimension, size and speed of the model stay the
    same. An interrupted run continues from its checkpoints in OUT.checkpoints.

    Example: wordsens tune minilm tuned --texts texts.csv
    """
    from wordsens.training.tuning import tune

    documents = None if texts is None else reading.read(texts, run.notice)
    with cpu_threads(threads), run.progress("of the tuning") as report:

        def progress(now: str, share: float) -> None:
            start, part = _PARTS[now]
            report(start + part * share, 1, f"({now})")

        try:
            tuned = tune(
                model,
                out,
                pairs,
                documents,
                steps=steps,
                batch=batch,
                rate=rate,
                lora=lora,
                device=device,
                seed=seed,
                progress=progress,
            )
        except KeyboardInterrupt:
            checkpoints = f"{out.rstrip('/')}.checkpoints"
            raise KeyboardInterrupt(
                f"interrupted; the same command continues from {checkpoints}"
            ) from None
    return Answer(document={"seed": seed, **tuned.to_dict()}, view=tuned.view())
