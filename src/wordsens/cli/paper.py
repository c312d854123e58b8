"""`wordsens paper`: its arguments. The work is done in `paper_run`, which loads torch."""

from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Device, EncoderName, Quiet, Seed
from wordsens.errors import require_choice

SCALE_NAMES = ("quick", "laptop", "full")
FIGURE_NAMES = ("sensitivity",)


def paper(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="sensitivity: S against n for random, deep random and attention features. Default: every figure.",
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
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The paper's experiments on real and Gaussian texts: records, figures and a table of exponents.

    Each finished cell is one Parquet file in OUT/records. The same command resumes an interrupted run.

    Example: wordsens paper sensitivity --scale quick --out results
    """
    require_choice("scale", scale, SCALE_NAMES)
    for name in figures or FIGURE_NAMES:
        require_choice("figure", name, FIGURE_NAMES)

    from wordsens.cli.paper_run import PaperRequest, run_sensitivity

    run_sensitivity(
        PaperRequest(scale=scale, data=data, out=out, encoder=encoder, seed=seed, device=device),
        as_json=as_json,
        quiet=quiet,
    )
