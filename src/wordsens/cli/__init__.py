"""The command line."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_AGAIN = 10.0
"""Seconds after which an interrupt that somebody swallowed is raised again; cleaning up takes
less."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 a failure, 2 the input is wrong, 3 a
    requirement is not met, 130 interrupted, 143 terminated.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    with _interrupts() as interrupted:
        try:
            from wordsens.cli.app import main as run

            code = run(arguments)
        except BaseException:  # an interrupt, or what a library made of it while it was imported
            if not interrupted.is_set():
                raise
            print("wordsens: interrupted", file=sys.stderr)
            code = 130
    if not interrupted.is_set() or code in (
        0,
        143,
    ):  # 0: what was asked for is there, as when the page ends
        return code
    if arguments is None:
        # Python would end by the signal, if the exception went through code that a C library ran.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
    return 130


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Inside, Ctrl-C raises KeyboardInterrupt, again after a while where a library swallowed it;
    the event says that there was one, whatever became of the exception."""
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
