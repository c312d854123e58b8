"""Running cells: the only loop. In this process, on worker processes, or on the workers of a Dask
scheduler; every record is committed before the next cell counts as begun."""

import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, MissingExtraError, WordsensError, argument
from wordsens.sweeps.spec import Cell, code_version, error_line
from wordsens.sweeps.store import Row, Store, packed, record_of, write_tables
from wordsens.sweeps.study import Study
from wordsens.sweeps.sweep import Sweep, load_sweep, overridden, study_named
from wordsens.workers import WorkerDiedError, WorkerPool

if TYPE_CHECKING:
    from pandas import DataFrame

_CONNECT_SECONDS = 20.0

# How often the number of a scheduler's workers is asked for.
_LOOK_SECONDS = 1.0

# Tasks under way per worker: a million cells do not fill the scheduler.
_AHEAD = 2

# Cells of one process share fits and torch's number of threads: on a worker with several threads
# they take turns.
_ONE_AT_A_TIME = threading.Lock()

# The C library hands every freed block back to the system, a third of the CPU time of attention.
_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}

# The record of a cell, and its packed arrays where they are kept.
Outcome = tuple[Row, bytes | None]

# Where cells run: what submits a function and its arguments and gives a future, what counts the
# workers now, and what a future raises whose worker died.
_Place = tuple[Callable[..., "Future[list[Outcome]]"], Callable[[], int], type[Exception]]


def run_sweep(
    sweep: Sweep | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    witnesses: bool = False,
) -> "DataFrame":
    """Measure the cells of a sweep that the folder has no value for, and return all of its records.

    Args:
        sweep: a YAML file, or its content as a dictionary: name, experiment, common, grids.
        out: the folder of the results; None for one with the sweep's name. After an interruption
            the same call continues.
        overrides: `key=value`, applied in order.
        workers: the number of processes to start on this machine; None: this process does the work.
            A script that uses workers must call this under `if __name__ == "__main__":`.
        scheduler: the address of a Dask scheduler, or its scheduler file, in place of `workers`.
        witnesses: whether the arrays from which values can be computed again are kept.
    """
    is_file = isinstance(sweep, str | Path)
    whole = load_sweep(sweep) if is_file else Sweep.parse(dict(sweep))
    chosen = overridden(whole, overrides)
    cells = chosen.cells()
    with Store(out or chosen.name) as store:
        chosen.save(store.folder)
        for _ in run(cells, store, workers=workers, scheduler=scheduler, witnesses=witnesses):
            pass
        write_tables(store.frame([cell.key() for cell in cells]), store.folder, chosen.experiment)
        return store.frame(experiment=chosen.experiment)


def unfinished(cells: Sequence[Cell], store: Store, *, witnesses: bool = False) -> list[Any]:
    """The cells that the store has no value for, in order; failed ones are tried again. With
    `witnesses`, finished ones without arrays too.
    """
    done = store.finished(with_arrays=witnesses)
    return [cell for cell in cells if cell.key() not in done]


def run(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    threads: int | None = None,
    witnesses: bool = False,
) -> Iterator[Row]:
    """Measure the cells that the store has no value for, and yield each record once it is
    committed.

    A cell that fails gives a record with status "failed"; the others run on. An interrupt goes
    through: what has been yielded is in the store, and the same call continues from there.

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
    study = study_named(left[0].experiment)
    groups = _groups(study, left)
    with ExitStack() as places:
        if scheduler is None and workers is None:
            parts = (_measured(study, group, threads, witnesses) for group in groups)
            outcomes = chain.from_iterable(parts)
        else:
            local = scheduler is None
            opened = _processes(workers or 1, threads or 1) if local else _cluster(scheduler)
            arguments = (left[0].experiment, code_version(study.Cell), threads, witnesses)
            outcomes = _on_workers(places.enter_context(opened), groups, arguments)
        for record, arrays in outcomes:
            store.write(record, arrays)
            yield record


def _groups(study: Study, cells: Sequence[Any]) -> Iterator[list[Any]]:
    """The cells in order, neighbours that share costly work together."""
    for _, sharing in groupby(cells, key=study.together):
        group = list(sharing)
        for first in range(0, len(group), study.most_together):
            yield group[first : first + study.most_together]


def _measured(
    study: Study,
    cells: Sequence[Any],
    threads: int | None,
    witnesses: bool,
    *,
    on_worker: bool = False,
) -> Iterator[Outcome]:
    """The outcomes of cells: together where the study can, and each alone where one of them fails.
    Ctrl-C goes through, but on a worker, where only the cell itself can raise it."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    begin, alone = time.perf_counter(), len(cells) == 1
    outcomes = None
    try:
        if alone or study.measure_together is not None:
            outcomes = measured(study, cells, witnesses=witnesses)
    except BaseException as error:  # a cell that calls sys.exit fails like any other
        if isinstance(error, KeyboardInterrupt) and not on_worker:
            raise
        if alone:
            seconds = time.perf_counter() - begin
            outcomes = [failed(cells[0], error_line(error), seconds=seconds)]
    if outcomes is None:
        each = (_measured(study, [cell], None, witnesses, on_worker=on_worker) for cell in cells)
        outcomes = chain.from_iterable(each)
    yield from outcomes


