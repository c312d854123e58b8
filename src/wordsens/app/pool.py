"""The worker processes: tasks given out in fair order, answers as they come, and a lost worker replaced."""

import asyncio
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from wordsens.app.settings import AppSettings
from wordsens.app.worker import LOST, READY, REFUSED, STOPPED, Answer, Cancel, Channel, Task, TaskContext
from wordsens.errors import BudgetError, InputError, WordsensError

PATIENCE = 2.0
"""Seconds that a cancelled task has to stop by itself, before its worker is ended."""

GRACE = 1.0
"""Seconds that workers have to end at Ctrl-C, before they are killed."""

BRIEF_SECONDS = 60.0
"""A brief task takes a second or two; one that takes so long hangs."""

MOST_EARLY_LOSSES = 3
"""Times that each worker may end before it is ready, until the page gives up: something is wrong with all."""

_PROCESSES = multiprocessing.get_context("spawn")


@dataclass(eq=False)
class Job:
    """A task on its way.

    Attributes:
        task: the task.
        visitor: whose it is.
        brief: whether a worker may do it while another of its tasks runs.
    """

    task: Task
    visitor: str
    brief: bool
    _answers: "asyncio.Queue[Answer]" = field(default_factory=asyncio.Queue)
    cancelled: bool = False
    finished: bool = False

    def take(self, answer: Answer) -> None:
        """Add an answer; what comes after the last is dropped."""
        if not self.finished:
            self.finished = answer.last
            self._answers.put_nowait(answer)

    async def answers(self) -> AsyncIterator[Answer]:
        """The answers, the last one included."""
        while True:
            answer = await self._answers.get()
            yield answer
            if answer.last:
                return


def work(connection: Channel, memory_mb: int, models: Sequence[str]) -> None:
    """The life of a worker: it loads the models, says that it is ready, or what is wrong with them, and serves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the page's process, which ends its workers
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _limit_memory(memory_mb)
    from wordsens.app.tasks import TASKS, warm_up  # loads torch, which the page's own process never does

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        context = TaskContext(connection, TASKS)
        try:
            warm_up(context, models)
        except InputError as error:
            connection.send(Answer(0, REFUSED, str(error)))
            return
        connection.send(Answer(0, READY))
        context.serve()


def _limit_memory(memory_mb: int) -> None:
    """Limits the process's memory: asking for more raises MemoryError, where the system can hold a process to that."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, memory_mb << 20))
    except (ImportError, ValueError, OSError):
        return


class _Worker:
    """A process with its pipe; a thread of ours reads what it answers."""

    def __init__(self, pool: "Pool"):
        settings = pool.settings
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(target=work, args=(theirs, settings.memory, settings.models), daemon=True)
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
                self._loop.call_soon_threadsafe(self._pool.receive, self, self.connection.recv())
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
        self._early_losses = 0
        self.broken: WordsensError | None = None
        """The reason that no worker can be had; None where all is well."""
        self._ending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start the processes; they are ready some seconds later, and tasks wait for that."""
        self._workers = [_Worker(self) for _ in range(self.settings.workers)]

    def submit(self, name: str, arguments: dict[str, Any], visitor: str, *, brief: bool = False) -> Job:
        """Ask for a task.

        Raises:
            BudgetError: too many wait already.
        """
        if not brief and len(self._waiting) >= self.settings.max_waiting:
            raise BudgetError(
                f"{len(self._waiting)} measurements are waiting already, as many as this page keeps; "
                "please try again in a minute"
            )
        seconds = BRIEF_SECONDS if brief else self.settings.max_seconds
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
                self._ending.add(ended)
                ended.add_done_callback(self._ending.discard)

    async def _end_late(self, worker: _Worker, job: Job) -> None:
        await asyncio.sleep(PATIENCE)
        if job in worker.jobs:
            worker.process.terminate()

    def receive(self, worker: _Worker, answer: Answer) -> None:
        """Pass an answer on."""
        if answer.kind == READY:
            worker.ready, self._early_losses = True, 0
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
        self._early_losses += not worker.ready
        if self._early_losses > MOST_EARLY_LOSSES * self.settings.workers:
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
