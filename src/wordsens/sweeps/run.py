"""Running cells: the only loop. In this process, or on the workers of a Dask scheduler; every
record is committed before the next cell counts as begun."""

import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, groupby
from multiprocessing.connection import Connection
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, MissingExtraError, WordsensError
from wordsens.sweeps.experiment import Experiment
from wordsens.sweeps.spec import Cell, code_version, error_line
from wordsens.sweeps.store import (
    Record,
    Store,
    file_name,
    packed,
    read_records,
    record_of,
    write_tables,
    write_whole,
)
from wordsens.sweeps.sweep import Sweep, experiment_named, load_sweep, overridden

if TYPE_CHECKING:
    from pandas import DataFrame

_CONNECT_SECONDS = 20.0
_LOOK_SECONDS = 1.0
"""How often the number of a scheduler's workers is asked for."""

_AHEAD = 2
"""Tasks under way a worker: a million cells do not fill the scheduler."""

_ONE_AT_A_TIME = threading.Lock()
"""Cells of one process share fits and torch's number of threads: on a worker with several threads
they take turns."""

Outcome = tuple[Record, bytes | None]
"""The record of a cell, and its packed arrays where they are kept."""


def run_sweep(
    sweep: Sweep | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    witnesses: bool = False,
) -> "DataFrame":
    """Measure the cells of a sweep that the folder has no value for, and give all of its records.

    Args:
        sweep: the YAML file of one, or what such a file says, as a dictionary: name, experiment,
            common, grids.
        out: the folder of the results; None for one with the sweep's name. The same call goes on
            after whatever
        stopped it.
        overrides: `key=value`, applied in order.
        workers: processes of this machine; None for this process.
        scheduler: the address of a Dask scheduler, or its scheduler file, in place of `workers`.
        witnesses: whether the arrays from which values can be computed again are kept.
    """
    if isinstance(sweep, str | Path):
        chosen = load_sweep(sweep, overrides)
    else:
        chosen = overridden(
            sweep if isinstance(sweep, Sweep) else Sweep.parse(dict(sweep)), overrides
        )
    cells = chosen.cells()
    with Store(out or chosen.name) as store:
        save_sweep(chosen, store.folder)
        for _ in run(cells, store, workers=workers, scheduler=scheduler, witnesses=witnesses):
            pass
        write_tables(
            store.records([cell.key() for cell in cells]),
            store.folder,
            file_name(chosen.experiment),
        )
    return read_records(out or chosen.name, chosen.experiment)


def save_sweep(sweep: Sweep, folder: Path) -> Path:
    """Write the sweep to EXPERIMENT.yaml in the folder, unless it is there."""
    path, content = folder / f"{file_name(sweep.experiment)}.yaml", sweep.to_yaml().encode()
    if not path.is_file() or path.read_bytes() != content:
        write_whole(path, content)
    return path


def unfinished(cells: Sequence[Cell], store: Store, *, witnesses: bool = False) -> list[Any]:
    """The cells that the store has no value for, in order; failed ones are tried again. With
    `witnesses`, finished ones without arrays too.
    """
    keys = [cell.key() for cell in cells]
    done = {key for key, status in store.statuses(keys).items() if status == "done"}
    if witnesses:
        done &= store.with_arrays()
    return [cell for cell, key in zip(cells, keys, strict=True) if key not in done]


def run(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    threads: int | None = None,
    witnesses: bool = False,
) -> Iterator[Record]:
    """Measure the cells that the store has no value for, and yield each record once it is
    committed.

    A cell that fails gives a record with status "failed"; the others run on. An interrupt goes
    through: what has been yielded is in the store, and the same call goes on from there.

    Args:
        cells: of one experiment.
        store: for their records; this process alone writes there.
        workers: processes of this machine, one cell each at a time; None for this process.
        scheduler: the address of a Dask scheduler or its scheduler file.
        threads: CPU threads of torch meanwhile; None leaves them as they are.
        witnesses: whether the cells' arrays are kept.

    Raises:
        InputError: nothing answers at the scheduler's address.
        StoreError: a record cannot be written; what was written before is whole.
    """
    left = unfinished(cells, store, witnesses=witnesses)
    if not left:
        return
    experiment = experiment_named(left[0].experiment)
    if scheduler is None and workers is None:
        groups = _groups(experiment, left)
        outcomes = (_measured(experiment, group, threads, witnesses) for group in groups)
        yield from _written(chain.from_iterable(outcomes), store)
        return
    with (
        _processes(workers or 1, threads or 1)
        if scheduler is None
        else _cluster(scheduler) as somewhere
    ):
        yield from _written(_on_workers(somewhere, experiment, left, threads, witnesses), store)


