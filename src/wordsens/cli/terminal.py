"""The terminal: what was typed there, and its streams. Results go to stdout, everything else to
stderr."""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from wordsens.display.terminal import CONTROLS, Screen

typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The words after `wordsens`; none where no command line runs."""

_ESCAPED = {code: f"\\u{code:04x}" for code in CONTROLS}


@contextmanager
def printing() -> Iterator[None]:
    """Inside, results are printed; a reader that has gone, as `head` does, ends the printing and
    not the command: a requirement that fails still ends it with its exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()


def abandon_stdout() -> None:
    """Let what Python still flushes at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdout() -> Console:
    """The console for results: as wide as the terminal, or COLUMNS; 80 columns where there is
    neither."""
    return Screen()


def stderr() -> Console:
    """The console for progress and notices: a notice is one line in a file, and wraps between words
    on a terminal."""
    return Screen(stderr=True, soft_wrap=sys.stderr is None or not sys.stderr.isatty())


def notice(message: str) -> None:
    """One line on stderr that is neither a result nor an error."""
    stderr().print(f"wordsens: {message}")


def print_json(document: Any) -> None:
    """One JSON document on stdout, in whatever encoding that has; a control character in a text is
    escaped."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    spelled = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    sys.stdout.write(f"{spelled.translate(_ESCAPED)}\n")


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss.

    >>> duration(61.4)
    '0:01:01'
    """
    return str(timedelta(seconds=round(seconds)))


class Reporter:
    """Tells how far a long run is: a bar on a terminal, a plain line now and then elsewhere,
    nothing when quiet."""

    PLAIN_SECONDS = 15.0

    RECENT_SECONDS, RECENT_SHARE = 30.0, 0.1
    """The rate is that of the last seconds, or of the last share of the time so far where that is
    longer: a slow start does not count for ever."""

    def __init__(self, total: int, what: str, *, bar: Progress | None, plain: bool):
        self._total, self._what, self._bar, self._plain = total, what, bar, plain
        self._begin = self._last = time.monotonic()
        self._recent = deque([(self._begin, 0.0)])
        self._task = None if bar is None else bar.add_task(what, total=total, count="", left="")

    def remaining(self, done: float) -> float | None:
        """The seconds that the rest will take at the recent rate, now that `done` are finished;
        None where nothing moved."""
        now = time.monotonic()
        self._recent.append((now, done))
        start = now - max(self.RECENT_SECONDS, self.RECENT_SHARE * (now - self._begin))
        while len(self._recent) > 2 and self._recent[1][0] <= start:
            self._recent.popleft()
        since, before = self._recent[0]
        return (now - since) / (done - before) * (self._total - done) if done > before else None

    def update(self, done: float, *, now: str) -> None:
        """`done` of the total are finished, `now` is what is worked on."""
        elapsed, remaining = time.monotonic() - self._begin, self.remaining(done)
        left = (
            "" if remaining is None or done >= self._total else f"about {duration(remaining)} left"
        )
        count = f"{done / self._total:.0%}" if self._total == 1 else f"{int(done)} of {self._total}"
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                completed=done,
                description=f"{self._what} {now}",
                count=count,
                left=left,
            )
        elif self._plain and (
            elapsed - (self._last - self._begin) > self.PLAIN_SECONDS or done == self._total > 1
        ):
            self._last = time.monotonic()
            notice(f"{count} {self._what} after {duration(elapsed)}{', ' + left if left else ''}")


@contextmanager
def reporting(total: int, what: str, *, quiet: bool) -> Iterator[Reporter]:
    """A Reporter for `total` things called `what`."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield Reporter(total, what, bar=None, plain=not quiet)
        return
    counted = TextColumn("{task.fields[count]} {task.fields[left]}")
    with Progress(
        TextColumn("{task.description}"), BarColumn(), counted, console=console, transient=True
    ) as bar:
        yield Reporter(total, what, bar=bar, plain=False)
