"""Run the cells of a spec in this process, one after another."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from wordsens.experiments.cell import attempt_cell
from wordsens.experiments.record import SomeRecord
from wordsens.experiments.store import RecordStore


@runtime_checkable
class Cell(Protocol):
    """What a runner asks of a cell: its name in the store, and what tells how long it takes."""

    @property
    def map(self) -> str: ...

    @property
    def n(self) -> int: ...

    @property
    def d(self) -> int: ...

    @property
    def text(self) -> Any: ...

    def content_hash(self) -> str: ...


SomeCell = TypeVar("SomeCell", bound=Cell)


def unfinished(cells: Sequence[SomeCell], store: RecordStore[Any]) -> list[SomeCell]:
    """The cells that the store has no value for, in order. Cells that failed are tried again."""
    hashes = [cell.content_hash() for cell in cells]
    done = {record.cell for record in store.read(hashes) if record.done}
    return [cell for cell, name in zip(cells, hashes, strict=True) if name not in done]


def run_cells(
    cells: Sequence[SomeCell],
    store: RecordStore[SomeRecord],
    *,
    attempt: Callable[..., Any] | None = None,
    device: str = "cpu",
) -> Iterator[SomeRecord]:
    """Measure the cells and yield each record once it is on disk. `attempt` measures one; by default, its sensitivity.

    A cell that fails gives a record with status "failed"; the others run on. An interrupt goes through: what
    has been yielded is on disk, and `unfinished` says what is left.
    """
    measure: Any = attempt_cell if attempt is None else attempt
    for cell in cells:
        record = measure(cell, device=device)
        store.write(record)
        yield record


class RemainingTime:
    """Seconds that the cells still to come will take, from those that have finished.

    A cell is expected to take the mean of the finished cells that differ from it in the draw alone; where
    there is none, of those that differ in n too, scaled by n²; else the mean of all.
    """

    def __init__(self) -> None:
        self._by_point: dict[tuple[object, ...], list[float]] = defaultdict(list)
        self._by_series: dict[tuple[object, ...], list[float]] = defaultdict(list)
        self._all: list[float] = []

    def observe(self, cell: Cell, seconds: float) -> None:
        """A finished cell took that long."""
        self._by_point[(*_series(cell), cell.n)].append(seconds)
        self._by_series[_series(cell)].append(seconds / cell.n**2)
        self._all.append(seconds)

    def of(self, cells: Iterable[Cell]) -> float | None:
        """The seconds that the cells will take; None before any has finished."""
        return math.fsum(self._expected(cell) for cell in cells) if self._all else None

    def _expected(self, cell: Cell) -> float:
        if same := self._by_point.get((*_series(cell), cell.n)):
            return sum(same) / len(same)
        if alike := self._by_series.get(_series(cell)):
            return sum(alike) / len(alike) * cell.n**2
        return sum(self._all) / len(self._all)


def _series(cell: Cell) -> tuple[object, ...]:
    return (cell.map, cell.d, getattr(cell, "depth", None), getattr(cell, "objective", None), cell.text.kind)
