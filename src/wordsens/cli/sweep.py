"""`wordsens sweep`: any grid of cells, run, watched, exported and drawn. Loads no torch before it
runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses, fail_for, measure_sweep
from wordsens.cli.options import AsJson, option, takes
from wordsens.cli.terminal import duration, notice, print_json, stdout
from wordsens.display.terminal import print_view
from wordsens.display.view import Table, View
from wordsens.errors import InputError
from wordsens.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from wordsens.sweeps.sweep import Sweep

sweep = typer.Typer(
    help="Any grid of cells: run, watched, exported and drawn.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_LISTED = 6

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="A YAML file, or the folder of a run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE", help="On top of the spec: n=[10,20] text.layer=2.", show_default=False
    ),
]
Out = Annotated[str | None, option("The sweep's folder; default: the sweep's name.")]


@dataclass(frozen=True, kw_only=True)
class RunOptions(PlaceOptions):
    """The options of `wordsens sweep run`."""

    spec: Spec
    overrides: Overrides = None
    out: Out = None
    witnesses: Witnesses = False
    device: Annotated[
        str | None, option("Where to compute, whatever the spec says: cpu, cuda, ...")
    ] = None


@sweep.command("run")
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Measure every cell that the folder has no value for. After an interruption, run the same
    command to continue.

    Example: wordsens sweep run spec.yaml n=[10,20,50] --workers 2 --out try
    """
    device = [] if options.device is None else [f"device={options.device}"]
    chosen, folder = _source(options.spec, [*(options.overrides or ()), *device], options.out)
    records, tables = measure_sweep(chosen, folder, options, witnesses=options.witnesses)
    counts = _counts(records)
    errors = [failure["error"] for failure in counts["failed"]]
    if options.as_json:
        head = _head("sweep run", chosen)
        print_json({**head, "cells": len(records), **counts, "records": str(tables)})
    else:
        console = stdout()
        line = f"{chosen.name}: {counts['done']} cells done, {len(errors)} failed"
        console.print(line, style="bold")
        _print_failures(counts["failed"])
        console.print(f"computed for {duration(counts['seconds'])} (h:mm:ss) of process time")
        console.print(f"results  {tables}", soft_wrap=True)
    fail_for(errors, len(records))


@sweep.command()
def status(
    spec: Spec, overrides: Overrides = None, out: Out = None, as_json: AsJson = False
) -> None:
    """Count the cells that are done, failed and to come. Changes nothing, and may be asked while a
    run is at work.

    Example: wordsens sweep status try
    """
    chosen, folder = _source(spec, overrides or (), out)
    keys, records = _last_records(chosen, folder)
    counts, to_come = _counts(records), len(keys) - len(records)
    if as_json:
        counts |= {"to_come": to_come}
        print_json({**_head("sweep status", chosen), "cells": len(keys), **counts})
        return
    console, done, failures = stdout(), counts["done"], counts["failed"]
    line = f"{chosen.name}: {done} of {len(keys)} cells done ({done / len(keys):.0%})"
    console.print(line, style="bold")
    console.print(f"{len(failures)} failed, {to_come} to come")
    _print_failures(failures)
    console.print(f"computed for {duration(counts['seconds'])} (h:mm:ss) of process time so far")


def _head(command: str, chosen: "Sweep") -> dict[str, str]:
    names = {"name": chosen.name, "experiment": chosen.experiment}
    return {"command": command, "version": __version__, **names}


def _counts(records: Any) -> dict[str, Any]:
    """How many cells are done, which failed, and the seconds that all took."""
    if records.empty:
        return {"done": 0, "failed": [], "seconds": 0.0}
    failed = records[records["status"] == "failed"][["cell", "error"]].to_dict("records")
    seconds = float(records["seconds"].sum())
    return {"done": len(records) - len(failed), "failed": failed, "seconds": seconds}


