"""A worker's side of the pipe: it takes tasks, and sends parts of the answer while it computes."""

import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from wordsens.errors import InputError

READY, PART, DONE, REFUSED, STOPPED, OUT_OF_TIME, OUT_OF_MEMORY, FAILED, LOST = (
    "ready",
    "part",
    "done",
    "refused",
    "stopped",
    "out of time",
    "out of memory",
    "failed",
    "lost",
)
"""Kinds of answers: the worker can begin; a part; all; the input is wrong; cancelled; two limits; an error of ours; and
the worker is gone."""

PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress."""


@dataclass(frozen=True)
class Task:
    """A task for a worker.

    Attributes:
        number: its own.
        name: of a function of `wordsens.app.tasks.TASKS`.
        arguments: of the function.
        seconds: its limit.
    """

    number: int
    name: str
    arguments: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Cancel:
    """The task of that number is no longer wanted."""

    number: int


@dataclass(frozen=True)
class Answer:
    """An answer to the task of that number: one of the kinds above, and its value."""

    number: int
    kind: str
    value: Any = None

    @property
    def last(self) -> bool:
        """True where nothing follows."""
        return self.kind not in (READY, PART)


class CancelledError(Exception):
    """The visitor no longer wants the task."""


class OutOfTimeError(Exception):
    """The task took longer than its limit."""


@runtime_checkable
class Channel(Protocol):
    """An end of a pipe."""

    def poll(self) -> bool: ...

    def recv(self) -> Any: ...

    def send(self, obj: Any) -> None: ...


@dataclass
class _Running:
    """A running task, and when it must end."""

    number: int
    until: float


class TaskContext:
    """What a task sees of its worker: it calls `send` with parts of its answer and `tick` as often as it can.

    A task that comes while another runs is done in between: the page sends only brief ones then.
    """

    def __init__(self, connection: Channel, tasks: Mapping[str, Callable[..., Any]]):
        self._connection, self._tasks = connection, tasks
        self._running: list[_Running] = []
        self._cancelled: set[int] = set()
        self._reported = 0.0

    def send(self, value: Any) -> None:
        """Send a part of the answer."""
        self.tick()
        if self._running:
            self._connection.send(Answer(self._running[-1].number, PART, value))

    def progress(self, done: int, total: int) -> None:
        """Report progress, at most every PROGRESS_SECONDS: the callback of a search."""
        self.tick()
        if time.monotonic() - self._reported >= PROGRESS_SECONDS:
            self._reported = time.monotonic()
            self.send({"share": done / max(total, 1)})

    def tick(self, *_: object) -> None:
        """Look for messages. Raises CancelledError or OutOfTimeError where the running task must end."""
        while self._running and self._connection.poll():
            self._take(self._connection.recv())
        if not self._running:  # the worker warms up
            return
        running = self._running[-1]
        if running.number in self._cancelled:
            raise CancelledError
        if time.monotonic() > running.until:
            raise OutOfTimeError

    def serve(self) -> None:
        """Take messages until the page's process is gone, which raises EOFError."""
        while True:
            self._cancelled.clear()
            self._take(self._connection.recv())

    def _take(self, message: Task | Cancel) -> None:
        if isinstance(message, Cancel):
            self._cancelled.add(message.number)
            return
        began = time.monotonic()
        self._running.append(_Running(message.number, began + message.seconds))
        kind, value = self._run(message)
        self._running.pop()
        self._cancelled.discard(message.number)
        for outer in self._running:
            outer.until += time.monotonic() - began
        self._connection.send(Answer(message.number, kind, value))

    def _run(self, task: Task) -> tuple[str, Any]:
        """The kind and value of the last answer."""
        try:
            return DONE, self._tasks[task.name](self, **task.arguments)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except CancelledError:
            return STOPPED, None
        except OutOfTimeError:
            return OUT_OF_TIME, task.seconds
        except InputError as error:
            return REFUSED, str(error)
        except Exception as error:
            if isinstance(error, MemoryError) or "allocate memory" in str(error):
                return OUT_OF_MEMORY, None
            traceback.print_exc(file=sys.stderr)
            return FAILED, type(error).__name__
