"""SIGTERM ends a run as Ctrl-C does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a batch system, or `kill`, wants the run to end."""


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Inside the block SIGTERM raises Terminated; a thread that is not the main one cannot be
    told."""
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