@sweep.command()
def export(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a run.")],
    out: Annotated[str | None, option("The folder for the tables; default: the run's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the results of each experiment in the folder as EXPERIMENT.parquet and EXPERIMENT.csv.

    Example: wordsens sweep export try
    """
    from wordsens.sweeps.store import read_records, write_tables

    target = Path(out or folder)
    if not target.is_dir():
        raise InputError(f"`out` (={str(target)!r}) is no folder; make it first")
    records = read_records(folder)
    paths = [
        write_tables(part.dropna(axis=1, how="all"), target, str(name))
        for name, part in (() if records.empty else records.groupby("experiment", sort=False))
    ]
    if as_json:
        files = [str(path) for path in paths]
        head = {"command": "sweep export", "version": __version__}
        print_json({**head, "records": len(records), "files": files})
    for path in paths if not as_json else ():
        stdout().print(f"{path}\n{path.with_suffix('.csv')}", soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """The options of `wordsens sweep plot`."""

    spec: Spec
    x: Annotated[str, option("The column along which: n, temperature, width, ...")]
    overrides: Overrides = None
    y: Annotated[str, option("The column that is averaged: value, upper, average, ...")] = "value"
    by: Annotated[
        str | None,
        option(
            "Columns that tell series apart, commas between: map,text; default: every key that "
            "varies otherwise."
        ),
    ] = None
    out: Out = None
    file: Annotated[
        str | None, option("What to write: .pdf, .png or .svg; default: in the sweep's folder.")
    ] = None
    linear: Annotated[bool, option("Plain axes in place of logarithmic ones.", "--linear")] = False
    as_json: AsJson = False


@sweep.command()
@takes(PlotOptions)
def plot(options: PlotOptions) -> None:
    """Draw a sweep's results along any of its axes, and print the exponents; KEY=VALUE chooses some
    of its cells.

    Example: wordsens sweep plot try --x temperature --by n
    """
    import pandas as pd

    from wordsens.plotting import along
    from wordsens.plotting.records import column_title, series_along
    from wordsens.results import split_estimates

    chosen, folder = _source(options.spec, options.overrides or (), options.out)
    keys, records = _last_records(chosen, folder)
    if not _counts(records)["done"]:
        raise InputError(
            f"`spec` (={options.spec!r}) has no finished cell in {folder}; run the sweep first"
        )
    if len(records) < len(keys):
        notice(f"{len(keys) - len(records)} of the sweep's {len(keys)} cells have no result yet")
    by = None if options.by is None else [name.strip() for name in options.by.split(",") if name]
    points, series = series_along(records, options.x, options.y, by)
    usual = folder / "figures" / f"{options.y}-against-{options.x}.png"
    path = Path(options.file) if options.file else usual
    if path.suffix not in (".pdf", ".png", ".svg"):
        raise InputError(f"`file` (={options.file!r}) must end with .pdf, .png, .svg")
    figure = along(records, options.x, options.y, by=by, logarithmic=not options.linear)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    if options.as_json:
        tables = {
            name: pd.DataFrame(split_estimates(frame.to_dict("list"))).to_dict("records")
            for name, frame in (("series", series), ("points", points))
        }
        axes = {"x": options.x, "y": options.y, "file": str(path)}
        print_json({**_head("sweep plot", chosen), **axes, **tables})
        return
    title = f"{column_title(records, options.y)} ~ {options.x}^exponent"
    note = "Exponents by least squares on logarithms, [95 % confidence interval]."
    table = Table("", series.to_dict("list"), note=note, most=len(series))
    print_view(View(title, (table,)), stdout())
    stdout().print(f"figure   {path}", soft_wrap=True)


def _source(
    spec: str, overrides: "list[str] | tuple[str, ...]", out: str | None
) -> "tuple[Sweep, Path]":
    """The sweep that SPEC names, and its folder: `out`, or the folder named, or one with the
    sweep's name.

    Raises:
        InputError: there is no such sweep, or it is wrong.
    """
    from wordsens.files import named_path
    from wordsens.sweeps.sweep import load_sweep

    path = named_path("spec", spec, home=False)
    folder = None if out is None else named_path("out", out, home=False)
    if path.is_dir():
        files = sorted(path.glob("*.yaml"))
        if len(files) != 1:
            listed = f"several: {', '.join(map(str, files))}" if files else "none"
            raise InputError(
                f"`spec` (={spec!r}) is a folder with {listed}; give the YAML file of one sweep"
            )
        return load_sweep(files[0], overrides), folder or path
    chosen = load_sweep(path, overrides)
    return chosen, folder or Path(chosen.name)


def _last_records(chosen: "Sweep", folder: Path) -> "tuple[list[str], DataFrame]":
    """The keys of the sweep's cells under the version of the code that wrote last there, and their
    records."""
    from wordsens.sweeps.store import Store

    with Store(folder, read_only=True) as store:
        code = store.codes().get(chosen.experiment)
        keys = [cell.key(code) for cell in chosen.cells()]
        return keys, store.frame(keys)


def _print_failures(failures: list[dict[str, str]]) -> None:
    for failure in failures[:_LISTED]:
        stdout().print(f"failed   {failure['cell']}  {failure['error']}", soft_wrap=True)
    if len(failures) > _LISTED:
        stdout().print(f"         and {len(failures) - _LISTED} more")
