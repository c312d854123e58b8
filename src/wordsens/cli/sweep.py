"""`wordsens sweep`: any grid of cells, run, watched, exported and drawn. Loads no torch before it
runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import wordsens as ws
from wordsens.cli.cells import Place, failure, measure_sweep
from wordsens.cli.command import Answer, CommandRun, command, option
from wordsens.cli.terminal import duration
from wordsens.display.view import Table, View
from wordsens.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

    from wordsens.sweeps.sweep import Sweep

# Failed cells that are named.
_LISTED = 6

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="A YAML file, or the folder of a run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Overrides of the spec, such as n=[10,20] text.layer=2.",
        show_default=False,
    ),
]
Out = Annotated[str | None, option("The sweep's folder; default: the sweep's name.")]


@command("sweep run")
def run(
    spec: Spec,
    overrides: Overrides = None,
    *,
    out: Out = None,
    place: Place,
    run_device: Annotated[
        str | None,
        option("Where to compute, in place of the spec's device: cpu, cuda, ...", "--device"),
    ] = None,
    run: CommandRun,
) -> Answer:
    """Measure every cell that has no value in the folder yet. After an interruption, run the same
    command to continue.

    Example: wordsens sweep run spec.yaml n=[10,20,50] --workers 2 --out try
    """
    device = [] if run_device is None else [f"device={run_device}"]
    sweep, folder = _source(spec, [*(overrides or ()), *device], out)
    records, tables = measure_sweep(sweep, folder, place, run)
    counts = _counts(records)
    view = View(
        f"{sweep.name}: {counts['done']} cells done, {len(counts['failed'])} failed",
        (*_failures(counts), _computed(counts)),
    )
    return Answer(
        document={**_head(sweep), "cells": len(records), **counts, "records": str(tables)},
        view=view,
        lines=[f"results  {tables}"],
        error=failure([failed["error"] for failed in counts["failed"]], len(records)),
    )


@command("sweep status")
def status(spec: Spec, overrides: Overrides = None, *, out: Out = None, run: CommandRun) -> Answer:
    """Count the cells that are done, failed and still to run. Changes nothing; works while a run is
    in progress.

    Example: wordsens sweep status try
    """
    sweep, folder = _source(spec, overrides or (), out)
    keys, records = _last_records(sweep, folder)
    counts, to_come = _counts(records), len(keys) - len(records)
    done = counts["done"]
    view = View(
        f"{sweep.name}: {done} of {len(keys)} cells done ({done / len(keys):.0%})",
        (
            f"{len(counts['failed'])} failed, {to_come} to come",
            *_failures(counts),
            f"{_computed(counts)} so far",
        ),
    )
    document = {**_head(sweep), "cells": len(keys), **counts, "to_come": to_come}
    return Answer(document=document, view=view)


@command("sweep export")
def export(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a run.")],
    *,
    out: Annotated[str | None, option("The folder for the tables; default: the run's own.")] = None,
    run: CommandRun,
) -> Answer:
    """Write the results of each experiment in the folder as EXPERIMENT.parquet and EXPERIMENT.csv.

    Example: wordsens sweep export try
    """
    from wordsens.sweeps.store import write_tables

    target = Path(out or folder)
    if not target.is_dir():
        raise InputError(f"--out (={str(target)!r}) is no folder; make it first")
    records = ws.read_records(folder)
    paths = [
        write_tables(part.dropna(axis=1, how="all"), target, str(name))
        for name, part in (() if records.empty else records.groupby("experiment", sort=False))
    ]
    files = [str(file) for path in paths for file in (path, path.with_suffix(".csv"))]
    return Answer(document={"records": len(records), "files": files[::2]}, lines=files)


@command("sweep plot")
def plot(
    spec: Spec,
    overrides: Overrides = None,
    *,
    x: Annotated[str, option("Column of the x axis: n, temperature, width, ...")],
    y: Annotated[
        str,
        option(
            "Column of the y axis: value, upper, average, ...; averaged over records that differ "
            "only in seed, draw and sample."
        ),
    ] = "value",
    by: Annotated[
        str | None,
        option(
            "Columns that distinguish the series, separated by commas, such as map,text; default: "
            "every other key that varies."
        ),
    ] = None,
    out: Out = None,
    file: Annotated[
        str | None, option("File to write: .pdf, .png or .svg; default: in the sweep's folder.")
    ] = None,
    linear: Annotated[bool, option("Use linear instead of logarithmic axes.", "--linear")] = False,
    run: CommandRun,
) -> Answer:
    """Plot a sweep's results along any of its axes, and print the exponent of the fitted power law
    per series.

    Example: wordsens sweep plot try --x temperature --by n
    """
    import pandas as pd

    from wordsens.plotting import along
    from wordsens.plotting.records import column_title, series_along
    from wordsens.results import split_estimates

    sweep, folder = _source(spec, overrides or (), out)
    keys, records = _last_records(sweep, folder)
    if not _counts(records)["done"]:
        raise InputError(f"SPEC (={spec!r}) has no finished cell in {folder}; run the sweep first")
    if len(records) < len(keys):
        run.notice(
            f"{len(keys) - len(records)} of the sweep's {len(keys)} cells have no result yet"
        )
    columns = None if by is None else [name.strip() for name in by.split(",") if name]
    points, series = series_along(records, x, y, columns)
    path = folder / "figures" / f"{y}-against-{x}.png" if file is None else Path(file)
    if path.suffix not in (".pdf", ".png", ".svg"):
        raise InputError(f"--file (={file!r}) must end with .pdf, .png, .svg")
    figure = along(records, x, y, by=columns, logarithmic=not linear)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    tables = {
        name: pd.DataFrame(split_estimates(frame.to_dict("list"))).to_dict("records")
        for name, frame in (("series", series), ("points", points))
    }
    note = "Exponents by least squares on logarithms, [95 % confidence interval]."
    table = Table("", series.to_dict("list"), note=note, most=len(series))
    return Answer(
        document={**_head(sweep), "x": x, "y": y, "file": str(path), **tables},
        view=View(f"{column_title(records, y)} ~ {x}^exponent", (table,)),
        lines=[f"figure   {path}"],
    )


def _source(spec: str, overrides: Sequence[str], out: str | None) -> "tuple[Sweep, Path]":
    """The sweep that SPEC names, and its folder: `out`, or the folder named, or one with the
    sweep's name.

    Raises:
        InputError: there is no such sweep, or it is wrong.
    """
    from wordsens.files import named_path
    from wordsens.sweeps.sweep import load_sweep

    path = named_path("spec", spec, home=False)
    folder = None if out is None else named_path("out", out, home=False)
    if not path.is_dir():
        sweep = load_sweep(path, overrides)
        return sweep, folder or Path(sweep.name)
    files = sorted(path.glob("*.yaml"))
    if len(files) != 1:
        listed = f"several: {', '.join(map(str, files))}" if files else "none"
        raise InputError(
            f"SPEC (={spec!r}) is a folder with {listed}; give the YAML file of one sweep"
        )
    return load_sweep(files[0], overrides), folder or path


def _last_records(sweep: "Sweep", folder: Path) -> "tuple[list[str], DataFrame]":
    """The keys of the sweep's cells under the version of the code that wrote last there, and their
    records."""
    from wordsens.sweeps.store import Store

    with Store(folder, read_only=True) as store:
        code = store.codes().get(sweep.experiment)
        keys = [cell.key(code) for cell in sweep.cells()]
        return keys, store.frame(keys)


def _head(sweep: "Sweep") -> dict[str, str]:
    return {"name": sweep.name, "experiment": sweep.experiment}


def _counts(records: Any) -> dict[str, Any]:
    """How many cells are done, which failed, and the seconds that all took."""
    if records.empty:
        return {"done": 0, "failed": [], "seconds": 0.0}
    failed = records[records["status"] == "failed"][["cell", "error"]].to_dict("records")
    seconds = float(records["seconds"].sum())
    return {"done": len(records) - len(failed), "failed": failed, "seconds": seconds}


def _failures(counts: dict[str, Any]) -> list[str]:
    lines = [f"failed   {failed['cell']}  {failed['error']}" for failed in counts["failed"]]
    if len(lines) > _LISTED:
        lines[_LISTED:] = [f"         and {len(lines) - _LISTED} more"]
    return lines


def _computed(counts: dict[str, Any]) -> str:
    return f"computed for {duration(counts['seconds'])} (h:mm:ss) of process time"
