"""Long runs go to worker processes by themselves; short ones stay."""

import pytest

from wordsens.experiments.dry_run.cell import KIND as DRY_RUN
from wordsens.experiments.dry_run.cell import DryRunCell
from wordsens.experiments.run import all_cores, cores
from wordsens.experiments.run.all_cores import AllCores
from wordsens.experiments.run.executor import InProcess
from wordsens.experiments.run.task import Job

CELLS = [DryRunCell(draw=draw) for draw in range(6)]
VALUES = [DRY_RUN.attempt(cell).value for cell in CELLS]


class Opened(InProcess):
    """Stands for worker processes: remembers how many were opened, and what they were given."""

    def __init__(self):
        self.count, self.cells, self.closed = 0, [], False

    def __call__(self, count):
        self.count = count
        return self

    def outcomes(self, job, cells):
        self.cells = cells
        return super().outcomes(job, cells)

    def close(self):
        self.closed = True


@pytest.fixture
def four_cores(monkeypatch):
    """A machine of four physical cores and much memory, on which every run counts as long."""
    monkeypatch.setattr(all_cores, "useful_processes", lambda threads: 4 // threads)
    monkeypatch.setattr(all_cores, "TRIED_SECONDS", -1.0)
    monkeypatch.setattr(all_cores, "WORTH_SECONDS", -1.0)


@pytest.mark.parametrize(("threads", "opened"), [(1, 4), (2, 2), (4, 0)])
def test_a_long_run_goes_to_as_many_workers_as_there_are_cores(four_cores, threads, opened):
    workers, told = Opened(), []
    executor = AllCores(workers, threads=threads, tell=told.append)
    found = dict(executor.outcomes(Job("dry-run"), CELLS))
    executor.close()
    assert [found[place].record.value for place in range(len(CELLS))] == VALUES
    assert (workers.count, len(workers.cells), workers.closed) == (opened, len(CELLS) * bool(opened), bool(opened))
    assert len(told) == bool(opened)


def test_a_short_run_stays_in_its_process(monkeypatch):
    monkeypatch.setattr(all_cores, "TRIED_SECONDS", 0.0)
    monkeypatch.setattr(all_cores, "useful_processes", lambda threads: 4)
    workers = Opened()
    found = dict(AllCores(workers).outcomes(Job("dry-run"), CELLS))
    assert [found[place].record.value for place in range(len(CELLS))] == VALUES
    assert workers.count == 0


def test_cells_on_a_gpu_stay_in_one_process(four_cores):
    workers = Opened()
    cells = [DryRunCell(draw=draw, device="cuda") for draw in range(3)]
    assert len(dict(AllCores(workers).outcomes(Job("dry-run"), cells))) == 3
    assert workers.count == 0


@pytest.mark.parametrize(("free", "threads", "processes"), [(64, 1, 4), (64, 3, 1), (7, 1, 2), (1, 1, 1)])
def test_memory_and_threads_limit_the_processes(monkeypatch, free, threads, processes):
    import dask.system
    import distributed.system
    import psutil

    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 4)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": free * 1e9}))
    monkeypatch.setattr(dask.system, "CPU_COUNT", 8)
    monkeypatch.setattr(distributed.system, "MEMORY_LIMIT", 1e12)
    assert cores.useful_processes(threads) == processes
