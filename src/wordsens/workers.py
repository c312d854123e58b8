"""Worker processes of this machine, for sweeps, the guard and the page.

Not the processes of concurrent.futures: there a worker that dies takes the tasks of all others
with it, no task sends parts of its answer, and none can be stopped.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
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


class StoppedError(WordsensError):
    """A task was stopped."""


# Sends a part of the answer of the task that runs; outside a worker nobody listens.
_send_part: ContextVar[Callable[[Any], None]] = ContextVar("send_part", default=lambda part: None)


def report(part: Any = None) -> None:
    """Called in a task: send this part of its answer, if there is one.

    Raises:
        StoppedError: the task was stopped.
    """
    _send_part.get()(part)


class Worker:
    """A process that ends with this one and ignores Ctrl-C, which a terminal sends to both.

    Args:
        serve: function of the connection that is the process's life; where the other end is gone,
            what that raises ends it quietly.
    """

    def __init__(self, serve: Callable[[Connection], None]):
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(target=_live, args=(serve, theirs), daemon=True)
        with _interrupts_held():
            self.process.start()
        theirs.close()

    def send(self, message: Any) -> None:
        """Send a message; who reads the connection notices a worker that is gone."""
        with suppress(OSError):
            self.connection.send(message)

    def stop(self) -> None:
        """Stop the task that runs, at its next report."""
        self.send(None)

    def end(self) -> None:
        """Wait until the process has ended, and kill it where it takes long."""
        self.process.terminate()
        self.process.join(_GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(_GRACE)


def _live(serve: Callable[[Connection], None], connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        serve(connection)


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

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        part: Callable[[Worker, Any], None] = lambda worker, part: None,
    ) -> "Future[Any]":
        """The future result of a task. The function and its arguments can be pickled.

        Args:
            part: called in a thread with each part that the task reports, which is not of the type
                bytes, and the worker that can be stopped.
        """
        return self._threads.submit(self._answer, pickle.dumps((function, arguments)), part)

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        workers = list(self._workers)
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()
        self._threads.shutdown()

    def _answer(self, task: bytes, part: Callable[[Worker, Any], None]) -> Any:
        """In a thread, which has a worker of its own: what the task gives there."""
        worker = getattr(self._of_thread, "worker", None)
        if worker is None or not worker.process.is_alive():
            worker = self._start()
        self._of_thread.worker = None
        try:
            worker.send(task)
            while not isinstance(message := worker.connection.recv(), bytes):
                part(worker, message)
        except (EOFError, OSError):
            raise WorkerDiedError("its worker process died") from None
        self._of_thread.worker = worker
        value, error = pickle.loads(message)
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
    stopped = threading.Event()

    def read() -> None:
        with suppress(EOFError, OSError):
            while True:
                if (task := connection.recv()) is None:
                    stopped.set()
                else:
                    stopped.clear()
                    tasks.put(task)
        os._exit(0)  # in the midst of a task too

    def send_part(part: Any) -> None:
        if stopped.is_set():
            raise StoppedError("the task was stopped")
        if part is not None:
            connection.send(part)

    _send_part.set(send_part)
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
