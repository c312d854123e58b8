"""Running the cells of an experiment from the command line: where, with what progress, and how it
ends.

Loads no torch and no dask before cells are run.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wordsens.cli.options import AsJson, Quiet, Threads, option
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import notice, reporting, typed
from wordsens.errors import InputError, WordsensError, require_count, require_device

if TYPE_CHECKING:
    from pandas import DataFrame

    from wordsens.sweeps.store import Row, Store
    from wordsens.sweeps.sweep import Sweep

_place = partial(option, panel="Where cells run")
Witnesses = Annotated[bool, _place("Keep each cell's perturbations too.", "--witnesses")]


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """The options that commands with cells share; their own are the fields of a subclass.

    Raises:
        InputError: two places are named, or a count is below 1.
    """

    threads: Threads = 1
    workers: Annotated[
        int | None,
        _place("Processes on this machine, one cell each at a time; default: this process alone."),
    ] = None
    scheduler: Annotated[
        str | None,
        _place("The workers of a Dask scheduler: tcp://HOST:8786, or its scheduler file."),
    ] = None
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        require_count("threads", self.threads)
        if self.workers is not None:
            require_count("workers", self.workers)
            if self.scheduler is not None:
                raise InputError(
                    "--workers and --scheduler both say where cells run; give one of them"
                )


def run_missing(
    cells: Sequence[Any],
    store: "Store",
    options: PlaceOptions,
    *,
    witnesses: bool = False,
) -> None:
    """Measure the cells that the store has no value for. The command is noted there.

    Raises:
        KeyboardInterrupt: it was stopped; the message says what is kept and how to go on.
        StoreError: a record cannot be written; likewise.
    """
    from wordsens.sweeps.run import run, unfinished
    from wordsens.sweeps.spec import code_version
    from wordsens.sweeps.store import StoreError

    if options.scheduler is None:  # else the workers' machines have to have it
        for device in sorted({cell.device for cell in cells} - {"cpu"}):
            require_device(device)
    store.add_command(typed.get())
    left = unfinished(cells, store, witnesses=witnesses)
    finished_before = len(cells) - len(left)
    if not options.quiet:
        if finished_before:
            notice(f"{finished_before} of {len(cells)} cells are in {store.folder} already")
        if left and (
            others := store.other_versions(left[0].experiment, code_version(type(left[0])))
        ):
            notice(
                f"{others} cells there are of another version of the code, and are not mixed "
                "with this one's"
            )
    if not left:
        return
    logging.getLogger("wordsens").setLevel(logging.ERROR if options.quiet else logging.WARNING)
    done = failed = 0

    def finished() -> str:
        return f"{finished_before + done} of {len(cells)} cells are finished in {store.folder}"

    where = {"workers": options.workers, "scheduler": options.scheduler, "threads": options.threads}
    try:
        with stopped_by_sigterm(), reporting(len(left), "cells", quiet=options.quiet) as report:
            for record in run(left, store, witnesses=witnesses, **where):
                failed += record["status"] == "failed"
                done += record["status"] == "done"
                report.update(done + failed, now=_name(record))
    except KeyboardInterrupt as stop:
        raise type(stop)(
            f"interrupted: {finished()}; the same command goes on from there"
        ) from None
    except StoreError as error:
        raise StoreError(
            f"{error}: {finished()}; free some space, and the same command goes on from there"
        ) from error


def measure_sweep(
    sweep: "Sweep", folder: str | Path, options: PlaceOptions, *, witnesses: bool
) -> "tuple[DataFrame, Path]":
    """Measure the cells that the folder has no value for; all records, in the cells' order, and the
    table of them."""
    from wordsens.sweeps.store import Store, write_tables

    cells = sweep.cells()
    place = {cell.key(): at for at, cell in enumerate(cells)}
    with Store(folder) as store:
        sweep.save(store.folder)
        run_missing(cells, store, options, witnesses=witnesses)
        records: Any = store.frame(place)
        records = records.iloc[records["cell"].map(place).argsort()].reset_index(drop=True)
        return records, write_tables(records, store.folder, sweep.experiment)


def fail_for(errors: Sequence[str], total: int) -> None:
    """Raise WordsensError when any cell failed, after everything else is written."""
    if errors:
        raise WordsensError(
            f"{len(errors)} of {total} cells failed, the first with {errors[0]}; "
            "the same command tries them again"
        )


def _name(record: "Row") -> str:
    """A few words that tell a record apart, of whatever columns its study has."""
    if record.get("n") is not None:
        texts = f"N={record['texts']}" if record.get("texts") else record.get("text") or ""
        return f"{record.get('map') or record.get('task') or ''} n={record['n']} {texts}".strip()
    return str(record.get("source") or record["cell"][:8])
