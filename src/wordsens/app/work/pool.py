"""The pool of workers: it gives out tasks in fair order, notices a worker that is gone, and replaces it."""

import asyncio
import itertools
import multiprocessing
import threading
from contextlib import suppress
from typing import Any

from wordsens.app.settings import AppSettings
from wordsens.app.work.job import Job
from wordsens.app.work.messages import LOST, READY, STOPPED, Answer, Cancel, Task
from wordsens.app.work.worker import work
from wordsens.errors import BudgetError, InputError, WordsensError

PATIENCE = 2.0
"""Seconds that a cancelled task has to stop by itself, before its worker is ended."""

GRACE = 1.0
"""Seconds that workers have to end at Ctrl-C, before they are killed."""

BRIEF_SECONDS = 60.0
"""A brief task takes a second or two; one that takes so long hangs."""

MOST_LOST_EARLY = 3
"""Times that each worker may end before it is ready, until the page gives up: something is wrong with all."""

_PROCESSES = multiprocessing.get_context("spawn")


class _Worker:
    """A process with its pipe; a thread of ours reads what it answers."""

    def __init__(self, pool: "Pool"):
        settings = pool.settings
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(
            target=work, args=(theirs, settings.limits.memory_mb, settings.models), daemon=True
        )
        self.process.start()
        theirs.close()
        self.ready = False
        self.jobs: list[Job] = []
        self._pool, self._loop = pool, asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    def give(self, job: Job) -> None:
        self.jobs.append(job)
        self.send(job.task)

    def send(self, message: Task | Cancel) -> None:
        with suppress(OSError):  # gone: the reader notices
            self.connection.send(message)

    def _read(self) -> None:
        with suppress(EOFError, OSError, RuntimeError):
            while True:
                self._loop.call_soon_threadsafe(self._pool.heard, self, self.connection.recv())
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._pool.lost, self)


class Pool:
    """The workers of a server."""

    def __init__(self, settings: AppSettings):
        self.settings = settings
        self._workers: list[_Worker] = []
        self._waiting: list[Job] = []
        self._numbers = itertools.count(1)
        self._closed = False
        self._lost_early = 0
        self.broken: WordsensError | None = None
        """The reason that no worker can be had; None where all is well."""
        self._kept: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start the processes; they are ready some seconds later, and tasks wait for that."""
        self._workers = [_Worker(self) for _ in range(self.settings.workers)]

    @property
    def processes(self) -> list[int]:
        """The workers' process numbers."""
        return [int(worker.process.pid or 0) for worker in self._workers]

    def submit(self, name: str, arguments: dict[str, Any], visitor: str, *, brief: bool = False) -> Job:
        """Ask for a task.

        Raises:
            BudgetError: too many wait already.
        """
        if not brief and len(self._waiting) >= self.settings.limits.waiting:
            raise BudgetError(
                f"{len(self._waiting)} measurements are waiting already, as many as this page keeps; "
                "please try again in a minute"
            )
        seconds = BRIEF_SECONDS if brief else self.settings.limits.seconds
        job = Job(Task(next(self._numbers), name, arguments, seconds), visitor, brief)
        self._waiting.append(job)
        self._give_out()
        return job

    def place_of(self, job: Job) -> int:
        """The number of jobs before it; 0 once it runs."""
        return self._waiting.index(job) + 1 if job in self._waiting else 0

    def cancel(self, job: Job) -> None:
        """End a job: at its next tick, or with its worker where that takes long.

        A brief one never takes its worker with it, which may be at work for someone else: it is soon over.
        """
        if job.finished or job.cancelled:
            return
        job.cancelled = True
        if job in self._waiting:
            self._waiting.remove(job)
            job.take(Answer(job.task.number, STOPPED))
            return
        for worker in self._workers:
            if job in worker.jobs:
                worker.send(Cancel(job.task.number))
                if job.brief:
                    return
                ended = asyncio.create_task(self._end_late(worker, job))
                self._kept.add(ended)
                ended.add_done_callback(self._kept.discard)

    async def _end_late(self, worker: _Worker, job: Job) -> None:
        await asyncio.sleep(PATIENCE)
        if job in worker.jobs:
            worker.process.terminate()

    def heard(self, worker: _Worker, answer: Answer) -> None:
        """Pass an answer on."""
        if answer.kind == READY:
            worker.ready, self._lost_early = True, 0
        elif answer.number == 0:
            self.broken = InputError(answer.value)
        for job in [job for job in worker.jobs if job.task.number == answer.number]:
            if answer.last:
                worker.jobs.remove(job)
            job.take(answer)
        self._give_out()

    def lost(self, worker: _Worker) -> None:
        """Tell the jobs of a worker that is gone, and start another in its place."""
        if self._closed or worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.connection.close()
        for job in worker.jobs:
            job.take(Answer(job.task.number, STOPPED if job.cancelled else LOST))
        self._lost_early += not worker.ready
        if self._lost_early > MOST_LOST_EARLY * self.settings.workers:
            self.broken = self.broken or WordsensError(
                "the workers end before they are ready; their errors stand above"
            )
        if self.broken is None:
            self._workers.append(_Worker(self))
            self._give_out()

    def _give_out(self) -> None:
        """Give every job that can run to a worker: those of visitors with the least running first, then in order."""
        while (free := [one for one in self._workers if one.ready and not one.jobs]) and self._waiting:
            job = min(self._waiting, key=lambda one: (not one.brief, self._running_of(one.visitor)))
            self._waiting.remove(job)
            free[0].give(job)
        # A brief job does not wait for a long one to end.
        for job in [one for one in self._waiting if one.brief]:
            able = [one for one in self._workers if one.ready and not any(other.brief for other in one.jobs)]
            if not able:
                return
            self._waiting.remove(job)
            able[0].give(job)

    def _running_of(self, visitor: str) -> int:
        return sum(job.visitor == visitor for worker in self._workers for job in worker.jobs)

    async def close(self) -> None:
        """End the processes, within about GRACE seconds."""
        self._closed = True
        for worker in self._workers:
            worker.process.terminate()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for worker in self._workers:
            worker.process.join(GRACE / len(self._workers))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join(GRACE)
