"""Run the cells of a sweep: each record is on disk before the next thing happens."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Protocol, TypeVar, runtime_checkable

from wordsens.experiments.kinds import kind_of_records
from wordsens.experiments.run.executor import Executor, InProcess
from wordsens.experiments.run.state import RunState
from wordsens.experiments.run.task import Job, Outcome
from wordsens.experiments.store.record import SomeRecord
from wordsens.experiments.store.store import RecordStore


@runtime_checkable
class Cell(Protocol):
    """The part of a cell that a runner asks for: its name in the store."""

    def content_hash(self) -> str: ...


SomeCell = TypeVar("SomeCell", bound=Cell)


def unfinished(cells: Sequence[SomeCell], store: RecordStore[Any], *, witnesses: bool = False) -> list[SomeCell]:
    """The cells that the store has no value for, in order. Cells that failed are tried again.

    Args:
        cells: of a sweep.
        store: where their records are.
        witnesses: whether a finished cell without a whole witness file counts as unfinished.
    """
    hashes = [cell.content_hash() for cell in cells]
    table = store.table(hashes)
    columns = zip(table.column("cell").to_pylist(), table.column("status").to_pylist(), strict=True)
    done = {cell for cell, status in columns if status == "done"}
    if witnesses:
        done = {cell for cell in done if store.witness(cell) is not None}
    return [cell for cell, name in zip(cells, hashes, strict=True) if name not in done]


def run_cells(
    cells: Sequence[SomeCell],
    store: RecordStore[SomeRecord],
    *,
    job: Job | None = None,
    executor: Executor | None = None,
    tell: Callable[[RunState], None] = lambda state: None,
) -> Iterator[SomeRecord]:
    """Measure the cells and yield each record once it is on disk.

    A cell that fails gives a record with status "failed"; the others run on. An interrupt goes through: what
    has been yielded is on disk, and `unfinished` says what is left. Other runs are kept away from the store.

    Args:
        cells: to be measured.
        store: for their records.
        job: how they are measured; None for the kind of the store's records.
        executor: where; None for this process.
        tell: told after each record how far the run is.

    Raises:
        BusyStoreError: another run is at work on the store.
        StoreError: a record cannot be written; what was written before is whole.
    """
    job = Job(kind_of_records(store.kind).name) if job is None else job
    executor = InProcess() if executor is None else executor
    state = RunState(executor.described, len(cells))
    with store.held():
        state.save(store.folder)
        with closing(executor.outcomes(job, cells)) as outcomes:  # pyright: ignore[reportArgumentType] - generators
            for place, outcome in outcomes:
                record = _checked(job, cells[place], outcome)
                store.write(record, outcome.witness if record.done else None)
                state.done, state.failed = state.done + record.done, state.failed + (not record.done)
                if state.due or state.running == 0:
                    state.where, state.slots = executor.described, max(1, executor.slots)
                    state.save(store.folder)
                tell(state)
                yield record


def _checked(job: Job, cell: Cell, outcome: Outcome) -> Any:
    """The record; a failed one where what came back is not of this cell: a worker that reads other data, for one."""
    name = cell.content_hash()
    if outcome.record.cell == name:
        return outcome.record
    return job.cell_kind.failed(
        cell,
        f"what came back is of another cell ({outcome.record.cell}): the dataset differs where it was measured",
    )


__all__ = ["Cell", "run_cells", "unfinished"]