def _written(outcomes: Iterable[Outcome], store: Store) -> Iterator[Record]:
    for record, arrays in outcomes:
        store.write(record, arrays)
        yield record


def measure(experiment: Experiment, cell: Any) -> tuple[Record, dict[str, Any]]:
    """The record of one cell, and its arrays; an error is raised."""
    ((record, arrays),) = _recorded([cell], lambda cells: [experiment.measure(cells[0])])
    return record, arrays


def _recorded(
    cells: Sequence[Any], measure: Callable[[Sequence[Any]], Sequence[Mapping[str, Any]]]
) -> list[tuple[Record, dict[str, Any]]]:
    """The records of cells that are measured together, each with its share of the time, and their
    arrays."""
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    measured = [dict(columns) for columns in measure(cells)]
    seconds = (time.perf_counter() - begin) / len(cells)
    outcomes = []
    for cell, columns in zip(cells, measured, strict=True):
        arrays, value = columns.pop("arrays", {}), columns.get("value")
        if value is None or value != value or abs(value) == float("inf"):
            raise WordsensError(f"the value (={value!r}) is no finite number")
        outcomes.append(
            (record_of(cell, "done", columns, started=started, seconds=seconds), arrays)
        )
    return outcomes


def failed(cell: Any, error: str, *, seconds: float = 0.0) -> Record:
    """The record of a cell that could not be measured."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return record_of(cell, "failed", {}, started=now, seconds=seconds, error=error)


def _measured(
    experiment: Experiment,
    cells: Sequence[Any],
    threads: int | None,
    witnesses: bool,
    *,
    on_worker: bool = False,
) -> Iterator[Outcome]:
    """The outcomes of cells: together where the experiment can, and each alone where one of them
    fails. Ctrl-C goes through, but on a worker, where only the cell itself can raise it."""
    if threads is not None:
        import torch

        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

    def goes_through(error: BaseException) -> bool:
        return isinstance(error, KeyboardInterrupt) and not on_worker

    if experiment.measure_together is not None and len(cells) > 1:
        try:
            recorded = _recorded(cells, experiment.measure_together)
        except BaseException as error:  # alone, the cell that is at fault becomes a failed record
            if goes_through(error):
                raise
        else:
            yield from (
                (record, packed(arrays) if witnesses and arrays else None)
                for record, arrays in recorded
            )
            return
    for cell in cells:
        begin = time.perf_counter()
        try:
            record, arrays = measure(experiment, cell)
        except BaseException as error:  # a cell that calls sys.exit fails like any other
            if goes_through(error):
                raise
            yield failed(cell, error_line(error), seconds=time.perf_counter() - begin), None
        else:
            yield record, packed(arrays) if witnesses and arrays else None


def measure_cells(
    experiment: Experiment, cells: Sequence[Any], code: str, threads: int | None, witnesses: bool
) -> list[Outcome]:
    """On a worker: measure the cells.

    Raises:
        WordsensError: the worker has another version of the code, whose values could differ.
    """
    if (own := code_version(experiment.Cell)) != code:
        raise WordsensError(f"a worker has another version of the code ({own}, here {code})")
    with _ONE_AT_A_TIME:
        return list(_measured(experiment, cells, threads, witnesses, on_worker=True))


def _on_workers(
    workers: "_Workers",
    experiment: Experiment,
    cells: Sequence[Any],
    threads: int | None,
    witnesses: bool,
) -> Iterator[Outcome]:
    """The outcomes of the cells, as they finish. A cell whose worker dies is run again by itself at
    the end, so that it takes no other with it; it becomes a failed record where its worker dies
    again."""
    waiting, suspects = deque(_groups(experiment, cells)), deque[Any]()
    under_way: dict[Future[list[Outcome]], list[Any]] = {}
    executor, alone = workers.start(), False
    arguments = (code_version(experiment.Cell), threads, witnesses)
    try:
        while waiting or under_way or suspects:
            if not waiting and not under_way:
                waiting.append([suspects.popleft()])
                alone = True
            most = _AHEAD * max(1, workers.count())
            while waiting and len(under_way) <= most:
                try:
                    with _interrupts_held():
                        future = executor.submit(measure_cells, experiment, waiting[0], *arguments)
                except workers.died:
                    executor = workers.start()
                    continue
                under_way[future] = waiting.popleft()
            for future in wait(under_way, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                group = under_way.pop(future)
                try:
                    outcomes = future.result()
                except workers.died:
                    if alone:
                        yield (
                            failed(
                                group[0],
                                "its worker died each time it was run; does it need more memory?",
                            ),
                            None,
                        )
                    else:
                        suspects.extend(group)
                    continue
                except CancelledError as error:
                    raise WordsensError("the scheduler went away") from error
                except Exception as error:
                    raise WordsensError(
                        f"a worker failed ({error_line(error)}); install there the same wordsens, "
                        "and your own files"
                    ) from error
                for cell, (record, arrays) in zip(group, outcomes, strict=True):
                    yield _of_cell(cell, record), arrays
    finally:
        for future in under_way:
            future.cancel()


def _groups(experiment: Experiment, cells: Sequence[Any]) -> Iterator[list[Any]]:
    """The cells in order, neighbours that share costly work together."""

    def shared(place: int) -> Hashable:
        neighbours = None if experiment.together is None else experiment.together(cells[place])
        return ("alone", place) if neighbours is None else neighbours

    for _, places in groupby(range(len(cells)), key=shared):
        neighbours = [cells[place] for place in places]
        for first in range(0, len(neighbours), experiment.most_together):
            yield neighbours[first : first + experiment.most_together]


def _of_cell(cell: Any, record: Record) -> Record:
    """The record; a failed one where what came back is not of this cell."""
    if record.cell == cell.key():
        return record
    return failed(
        cell, "what came back is of another cell: the dataset differs where it was measured"
    )


@dataclass(frozen=True)
class _Workers:
    """Where cells run.

    Attributes:
        start: gives an executor; again, after its workers died, another one.
        count: how many workers there are.
        died: what a future raises whose worker died.
    """

    start: Callable[[], Executor]
    count: Callable[[], int]
    died: type[Exception]


@contextmanager
def _processes(count: int, threads: int) -> Iterator[_Workers]:
    """So many processes of this machine, which end with the block, or with this process."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    executors: list[ProcessPoolExecutor] = []

    def start() -> Executor:
        executors.append(
            ProcessPoolExecutor(count, context, initializer=_begin_worker, initargs=(reader,))
        )
        return executors[-1]

    settings = {
        name: str(threads)
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    # The C library hands every freed block back to the system, a third of the CPU time of
    # attention.
    settings |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield _Workers(start, lambda: count, BrokenProcessPool)
    finally:
        writer.close()
        for executor in executors:
            executor.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of the block. A worker that is started here never sees one: it may
    come before the worker can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    ensure_running()  # else it starts with the first worker, and lets Ctrl-C through to it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(reader: Connection) -> None:
    """In a new worker: ignore Ctrl-C, which a terminal sends to every process of the group, and end
    with the driver, whose end of the pipe closes then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end() -> None:
        with suppress(EOFError, OSError):
            reader.recv()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


@contextmanager
def _cluster(scheduler: str) -> Iterator[_Workers]:
    """The workers of a Dask scheduler, which restarts those that die."""
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise MissingExtraError("distributed", "cluster", "running cells on a cluster") from error
    for name in ("distributed", "distributed.client"):  # its client has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(_address(scheduler), timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"`scheduler` (={scheduler!r}) does not answer ({error_line(error)}); start one with: "
            "dask scheduler"
        ) from error
    warned = False

    def count() -> int:
        nonlocal warned
        try:
            workers = len(client.nthreads())  # pyright: ignore[reportArgumentType] - no coroutine here
        except OSError:  # the futures will tell
            return 1
        if not workers and not warned:
            logging.getLogger("wordsens").warning("no worker of %s; waiting for one", scheduler)
        warned = not workers
        return workers

    with client:
        yield _Workers(lambda: client.get_executor(pure=False), count, KilledWorker)


def _address(scheduler: str) -> str:
    """The address itself, or the one in a scheduler file; Dask would wait for a file for ever."""
    if not scheduler.endswith(".json"):
        return scheduler
    written = json.loads(Path(scheduler).read_text(encoding="utf-8"))
    if not isinstance(written, dict) or not isinstance(written.get("address"), str):
        raise ValueError("the file holds no scheduler's address")
    return written["address"]
