"""`wordsens sweep`: its commands and their arguments. The work is done in the modules beside, which load more."""

from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Quiet, takes
from wordsens.cli.sweep.options import FitOptions, Out, Overrides, PlotOptions, ResumeOptions, RunOptions, Spec

sweep = typer.Typer(
    help="Any grid of cells: run, resumed, watched, merged and exported. Guide: docs/sweeps.md.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@sweep.command("run")
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Measure every cell that the folder has no value for; the same command goes on after whatever stopped it.

    Example: wordsens sweep run dry-run work=10 --workers 2 --out try
    """
    options.run(options.overrides, resume=False)


@sweep.command("resume")
@takes(ResumeOptions)
def resume(options: ResumeOptions) -> None:
    """Go on with a sweep that was run before, exactly as its folder says: overrides included.

    Example: wordsens sweep resume try
    """
    options.run(None, resume=True)


@sweep.command()
def status(
    spec: Spec,
    overrides: Overrides = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Count the cells that are done, running, failed and to come, and estimate the time. Changes nothing.

    Example: wordsens sweep status try
    """
    from wordsens.cli.sweep.look import print_status

    print_status(spec, overrides or (), out, as_json=as_json)


@sweep.command()
def show(
    spec: Annotated[
        str | None, typer.Argument(metavar="[SPEC]", help="As for run; none: the presets and examples.")
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """List the cells and axes of a spec, without running anything; or everything there is to run.

    Example: wordsens sweep show paper-sensitivity-quick seed=7
    """
    from wordsens.cli.sweep.look import print_sweep, print_sweeps

    if spec is None:
        print_sweeps(as_json=as_json)
    else:
        print_sweep(spec, overrides or (), as_json=as_json)


@sweep.command()
def export(
    spec: Spec,
    file: Annotated[str, typer.Argument(help="What to write: .parquet, .csv or .jsonl.")],
    out: Out = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every record of the folder, those of other specs too.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the records of a sweep as one table.

    Example: wordsens sweep export try records.csv
    """
    from wordsens.cli.sweep.tables import export_sweep

    export_sweep(spec, file, out, everything=everything, as_json=as_json, quiet=quiet)


@sweep.command()
def merge(
    folders: Annotated[list[str], typer.Argument(metavar="FOLDER...", help="The folders of sweeps.")],
    out: Annotated[str, typer.Option(help="The folder that gets the records of all.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Bring the records of several folders together; the folders are left as they are.

    Example: wordsens sweep merge laptop cluster --out both
    """
    from wordsens.cli.sweep.tables import merge_sweeps

    merge_sweeps(folders, out, as_json=as_json, quiet=quiet)


@sweep.command()
@takes(PlotOptions)
def plot(options: PlotOptions) -> None:
    """Draw a sweep's records along any of its axes; KEY=VALUE chooses some of its cells.

    Example: wordsens sweep plot attention-temperature --x temperature --by n
    """
    from wordsens.cli.sweep.along import plot_sweep

    plot_sweep(options)


@sweep.command()
@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit a power law along any axis: an exponent for each series, with a bootstrap interval by text.

    Example: wordsens sweep fit attention-temperature --x temperature --by n
    """
    from wordsens.cli.sweep.along import fit_sweep

    fit_sweep(options)
