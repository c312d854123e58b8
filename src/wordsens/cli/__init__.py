"""The command line."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Seconds after which a signal that somebody swallowed is raised again; cleaning up takes less.
_AGAIN = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 a failure, 2 the input is wrong, 3 a
    requirement is not met, 130 interrupted, 143 terminated.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    with _signals() as received:
        try:
            from wordsens.cli.commands import main as run

            code = run(arguments)
        except BaseException:  # an interrupt, or what a library made of it while it was imported
            if not received:
                raise
            print("wordsens: interrupted", file=sys.stderr)
            code = 1
    if not received or code == 0:  # 0: what was asked for is there, as when the page ends
        return code
    code = 128 + received[0]
    if arguments is None:
        # Python would end by the signal, if the exception went through code that a C library ran.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Inside, Ctrl-C and SIGTERM (how a batch system ends a run) raise KeyboardInterrupt, again
    after a while where a library swallowed it; the list holds the signals that came, whatever
    became of the exception."""
    received, ended = list[int](), threading.Event()

    def raise_again(number: Any) -> None:
        while not ended.wait(_AGAIN):
            _thread.interrupt_main(number)

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            threading.Thread(target=raise_again, args=(number,), daemon=True).start()
        raise KeyboardInterrupt("" if number == signal.SIGINT else "terminated")

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for a job in the background
                before[number] = signal.signal(number, stop)
    try:
        yield received
    finally:
        ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)
