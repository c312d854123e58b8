"""`wordsens sweep`: any grid of cells, run, watched, exported and drawn. Loads no torch before it
runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses, fail_for, measure_sweep
from wordsens.cli.options import AsJson, option, takes
from wordsens.cli.terminal import duration, notice, print_json, stdout
from wordsens.display.terminal import print_view
from wordsens.display.view import Table, View
from wordsens.errors import InputError
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.sweeps.store import Record
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
    """Measure every cell that the folder has no value for; the same command goes on after whatever
    stopped it.

    Example: wordsens sweep run spec.yaml n=[10,20,50] --workers 2 --out try
    """
    device = [] if options.device is None else [f"device={options.device}"]
    chosen, folder = _source(options.spec, [*(options.overrides or ()), *device], options.out)
    records, tables = measure_sweep(chosen, folder, options, witnesses=options.witnesses)
    failed = [record for record in records if not record.done]
    seconds = sum(record.seconds for record in records)
    if options.as_json:
        counts = {
            "cells": len(records),
            "done": len(records) - len(failed),
            "failed": _failures(failed),
        }
        head = {
            "command": "sweep run",
            "version": __version__,
            "name": chosen.name,
            "experiment": chosen.experiment,
        }
        print_json({**head, **counts, "seconds": seconds, "records": str(tables)})
    else:
        console = stdout()
        console.print(
            f"{chosen.name}: {len(records) - len(failed)} cells done, {len(failed)} failed",
            style="bold",
        )
        _print_failures(failed)
        console.print(f"computed for {duration(seconds)} (h:mm:ss) of one process's time")
        console.print(f"results  {tables}", soft_wrap=True)
    fail_for(failed, len(records))


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
    failed = [record for record in records if not record.done]
    done, seconds = len(records) - len(failed), sum(record.seconds for record in records)
    if as_json:
        head = {
            "command": "sweep status",
            "version": __version__,
            "name": chosen.name,
            "experiment": chosen.experiment,
        }
        counts = {
            "cells": len(keys),
            "done": done,
            "failed": _failures(failed),
            "to_come": len(keys) - len(records),
        }
        print_json({**head, **counts, "seconds": seconds})
        return
    console = stdout()
    console.print(
        f"{chosen.name}: {done} of {len(keys)} cells done ({done / len(keys):.0%})", style="bold"
    )
    console.print(f"{len(failed)} failed, {len(keys) - len(records)} to come")
    _print_failures(failed)
    console.print(f"computed for {duration(seconds)} (h:mm:ss) of one process's time so far")


@sweep.command()
def export(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a run.")],
    out: Annotated[str | None, option("The folder for the tables; default: the run's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the results of each experiment in the folder as EXPERIMENT.parquet and EXPERIMENT.csv.

    Example: wordsens sweep export try
    """
    from wordsens.sweeps.store import Store, file_name, write_tables

    target = Path(out or folder)
    if not target.is_dir():
        raise InputError(f"`out` (={str(target)!r}) is no folder; make it first")
    with Store(folder, read_only=True) as store:
        names = dict.fromkeys(record.experiment for record in store.records())
        tables = {name: store.records(experiment=name) for name in names}
    paths = [write_tables(records, target, file_name(name)) for name, records in tables.items()]
    if as_json:
        count, files = sum(map(len, tables.values())), [str(path) for path in paths]
        print_json(
            {"command": "sweep export", "version": __version__, "records": count, "files": files}
        )
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
    from wordsens.plotting import along
    from wordsens.sweeps.series import column_title, series_along

    chosen, folder = _source(options.spec, options.overrides or (), options.out)
    keys, records = _last_records(chosen, folder)
    if not any(record.done for record in records):
        raise InputError(
            f"`spec` (={options.spec!r}) has no finished cell in {folder}; run the sweep first"
        )
    if len(records) < len(keys):
        notice(f"{len(keys) - len(records)} of the sweep's {len(keys)} cells have no result yet")
    by = None if options.by is None else [name.strip() for name in options.by.split(",") if name]
    series = series_along(records, options.x, options.y, by)
    path = (
        Path(options.file)
        if options.file
        else folder / "figures" / f"{options.y}-against-{options.x}.png"
    )
    if path.suffix not in (".pdf", ".png", ".svg"):
        raise InputError(f"`file` (={options.file!r}) must end with .pdf, .png, .svg")
    figure = along(records, options.x, options.y, by=by, logarithmic=not options.linear)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    if options.as_json:
        head = {
            "command": "sweep plot",
            "version": __version__,
            "name": chosen.name,
            "x": options.x,
            "y": options.y,
        }
        print_json({**head, "series": [line.to_dict() for line in series], "file": str(path)})
        return
    rows = [
        (
            line.label or "all results",
            f"{line.points[0][0]}-{line.points[-1][0]}",
            line.texts,
            "" if line.exponent is None else str(line.exponent),
        )
        for line in series
    ]
    title = f"{column_title(records, options.y)} ~ {options.x}^exponent"
    note = "Exponents by least squares on logarithms, [95 % confidence interval]."
    headings = ("series", options.x, "texts", "exponent")
    table = Table.of_rows("", headings, rows, note=note, most=len(rows))
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


def _last_records(chosen: "Sweep", folder: Path) -> "tuple[list[str], list[Record]]":
    """The keys of the sweep's cells under the version of the code that wrote last there, and their
    records."""
    from wordsens.sweeps.store import Store

    with Store(folder, read_only=True) as store:
        code = store.last_code(chosen.experiment)
        keys = [cell.key(code) for cell in chosen.cells()]
        return keys, store.records(keys)


def _failures(failed: "list[Record]") -> list[dict[str, str]]:
    return [{"cell": record.cell, "error": record.error} for record in failed]


def _print_failures(failed: "list[Record]") -> None:
    for record in failed[:_LISTED]:
        stdout().print(f"failed   {record.cell}  {record.error}", soft_wrap=True)
    if len(failed) > _LISTED:
        stdout().print(f"         and {len(failed) - _LISTED} more")
