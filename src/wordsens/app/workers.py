"""The worker processes: tasks in fair order, answers part by part, limits, and lost workers replaced.

Not concurrent.futures: its workers send no parts, have no limits, and a task that runs there cannot be ended.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from wordsens.app.settings import AppSettings
from wordsens.errors import BudgetError, InputError, WordsensError

READY, PART, DONE, REFUSED, STOPPED, OUT_OF_TIME, OUT_OF_MEMORY, FAILED, LOST = (
    "ready", "part", "done", "refused", "stopped", "out of time", "out of memory", "failed", "lost",
)  # fmt: skip
"""Kinds of answers: the worker can begin; a part; all; the input is wrong; cancelled; two limits; an error of ours; and
the worker is gone."""

PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress."""

PATIENCE = 2.0
"""Seconds that a task has to stop by itself, before its worker is ended."""

GRACE = 1.0
"""Seconds that workers have to end at Ctrl-C, before they are killed."""

MOST_EARLY_LOSSES = 3
"""Times that each worker may end before it is ready, until the page gives up: something is wrong with all."""

_PROCESSES = multiprocessing.get_context("spawn")

Answer = tuple[str, Any]
"""One of the kinds above, and its value."""


class StoppedError(Exception):
    """The task is no longer wanted."""


class Channel(Protocol):
    """An end of a pipe."""

    def poll(self) -> bool: ...

    def recv(self) -> Any: ...

    def send(self, obj: Any) -> None: ...


class TaskContext:
    """What a task sees of its worker: it calls `send` with parts of its answer and `tick` as often as it can."""

    def __init__(self, connection: Channel):
        self._connection, self._reported = connection, 0.0

    def send(self, value: Any) -> None:
        """Send a part of the answer."""
        self.tick()
        self._connection.send((PART, value))

    def progress(self, done: int, total: int) -> None:
        """Report progress, at most every PROGRESS_SECONDS: the callback of a search."""
        self.tick()
        if time.monotonic() - self._reported >= PROGRESS_SECONDS:
            self._reported = time.monotonic()
            self.send({"share": done / max(total, 1)})

    def tick(self, *_: object) -> None:
        """Raise StoppedError where the running task must end: whatever comes while a task runs says so."""
        if self._connection.poll():
            self._connection.recv()
            raise StoppedError


class Parts(TaskContext):
    """A context without a worker: it keeps the parts, and never ends a task."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def send(self, value: Any) -> None:
        """Keep a part of the answer."""
        self.parts.append(value)

    def progress(self, done: int, total: int) -> None:
        """Keep the share that is done."""
        self.parts.append({"share": done / max(total, 1)})

    def tick(self, *_: object) -> None:
        """Go on."""


def serve_tasks(connection: Channel, tasks: Mapping[str, Any]) -> None:
    """Do the tasks that come, (name, arguments) each, until the page's process is gone, which raises EOFError."""
    context = TaskContext(connection)
    while True:
        if (task := connection.recv()) is not None:  # None: the task to stop had ended
            connection.send(_answer(context, tasks[task[0]], task[1]))


def _answer(context: TaskContext, task: Any, arguments: dict[str, Any]) -> Answer:
    """The last answer of a task."""
    try:
        return DONE, task(context, **arguments)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except StoppedError:
        return STOPPED, None
    except InputError as error:
        return REFUSED, str(error)
    except Exception as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return OUT_OF_MEMORY, None
        traceback.print_exc(file=sys.stderr)
        return FAILED, type(error).__name__


def _work(connection: Channel, memory: int, models: Sequence[str]) -> None:
    """The life of a worker: it loads the models, says that it is ready, or what is wrong with them, and serves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the page's process, which ends its workers
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with suppress(ImportError, ValueError, OSError):  # where the system cannot hold a process to that
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory << 20, memory << 20))
    from wordsens.app.tasks import TASKS, warm_up  # loads torch, which the page's own process never does

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            warm_up(models)
        except InputError as error:
            connection.send((REFUSED, str(error)))
            return
        connection.send((READY, None))
        serve_tasks(connection, TASKS)


class Job:
    """A task on its way: the name of one of `wordsens.app.tasks.TASKS`, its arguments, and whose it is; `brief` ones go
    first."""

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


class _Worker:
    """A process with its pipe, and its job; a thread of ours reads what it answers."""

    def __init__(self, pool: "Pool"):
        self.connection, theirs = _PROCESSES.Pipe()
        arguments = (theirs, pool.settings.memory, pool.settings.models)
        self.process = _PROCESSES.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False
        self.job: Job | None = None
        self._pool, self._loop = pool, asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Any) -> None:
        with suppress(OSError):  # gone: the reader notices
            self.connection.send(message)

    def _read(self) -> None:
        with suppress(EOFError, OSError, RuntimeError):
            while True:
                self._loop.call_soon_threadsafe(self._pool.receive, self, self.connection.recv())
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._pool.lose, self)


class Pool:
    """The workers of a server; `broken` is the reason that none can be had, None where all is well."""

    def __init__(self, settings: AppSettings):
        self.settings = settings
        self.broken: WordsensError | None = None
        self._workers: list[_Worker] = []
        self._waiting: list[Job] = []
        self._closed = False
        self._early_losses = 0

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
        for worker in self._workers:
            if worker.job is job:
                job.ending = job.ending or reason
                worker.send(None)
                if reason == OUT_OF_TIME or not job.brief:  # which is soon over
                    asyncio.get_running_loop().call_later(PATIENCE, self._end_late, worker, job)

    def _end_late(self, worker: _Worker, job: Job) -> None:
        if worker.job is job:
            worker.process.terminate()

    def receive(self, worker: _Worker, answer: Answer) -> None:
        """Pass an answer of a worker on."""
        kind, value = answer
        if kind == READY:
            worker.ready, self._early_losses = True, 0
        elif worker.job is None:  # its models
            self.broken = InputError(value)
        elif kind == PART:
            worker.job.take(kind, value)
        else:
            job, worker.job = worker.job, None
            job.take(job.ending if kind == STOPPED and job.ending else kind, value)
        self._give_out()

    def lose(self, worker: _Worker) -> None:
        """Tell the job of a worker that is gone, and start another in its place."""
        if self._closed or worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.connection.close()
        if worker.job is not None:
            worker.job.take(worker.job.ending or LOST)
        self._early_losses += not worker.ready
        if self._early_losses > MOST_EARLY_LOSSES * self.settings.workers and self.broken is None:
            self.broken = WordsensError("the workers end before they are ready; their errors stand above")
        if self.broken is None:
            self._workers.append(_Worker(self))
            self._give_out()

    def _give_out(self) -> None:
        """Give jobs to the free workers: brief ones, then those of visitors with the least running, then in order."""
        for worker in self._workers:
            if worker.ready and worker.job is None and self._waiting:
                running = [other.job.visitor for other in self._workers if other.job is not None]
                job = min(self._waiting, key=lambda job: (not job.brief, running.count(job.visitor)))
                self._waiting.remove(job)
                worker.job = job
                worker.send(job.task)
                seconds = self.settings.max_seconds
                asyncio.get_running_loop().call_later(seconds, self.cancel, job, OUT_OF_TIME)

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
