"""Running the cells of an experiment from the command line: where, with what progress, and how it
ends.

Loads no torch and no dask before cells are run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wordsens.cli.command import CommandRun, Threads, cpu_threads, option
from wordsens.cli.terminal import typed
from wordsens.errors import InputError, WordsensError, require_count, require_device

if TYPE_CHECKING:
    from pandas import DataFrame

    from wordsens.sweeps.store import Row, Store
    from wordsens.sweeps.sweep import Sweep

_place = partial(option, panel="Where cells run")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where cells run.

    Raises:
        InputError: two places are named.
    """

    workers: Annotated[
        int | None,
        _place(
            "Worker processes on this machine; default: this process only.",
            rule=require_count,
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        _place("Use the workers of a Dask scheduler: tcp://HOST:8786, or its scheduler file."),
    ] = None
    witnesses: Annotated[bool, _place("Also save each cell's perturbations.", "--witnesses")] = (
        False
    )
    threads: Threads = 1

    def __post_init__(self) -> None:
        if self.workers is not None and self.scheduler is not None:
            raise InputError("--workers and --scheduler both say where cells run; give one of them")


def measure_sweep(
    sweep: "Sweep", folder: str | Path, place: Place, run: CommandRun
) -> "tuple[DataFrame, Path]":
    """Measure the cells that the folder has no value for; all records, in the cells' order, and the
    table of them.

    Raises:
        KeyboardInterrupt: it was stopped; the message says what is kept and how to go on.
        StoreError: a record cannot be written; likewise.
    """
    from wordsens.sweeps.store import Store, write_tables

    cells = sweep.cells()
    if place.scheduler is None:  # else the workers' machines have to have it
        for device in sorted({cell.device for cell in cells} - {"cpu"}):
            require_device(device)
    order = {cell.key(): at for at, cell in enumerate(cells)}
    with Store(folder) as store, cpu_threads(place.threads):
        sweep.save(store.folder)
        store.add_command(typed.get())
        _run_missing(cells, store, place, run)
        records: Any = store.frame(order)
        records = records.iloc[records["cell"].map(order).argsort()].reset_index(drop=True)
        return records, write_tables(records, store.folder, sweep.experiment)


def _run_missing(cells: Sequence[Any], store: "Store", place: Place, run: CommandRun) -> None:
    from wordsens.sweeps.run import run as run_cells
    from wordsens.sweeps.run import unfinished
    from wordsens.sweeps.spec import code_version
    from wordsens.sweeps.store import StoreError

    left = unfinished(cells, store, witnesses=place.witnesses)
    before = len(cells) - len(left)
    if before:
        run.notice(f"{before} of {len(cells)} cells are in {store.folder} already")
    if not left:
        return
    if others := store.other_versions(left[0].experiment, code_version(type(left[0]))):
        run.notice(
            f"{others} cells in the folder are from another version of the code and are not used"
        )
    done = failed = 0

    def finished() -> str:
        return f"{before + done} of {len(cells)} cells are finished in {store.folder}"

    where = {"workers": place.workers, "scheduler": place.scheduler, "threads": place.threads}
    try:
        with run.progress("cells", len(left)) as progress:
            for record in run_cells(left, store, witnesses=place.witnesses, **where):
                failed += record["status"] == "failed"
                done += record["status"] == "done"
                progress(done + failed, len(left), _name(record))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted: {finished()}; run the same command to continue"
        ) from None
    except StoreError as error:
        raise StoreError(
            f"{error}: {finished()}; free some space, and run the same command to continue"
        ) from error


def failure(errors: Sequence[str], total: int) -> WordsensError | None:
    """The error where cells failed, for after everything else is written."""
    if not errors:
        return None
    return WordsensError(
        f"{len(errors)} of {total} cells failed, the first with {errors[0]}; "
        "the same command tries them again"
    )


def _name(record: "Row") -> str:
    """A few words that tell a record apart, of whatever columns its study has."""
    if record.get("n") is not None:
        texts = f"N={record['texts']}" if record.get("texts") else record.get("text") or ""
        return f"{record.get('map') or record.get('task') or ''} n={record['n']} {texts}".strip()
    return str(record.get("source") or record["cell"][:8])
