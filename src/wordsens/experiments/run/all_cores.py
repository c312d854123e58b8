"""The usual place of cells: this process, and as many worker processes as pay once a run turns out to be long."""

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wordsens.experiments.grid.cell_keys import CPU
from wordsens.experiments.run.cores import useful_processes
from wordsens.experiments.run.executor import Executor, Tell
from wordsens.experiments.run.remaining_time import RemainingTime
from wordsens.experiments.run.task import Job, Outcome, measure

TRIED_SECONDS = 5.0
"""So long a run stays in this process: its first cells load models and tell how long the others will take."""

WORTH_SECONDS = 20.0
"""Cells that will take longer go to workers, whose start costs about 4 s of CPU time each (imports and a model)."""


class AllCores(Executor):
    """Cells in this process until they are seen to take long; then in worker processes, which give the same numbers.

    Cells on a GPU stay in this process.

    Args:
        open_workers: opens so many worker processes.
        threads: CPU threads of each.
        tell: told when workers are opened.
    """

    def __init__(self, open_workers: Callable[[int], Executor], *, threads: int = 1, tell: Tell = lambda line: None):
        self._open_workers, self._threads, self._tell = open_workers, threads, tell
        self._workers: Executor | None = None

    @property
    def described(self) -> str:
        return "in this process" if self._workers is None else self._workers.described

    @property
    def slots(self) -> int:
        return 1 if self._workers is None else self._workers.slots

    def outcomes(self, job: Job, cells: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        clock, begin = RemainingTime(cells), time.perf_counter()
        for place, cell in enumerate(cells):
            left = clock.left() or 0.0
            if time.perf_counter() - begin > TRIED_SECONDS and left > WORTH_SECONDS:
                processes = min(self._processes(cells[place:]), len(cells) - place)
                if processes > 1:
                    yield from self._elsewhere(job, cells, place, processes)
                    return
            outcome = measure(job, cell)
            clock.observe(cell, outcome.record.seconds)
            yield place, outcome

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _processes(self, cells: Sequence[Any]) -> int:
        known = importlib.util.find_spec("distributed") is not None
        return useful_processes(self._threads) if known and all(cell.device == CPU for cell in cells) else 1

    def _elsewhere(self, job: Job, cells: Sequence[Any], place: int, processes: int) -> Iterator[tuple[int, Outcome]]:
        self._tell(f"this will take a while: {processes} worker processes take over (--workers 1 for none)")
        self._workers = self._open_workers(processes)
        for at, outcome in self._workers.outcomes(job, cells[place:]):
            yield place + at, outcome
