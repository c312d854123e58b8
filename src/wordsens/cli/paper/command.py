"""`wordsens paper`: its arguments. The work is done in `paper_run`, which loads torch."""

from typing import Annotated

import typer

from wordsens.cli.executor_options import ExecutorRequest, Scheduler, Slurm, Witnesses, Workers
from wordsens.cli.options import AsJson, Device, EncoderName, Quiet, Seed, Threads
from wordsens.errors import InputError, require_choice

SCALE_NAMES = ("quick", "laptop", "full")
FIGURE_NAMES = ("sensitivity", "generalization")
DEFAULT_FIGURES = ("sensitivity",)


def paper(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="sensitivity: S against n for random, deep random and attention features (the default). "
            "generalization: does a model that just learned a text notice one changed word?",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(help="quick: about 3 minutes on two cores; laptop: hours at most; full: the paper's sizes."),
    ] = "quick",
    data: Annotated[
        str | None,
        typer.Option(
            help="Real texts: a file, table, folder, or 'imdb' of the hub; default: the shipped reviews.",
            show_default=False,
            rich_help_panel="Text",
        ),
    ] = None,
    out: Annotated[str, typer.Option(help="The folder for records and figures.")] = "paper",
    encoder: EncoderName = "minilm",
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    witnesses: Witnesses = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The paper's experiments on real and Gaussian texts: records, figures and tables.

    Each finished cell is one Parquet file in OUT/records (OUT/generalization-records). The same command resumes an
    interrupted run.

    Example: wordsens paper sensitivity --scale quick --out results
    """
    executor = ExecutorRequest(workers=workers, scheduler=scheduler, slurm=slurm, threads=threads)
    require_choice("scale", scale, SCALE_NAMES)
    names = list(dict.fromkeys(require_choice("figure", name, FIGURE_NAMES) for name in figures or DEFAULT_FIGURES))
    if as_json and len(names) > 1:
        raise InputError(f"`figure` names {' and '.join(names)}, but --json prints one document; name one figure")

    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.paper.sensitivity import PaperRequest, run_sensitivity
    from wordsens.cli.running import RunRequest

    run = RunRequest(executor=executor, witnesses=witnesses, quiet=quiet)
    request = PaperRequest(scale=scale, data=data, out=out, encoder=encoder, seed=seed, device=device, run=run)
    with cpu_threads(threads):
        if "sensitivity" in names:
            run_sensitivity(request, as_json=as_json)
        if "generalization" in names:
            from wordsens.cli.paper.generalization import run_generalization

            run_generalization(request, as_json=as_json)
