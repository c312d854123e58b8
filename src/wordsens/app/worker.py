"""A worker's side of the pipe: it takes tasks, and sends parts of the answer while it computes."""

import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, Protocol

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
"""Kinds of answers: the worker can begin; a part; all; the input is wrong; cancelled; two limits;
an error of ours; and the worker is gone."""

PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress."""

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
    """What a task sees of its worker: it calls `send` with parts of its answer and `tick` as often
    as it can."""

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
        """Raise StoppedError where the running task must end: whatever comes while a task runs says
        so."""
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
    """Do the tasks that come, (name, arguments) each, until the page's process is gone, which
    raises EOFError."""
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
