"""Worker processes of this machine, for sweeps, the guard and the page.

Not the processes of concurrent.futures: there a worker that dies takes the tasks of all others
with it, and none sends parts of an answer.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.resource_tracker import ensure_running
from queue import SimpleQueue
from typing import Any

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
        receive: called with the worker and each message that it sends, in a thread of ours. None
            where the messages are read from `connection`.
        lost: called there with the worker, once it is gone.

    Attributes:
        ready: whether `receive` has had a message.
    """

    def __init__(
        self,
        serve: Callable[..., None],
        *arguments: Any,
        receive: Callable[["Worker", Any], None] | None = None,
        lost: Callable[["Worker"], None] | None = None,
    ):
        self.ready = False
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(
            target=_live, args=(serve, theirs, *arguments), daemon=True
        )
        with _interrupts_held():
            self.process.start()
        theirs.close()
        if receive is not None:
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


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Workers that have one task at a time each. A task whose worker dies fails with
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
        self._environment = environment or {}
        self._threads, self._of_thread = ThreadPoolExecutor(count), threading.local()
        self._starting, self._workers, self._closed = threading.Lock(), list[Worker](), False

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """The future result of a task. The function and its arguments can be pickled."""
        return self._threads.submit(self._answer, pickle.dumps((function, arguments)))

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        workers = list(self._workers)
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()
        self._threads.shutdown()

    def _answer(self, task: bytes) -> Any:
        """In a thread, which has a worker of its own: what the task gives there."""
        worker = getattr(self._of_thread, "worker", None) or self._start()
        self._of_thread.worker = None
        try:
            worker.send(task)
            value, error = pickle.loads(worker.connection.recv())
        except (EOFError, OSError):
            raise WorkerDiedError("its worker process died") from None
        self._of_thread.worker = worker
        if error is not None:
            raise error
        return value

    def _start(self) -> Worker:
        with self._starting:
            before = dict(os.environ)
            os.environ.update(self._environment)
            try:
                worker = Worker(_serve)
            finally:
                os.environ.clear()
                os.environ.update(before)
            self._workers.append(worker)
        if self._closed:
            worker.end()
        try:
            worker.connection.recv()
        except (EOFError, OSError):
            raise WordsensError(
                "the worker processes end before they are ready; a script that uses workers calls "
                'this behind if __name__ == "__main__":'
            ) from None
        return worker


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
            if not isinstance(error, WordsensError):
                error = WordsensError(f"{type(error).__name__}: {error}")
            answer = pickle.dumps((None, error))
        connection.send(answer)
