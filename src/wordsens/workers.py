"""Worker processes of this machine, for sweeps, the guard and the page.

Not concurrent.futures: there a worker that dies takes the tasks of all others with it, and none
sends parts of an answer.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.resource_tracker import ensure_running
from queue import SimpleQueue
from typing import Any, Self

from wordsens.errors import WordsensError

_PROCESSES = multiprocessing.get_context("spawn")

# Seconds that a worker has to end, before it is killed.
_GRACE = 1.0


class WorkerDiedError(WordsensError):
    """A worker process ended before its task was done."""


class Worker:
    """A process that ends with this one and ignores Ctrl-C, which a terminal sends to both.

    Args:
        serve: function of (connection, *arguments) that is the process's life; where the other end
            of the connection is gone, what that raises ends it quietly.
        arguments: of `serve`.
        receive: called with the worker and each message that it sends, in a thread of ours.
        lost: called there with the worker, once it is gone.

    Attributes:
        ready: whether it has sent a message.
    """

    def __init__(
        self,
        serve: Callable[..., None],
        *arguments: Any,
        receive: Callable[["Worker", Any], None],
        lost: Callable[["Worker"], None],
    ):
        self.ready = False
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(
            target=_live, args=(serve, theirs, *arguments), daemon=True
        )
        with _interrupts_held():
            self.process.start()
        theirs.close()
        threading.Thread(target=self._read, args=(receive, lost), daemon=True).start()

    def send(self, message: Any) -> None:
        """Send a message; a worker that is gone has been noticed by the reader."""
        with suppress(OSError):
            self.connection.send(message)

    def end(self, seconds: float = _GRACE) -> None:
        """Wait until the process has ended, and kill it where it takes longer than this."""
        self.process.terminate()
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(_GRACE)

    def _read(self, receive: Callable[..., None], lost: Callable[..., None]) -> None:
        with suppress(EOFError, OSError):
            while True:
                message = self.connection.recv()
                self.ready = True
                receive(self, message)
        lost(self)


def _live(serve: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        serve(connection, *arguments)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: it may come before a new worker can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    ensure_running()  # else it starts with the first worker, and lets Ctrl-C through to it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerPool:
    """So many workers, each with one task at a time. A task whose worker dies fails with
    WorkerDiedError, and another worker takes its place.

    Args:
        count: how many; they start when there is work for them.
        environment: variables of the workers.

    >>> with WorkerPool(2) as pool:
    ...     futures = [pool.submit(pow, 2, power) for power in (3, 4)]
    ...     [future.result() for future in futures]
    [8, 16]
    """

    def __init__(self, count: int, environment: Mapping[str, str] | None = None):
        self.count, self._environment = count, environment or {}
        self._running: dict[Worker, Future[Any] | None] = {}
        self._waiting: deque[tuple[Future[Any], bytes]] = deque()
        self._lock = threading.Lock()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """The future result of a task. The function and its arguments can be pickled."""
        future: Future[Any] = Future()
        task = pickle.dumps((function, arguments))
        with self._lock:
            self._waiting.append((future, task))
            self._give_out()
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.clear()
            workers, self._running = list(self._running), {}
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()

    def _give_out(self) -> None:
        while self._waiting:
            free = (worker for worker, future in self._running.items() if future is None)
            worker = next(free, None)
            if worker is None and len(self._running) == self.count:
                return
            worker = worker or self._start()
            future, task = self._waiting.popleft()
            self._running[worker] = future
            worker.send(task)

    def _start(self) -> Worker:
        before = dict(os.environ)
        os.environ.update(self._environment)
        try:
            return Worker(_serve, receive=self._receive, lost=self._lose)
        finally:
            os.environ.clear()
            os.environ.update(before)

    def _receive(self, worker: Worker, answer: Any) -> None:
        with self._lock:
            if answer is None or worker not in self._running:
                return
            future, self._running[worker] = self._running[worker], None
            self._give_out()
        assert future is not None, "an answer is that of a task"
        value, error = pickle.loads(answer)
        future.set_result(value) if error is None else future.set_exception(error)

    def _lose(self, worker: Worker) -> None:
        error: WordsensError = WorkerDiedError("its worker process died")
        if not worker.ready:
            error = WordsensError(
                "the worker processes end before they are ready; a script that uses workers calls "
                'this behind if __name__ == "__main__":'
            )
        with self._lock:
            future = self._running.pop(worker, None)
            self._give_out()
        if future is not None:
            future.set_exception(error)


def _serve(connection: Connection) -> None:
    """Say that the worker is ready, then answer each task with its value and error, pickled."""
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, OSError):
            while True:
                tasks.put(connection.recv())
        os._exit(0)  # in the midst of a task too

    threading.Thread(target=read, daemon=True).start()
    connection.send(None)
    while True:
        try:
            function, arguments = pickle.loads(tasks.get())
            answer = pickle.dumps((function(*arguments), None))
        except BaseException as error:
            known = isinstance(error, WordsensError)
            known_error = error if known else WordsensError(f"{type(error).__name__}: {error}")
            answer = pickle.dumps((None, known_error))
        connection.send(answer)
