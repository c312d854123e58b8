"""The page's tasks on workers: in fair order, part by part, within limits."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from wordsens.app.settings import AppSettings
from wordsens.app.worker import do
from wordsens.errors import BudgetError, WordsensError
from wordsens.workers import Worker, WorkerDiedError, WorkerPool

# Seconds that a task has to stop by itself, before its worker is ended: another takes as long to
# load the models.
_PATIENCE = 10.0

_LOST = (
    "The process that measured this ended, perhaps for lack of memory. Another takes its place: "
    "please start again."
)

_OUT_OF_TIME = (
    "This took longer than the {seconds:.0f} seconds that a measurement may take here. Use a "
    "shorter text or a quicker search."
)

_FULL = "{count} measurements are waiting, as many as this page keeps; please try again in a minute"


class Job(asyncio.Future[Any]):
    """A task on its way: its answer, or an error whose message says why there is none.

    Args:
        task: the name of one of `wordsens.app.tasks.TASKS`, and its arguments.
        visitor: whose it is.
        part: called with the parts of the answer; the first one says that the task has begun, and
            has nothing.
        brief: whether it goes before others.
    """

    def __init__(
        self,
        task: tuple[str, dict[str, Any]],
        visitor: str,
        part: Callable[[dict[str, Any]], None],
        *,
        brief: bool,
    ):
        super().__init__()
        self.task, self.visitor, self.part, self.brief = task, visitor, part, brief
        self.worker: Worker | None = None


class Pool:
    """The tasks of all visitors, on the workers."""

    def __init__(self, settings: AppSettings, workers: WorkerPool):
        self.settings, self._workers = settings, workers
        self._waiting: list[Job] = []
        self._running: list[Job] = []

    def prepare(self) -> "asyncio.Future[Any]":
        """Let every worker load the models. The future has an error where they cannot."""
        self._loop = asyncio.get_running_loop()
        return asyncio.gather(*(self.submit("ready", {}, "") for _ in range(self.settings.workers)))

    def submit(
        self,
        name: str,
        arguments: dict[str, Any],
        visitor: str,
        part: Callable[[dict[str, Any]], None] = lambda part: None,
        *,
        brief: bool = False,
    ) -> Job:
        """Ask for a task; cancel the job to end it.

        Raises:
            BudgetError: too many wait already.
        """
        if not brief and len(self._waiting) >= self.settings.max_waiting:
            raise BudgetError(_FULL.format(count=len(self._waiting)))
        job = Job((name, arguments), visitor, part, brief=brief)
        job.add_done_callback(self._stop)
        self._waiting.append(job)
        self._give_out()
        return job

    def place_of(self, job: Job) -> int:
        """Its place in the line; 0 once it runs."""
        return self._waiting.index(job) + 1 if job in self._waiting else 0

    def _give_out(self) -> None:
        """Give jobs to the free workers: brief ones, then those of visitors with the fewest running
        jobs, then in order."""
        while self._waiting and len(self._running) < self.settings.workers:
            visitors = [job.visitor for job in self._running]
            job = min(self._waiting, key=lambda job: (not job.brief, visitors.count(job.visitor)))
            self._waiting.remove(job)
            self._running.append(job)
            task = (self.settings.memory, self.settings.models, *job.task)
            future = self._workers.submit(do, *task, part=partial(self._soon, self._take, job))
            future.add_done_callback(partial(self._soon, self._end, job))

    def _soon(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call it in the page's thread; workers' messages come in others."""
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _take(self, job: Job, worker: Worker, part: dict[str, Any]) -> None:
        """Pass a part of the answer on; with the first the time of the job begins."""
        if job.worker is None:
            job.worker = worker
            self._loop.call_later(self.settings.max_seconds, self._time_out, job)
        if job.done():
            self._stop(job)
        else:
            job.part(part)

    def _time_out(self, job: Job) -> None:
        if not job.done():
            job.set_exception(WordsensError(_OUT_OF_TIME.format(seconds=self.settings.max_seconds)))

    def _stop(self, job: Job) -> None:
        """Stop a job that was cancelled or ran out of time: at its next report, or with its worker
        where that takes long."""
        if job in self._waiting:
            self._waiting.remove(job)
        if job in self._running and job.worker is not None:
            job.worker.stop()
            self._loop.call_later(_PATIENCE, self._end_late, job.worker, job)

    def _end_late(self, worker: Worker, job: Job) -> None:
        if job in self._running:
            worker.process.terminate()

    def _end(self, job: Job, answered: Any) -> None:
        """Take the answer of a worker, or its error."""
        self._running.remove(job)
        if not job.done():
            error = answered.exception()
            if isinstance(error, WorkerDiedError):
                error = WordsensError(_LOST)
            job.set_result(answered.result()) if error is None else job.set_exception(error)
        self._give_out()
