"""A worker process: it takes tasks from its pipe, and answers while it works."""

import contextlib
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from wordsens.app.work.messages import (
    DONE,
    FAILED,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    READY,
    REFUSED,
    STOPPED,
    TOLD,
    Answer,
    Cancel,
    Task,
)
from wordsens.errors import InputError

TABLE = "wordsens.app.tasks.table"
"""The module with TASKS and `warm_up`; the page's process never loads it."""

EVERY = 0.1
"""Seconds between two shares that are told."""


class CancelledError(Exception):
    """The visitor wants the task no more."""


class OutOfTimeError(Exception):
    """The task took longer than it may."""


@runtime_checkable
class Channel(Protocol):
    """An end of a pipe."""

    def poll(self) -> bool: ...

    def recv(self) -> Any: ...

    def send(self, obj: Any) -> None: ...


@dataclass
class _Running:
    """A task that runs, and when it must end."""

    number: int
    until: float


class Desk:
    """A worker's place between its pipe and the task that it runs; a task calls `tell` with parts of its answer and
    `tick` as often as it can.

    A task that comes while another runs is done in between: the page sends only brief ones then.
    """

    def __init__(self, connection: Channel, table: dict[str, Callable[..., Any]]):
        self._connection, self._table = connection, table
        self._running: list[_Running] = []
        self._cancelled: set[int] = set()
        self._shared = 0.0

    def tell(self, value: Any) -> None:
        """Send a part of the answer."""
        self.tick()
        if self._running:
            self._connection.send(Answer(self._running[-1].number, TOLD, value))

    def share(self, done: int, total: int) -> None:
        """Tell which share is done, now and then: what a search's `progress` is given."""
        self.tick()
        if time.monotonic() - self._shared >= EVERY:
            self._shared = time.monotonic()
            self.tell({"share": done / max(total, 1)})

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
        try:
            answer = DONE, self._table[message.name](self, **message.arguments)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except CancelledError:
            answer = STOPPED, None
        except OutOfTimeError:
            answer = OUT_OF_TIME, message.seconds
        except InputError as error:
            answer = REFUSED, str(error)
        except Exception as error:
            answer = (OUT_OF_MEMORY, None) if _is_of_memory(error) else (FAILED, type(error).__name__)
            if answer[0] == FAILED:
                traceback.print_exc(file=sys.stderr)
        self._running.pop()
        self._cancelled.discard(message.number)
        for outer in self._running:
            outer.until += time.monotonic() - began
        self._connection.send(Answer(message.number, *answer))


def _is_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "allocate memory" in str(error)


def work(connection: Channel, memory_mb: int, models: Sequence[str]) -> None:
    """The life of a worker: it loads the models, says that it is ready, or what is wrong with them, and serves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the page's, which ends its workers
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _limit_memory(memory_mb)
    table = importlib.import_module(TABLE)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        desk = Desk(connection, table.TASKS)
        try:
            table.warm_up(desk, models)
        except InputError as error:
            connection.send(Answer(0, REFUSED, str(error)))
            return
        connection.send(Answer(0, READY))
        desk.serve()


def _limit_memory(memory_mb: int) -> None:
    """Limits the process's memory: asking for more raises MemoryError, where the system can hold a process to that."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, memory_mb << 20))
    except (ImportError, ValueError, OSError):
        return
