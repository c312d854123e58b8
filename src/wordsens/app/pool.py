"""The page's workers: tasks in fair order, answers part by part, limits, and lost workers
replaced."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from wordsens.app.settings import AppSettings
from wordsens.app.worker import (
    LOST,
    OUT_OF_TIME,
    PART,
    READY,
    REFUSED,
    STOPPED,
    Answer,
    Channel,
    serve_tasks,
)
from wordsens.errors import BudgetError, InputError, WordsensError
from wordsens.workers import Worker

PATIENCE = 2.0
"""Seconds that a task has to stop by itself, before its worker is ended."""

GRACE = 1.0
"""Seconds that workers have to end at Ctrl-C, before they are killed."""

MOST_EARLY_LOSSES = 3
"""Times that each worker may end before it is ready, until the page gives up: something is wrong
with all."""


def _work(connection: Channel, memory: int, models: Sequence[str]) -> None:
    """The life of a worker: it loads the models, says that it is ready, or what is wrong with them,
    and serves."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with suppress(
        ImportError, ValueError, OSError
    ):  # where the system cannot hold a process to that
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory << 20, memory << 20))
    from wordsens.app.tasks import (
        TASKS,
        warm_up,
    )  # loads torch, which the page's own process never does

    try:
        warm_up(models)
    except InputError as error:
        connection.send((REFUSED, str(error)))
        return
    connection.send((READY, None))
    serve_tasks(connection, TASKS)


class Job:
    """A task on its way: the name of one of `wordsens.app.tasks.TASKS`, its arguments, and whose it
    is; `brief` ones go first."""

    def __init__(self, name: str, arguments: dict[str, Any], visitor: str, *, brief: bool):
        self.task, self.visitor, self.brief = (name, arguments), visitor, brief
        self.ending: str | None = None
        """The reason that it is to end early: STOPPED or OUT_OF_TIME."""
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()

    def take(self, kind: str, value: Any = None) -> None:
        """Add an answer."""
        self._answers.put_nowait((kind, value))

    async def answers(self) -> AsyncIterator[Answer]:
        """The answers, the last one included."""
        kind = PART
        while kind == PART:
            kind, value = await self._answers.get()
            yield kind, value


class Pool:
    """The workers of a server; `broken` is the reason that none can be had, None where all is
    well."""

    def __init__(self, settings: AppSettings):
        self.settings = settings
        self.broken: WordsensError | None = None
        self._workers: list[Worker] = []
        self._jobs: dict[Worker, Job] = {}
        self._waiting: list[Job] = []
        self._closed = False
        self._early_losses = 0

    def start(self) -> None:
        """Start the processes; they are ready some seconds later, and tasks wait for that."""
        self._loop = asyncio.get_running_loop()
        while len(self._workers) < self.settings.workers:
            arguments = (self.settings.memory, self.settings.models)
            lost, receive = partial(self._soon, self.lose), partial(self._soon, self.receive)
            self._workers.append(Worker(_work, *arguments, receive=receive, lost=lost))

    def _soon(self, function: Any, *arguments: Any) -> None:
        """Call it in the page's thread; workers' messages come in others."""
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def submit(
        self, name: str, arguments: dict[str, Any], visitor: str, *, brief: bool = False
    ) -> Job:
        """Ask for a task.

        Raises:
            BudgetError: too many wait already.
        """
        if not brief and len(self._waiting) >= self.settings.max_waiting:
            raise BudgetError(
                f"{len(self._waiting)} measurements are waiting already, as many as this page "
                "keeps; "
                "please try again in a minute"
            )
        job = Job(name, arguments, visitor, brief=brief)
        self._waiting.append(job)
        self._give_out()
        return job

    def place_of(self, job: Job) -> int:
        """Its place in the line; 0 once it runs."""
        return self._waiting.index(job) + 1 if job in self._waiting else 0

    def cancel(self, job: Job, reason: str = STOPPED) -> None:
        """End a job: at its next tick, or with its worker where that takes long."""
        if job in self._waiting:
            self._waiting.remove(job)
            job.take(reason)
        for worker, running in self._jobs.items():
            if running is job:
                job.ending = job.ending or reason
                worker.send(None)
                if reason == OUT_OF_TIME or not job.brief:  # which is soon over
                    self._loop.call_later(PATIENCE, self._end_late, worker, job)

    def _end_late(self, worker: Worker, job: Job) -> None:
        if self._jobs.get(worker) is job:
            worker.process.terminate()

    def receive(self, worker: Worker, answer: Answer) -> None:
        """Pass an answer of a worker on."""
        kind, value = answer
        job = self._jobs.get(worker)
        if kind == READY:
            self._early_losses = 0
        elif job is None:  # its models
            self.broken = InputError(value)
        elif kind == PART:
            job.take(kind, value)
        else:
            del self._jobs[worker]
            job.take(job.ending if kind == STOPPED and job.ending else kind, value)
        self._give_out()

    def lose(self, worker: Worker) -> None:
        """Tell the job of a worker that is gone, and start another in its place."""
        if self._closed or worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.connection.close()
        if (job := self._jobs.pop(worker, None)) is not None:
            job.take(job.ending or LOST)
        self._early_losses += not worker.ready
        if self._early_losses > MOST_EARLY_LOSSES * self.settings.workers and self.broken is None:
            self.broken = WordsensError(
                "the workers end before they are ready; their errors stand above"
            )
        if self.broken is None:
            self.start()
            self._give_out()

    def _give_out(self) -> None:
        """Give jobs to the free workers: brief ones, then those of visitors with the least running,
        then in order."""
        for worker in self._workers:
            if worker.ready and worker not in self._jobs and self._waiting:
                running = [job.visitor for job in self._jobs.values()]
                job = min(
                    self._waiting, key=lambda job: (not job.brief, running.count(job.visitor))
                )
                self._waiting.remove(job)
                self._jobs[worker] = job
                worker.send(job.task)
                self._loop.call_later(self.settings.max_seconds, self.cancel, job, OUT_OF_TIME)

    async def close(self) -> None:
        """End the processes, within about GRACE seconds."""
        self._closed = True
        for worker in self._workers:
            worker.process.terminate()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for worker in self._workers:
            worker.end(GRACE / len(self._workers))