def measured(study: Study, cells: Sequence[Any], *, witnesses: bool = False) -> list[Outcome]:
    """The outcomes of cells that are measured together, each with its share of the time; an error
    is raised."""
    started, begin = _now(), time.perf_counter()
    if len(cells) > 1 and study.measure_together is not None:
        measurements = study.measure_together(cells)
    else:
        measurements = [study.measure(cell) for cell in cells]
    seconds = (time.perf_counter() - begin) / len(cells)
    outcomes = []
    for cell, measurement in zip(cells, measurements, strict=True):
        columns = dict(measurement)
        arrays, value = columns.pop("arrays", None), columns.get("value")
        if value is None or not math.isfinite(value):
            raise WordsensError(f"the value (={value!r}) is no finite number")
        record = record_of(cell, "done", columns, started=started, seconds=seconds)
        outcomes.append((record, packed(arrays) if witnesses and arrays else None))
    return outcomes


def failed(cell: Any, error: str, *, seconds: float = 0.0) -> Outcome:
    """The outcome of a cell that could not be measured."""
    return record_of(cell, "failed", {}, started=_now(), seconds=seconds, error=error), None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def measure_cells(
    cells: Sequence[Any], name: str, code: str, threads: int | None, witnesses: bool
) -> list[Outcome]:
    """On a worker: measure the cells of the study of that name.

    Raises:
        WordsensError: the worker has another version of the code, whose values could differ.
    """
    study = study_named(name)
    if (own := code_version(study.Cell)) != code:
        raise WordsensError(f"a worker has another version of the code ({own}, here {code})")
    with _ONE_AT_A_TIME:
        return list(_measured(study, cells, threads, witnesses, on_worker=True))


def _on_workers(
    place: _Place, groups: Iterable[list[Any]], arguments: tuple[Any, ...]
) -> Iterator[Outcome]:
    """The outcomes of the cells, as they finish. The cells of a worker that dies are run again one
    by one at the end, while no other cell runs; one whose worker dies again becomes a failed
    record."""
    submit, count, died = place
    waiting, suspects = deque(groups), deque[Any]()
    under_way: dict[Future[list[Outcome]], list[Any]] = {}
    alone = False
    while waiting or under_way or suspects:
        if not waiting and not under_way:
            waiting.append([suspects.popleft()])
            alone = True
        while waiting and len(under_way) <= _AHEAD * max(1, count()):
            group = waiting.popleft()
            under_way[submit(measure_cells, group, *arguments)] = group
        for future in wait(under_way, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
            group = under_way.pop(future)
            try:
                outcomes = future.result()
            except died:
                if not alone:
                    suspects.extend(group)
                    continue
                reason = "its worker died each time it was run; does it need more memory?"
                outcomes = [failed(group[0], reason)]
            except WordsensError:
                raise
            except CancelledError as error:
                raise WordsensError("the scheduler went away") from error
            except Exception as error:
                raise WordsensError(
                    f"a worker failed ({error_line(error)}); install there the same wordsens, "
                    "and your own files"
                ) from error
            for cell, (record, arrays) in zip(group, outcomes, strict=True):
                if record["cell"] == cell.key():
                    yield record, arrays
                else:
                    yield failed(cell, "the dataset differs where this cell was measured")


@contextmanager
def _processes(count: int, threads: int) -> Iterator[_Place]:
    """This many processes on this machine, which end with the block, or with this process."""
    libraries = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    with WorkerPool(count, dict.fromkeys(libraries, str(threads)) | _MEMORY) as pool:
        yield pool.submit, lambda: count, WorkerDiedError


@contextmanager
def _cluster(scheduler: str) -> Iterator[_Place]:
    """The workers of a Dask scheduler, which restarts those that die."""
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise MissingExtraError("distributed", "cluster", "running cells on a cluster") from error
    for name in ("distributed", "distributed.client"):  # its client has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        address = scheduler
        if scheduler.endswith(".json"):  # Dask would wait for a file that is not there for ever
            address = json.loads(Path(scheduler).read_text(encoding="utf-8"))["address"]
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, LookupError, TypeError, TimeoutError) as error:
        raise InputError(
            f"{argument('scheduler')} (={scheduler!r}) does not answer ({error_line(error)}); "
            "start one with: dask scheduler"
        ) from error
    warn_once = cache(logging.getLogger("wordsens").warning)

    def count() -> int:
        workers = 1
        with suppress(OSError):  # the futures will tell
            workers = len(client.nthreads())  # pyright: ignore[reportArgumentType] - no coroutine here
        if not workers:
            warn_once("no worker of %s; waiting for one", scheduler)
        return workers

    with client:
        yield client.get_executor(pure=False).submit, count, KilledWorker
