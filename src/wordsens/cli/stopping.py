"""Stopping a run: Ctrl-C at any moment, and SIGTERM, which ends it alike."""

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 10.0
"""Seconds after which an interrupt that somebody swallowed is raised again; cleaning up takes less."""


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Inside, Ctrl-C raises KeyboardInterrupt, again after a while where a library swallowed it; the event says that
    there was one, whatever became of the exception."""
    observed, ended = threading.Event(), threading.Event()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as for a job in the background
    if ignored or threading.current_thread() is not threading.main_thread():
        yield observed
        return

    def raise_again() -> None:
        while not ended.wait(_AGAIN):
            _thread.interrupt_main()

    def stop(number: int, frame: FrameType | None) -> None:
        if not observed.is_set():
            observed.set()
            threading.Thread(target=raise_again, daemon=True).start()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield observed
    finally:
        ended.set()
        signal.signal(signal.SIGINT, before)


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a batch system, or `kill`, wants the run to end."""


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Inside the block SIGTERM raises Terminated; a thread that is not the main one cannot be told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
