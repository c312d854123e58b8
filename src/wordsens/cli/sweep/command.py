"""`wordsens sweep`: its commands and their arguments. The work is done in `sweep_run` and `sweep_look`."""

from typing import Annotated

import typer

from wordsens.cli.executor_options import ExecutorRequest, Scheduler, Slurm, Witnesses, Workers
from wordsens.cli.options import AsJson, CellDevice, Quiet, Threads

sweep = typer.Typer(
    help="Any grid of cells: run, resumed, watched, merged and exported. Guide: docs/sweeps.md.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Spec = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="A YAML file, a preset or example by its name (see `show`), or the folder of a run.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="On top of the spec: n=[10,20] text.layer=2.", show_default=False),
]
Out = Annotated[str | None, typer.Option(help="The sweep's folder; default: the sweep's name.", show_default=False)]


@sweep.command()
def run(
    spec: Spec,
    overrides: Overrides = None,
    out: Out = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    witnesses: Witnesses = False,
    device: CellDevice = None,
    threads: Threads = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure every cell that the folder has no value for; the same command goes on after whatever stopped it.

    Example: wordsens sweep run dry-run work=10 --workers 2 --out try
    """
    executor = ExecutorRequest(workers=workers, scheduler=scheduler, slurm=slurm, threads=threads)
    _run(spec, overrides, out, executor, device, witnesses=witnesses, as_json=as_json, quiet=quiet, resume=False)


@sweep.command()
def resume(
    spec: Spec,
    out: Out = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    witnesses: Witnesses = False,
    device: CellDevice = None,
    threads: Threads = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a sweep that was run before, exactly as its folder says: overrides included.

    Example: wordsens sweep resume try
    """
    executor = ExecutorRequest(workers=workers, scheduler=scheduler, slurm=slurm, threads=threads)
    _run(spec, None, out, executor, device, witnesses=witnesses, as_json=as_json, quiet=quiet, resume=True)


def _run(
    spec: str,
    overrides: list[str] | None,
    out: str | None,
    executor: ExecutorRequest,
    device: str | None,
    *,
    witnesses: bool,
    as_json: bool,
    quiet: bool,
    resume: bool,
) -> None:
    from wordsens.cli.running import RunRequest
    from wordsens.cli.sweep.run import run_sweep

    request = RunRequest(executor=executor, witnesses=witnesses, quiet=quiet)
    run_sweep(spec, overrides or (), out, device, request, as_json=as_json, resume=resume)


@sweep.command()
def status(
    spec: Spec,
    overrides: Overrides = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """How many cells are done, running, failed and to come, and how long that will take. Changes nothing.

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
    """What a spec stands for: its cells and axes, without running anything; or what there is to run.

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
