"""The streams of the command line: results go to stdout, everything else to stderr."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table


class _QuietPipe(Console):
    """A console that lets the caller decide what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise


def stdout() -> Console:
    """The console for results: as wide as the terminal, or COLUMNS; 80 columns where there is neither."""
    return _QuietPipe(highlight=False)


def stderr() -> Console:
    """The console for progress and notices."""
    return _QuietPipe(stderr=True, highlight=False, soft_wrap=True)


def notice(message: str) -> None:
    """One line on stderr that is neither a result nor an error."""
    stderr().print(f"wordsens: {message}", markup=False)


MUCH, LITTLE = "black on #f6a368", "black on #9fd0ee"
"""Words that move a model much, and little; rich leaves them plain in a pipe and with NO_COLOR."""

_SHADES = ("", "black on #fdeee2", "black on #fbd9bd", "black on #f8bf92", MUCH)


def shade(value: float, values: Sequence[float]) -> str:
    """A style, the stronger the closer the value is to the largest of these; none where they are all alike.

    >>> shade(1.0, [1.0, 2.0, 3.0]), shade(3.0, [1.0, 2.0, 3.0]) == MUCH, shade(1.0, [1.0])
    ('', True, '')
    """
    low, high = min(values), max(values)
    if not high > low:
        return ""
    return _SHADES[min(len(_SHADES) - 1, int((value - low) / (high - low) * len(_SHADES)))]


def table(*columns: tuple[str, str]) -> Table:
    """An empty table with (heading, justification) columns, closer together on a narrow screen."""
    gap = 2 if stdout().width >= 100 else 1
    made = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for heading, side in columns:
        made.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    return made


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss.

    >>> duration(61.4)
    '0:01:01'
    """
    return str(timedelta(seconds=round(seconds)))


class Reporter:
    """Tells how far a long run is: a bar on a terminal, a plain line now and then elsewhere, nothing when quiet."""

    PLAIN_SECONDS = 15.0

    def __init__(self, total: int, what: str, *, bar: Progress | None, plain: bool):
        self._total, self._what, self._bar, self._plain = total, what, bar, plain
        self._begin = self._last = time.monotonic()
        self._task = None if bar is None else bar.add_task(what, total=total, count="", left="")

    def update(self, done: int | float, *, now: str, remaining: float | None = None) -> None:
        """`done` of the total are finished, `now` is what is worked on.

        The others will take `remaining` seconds; None: as long as the finished ones did.
        """
        elapsed = time.monotonic() - self._begin
        if remaining is None and done > 0:
            remaining = elapsed / done * (self._total - done)
        left = "" if remaining is None or done >= self._total else f"about {duration(remaining)} left"
        count = f"{done / self._total:.0%}" if self._total == 1 else f"{int(done)} of {self._total}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=f"{self._what} {now}", count=count, left=left)
        elif self._plain and (elapsed - (self._last - self._begin) > self.PLAIN_SECONDS or done == self._total > 1):
            self._last = time.monotonic()
            notice(f"{count} {self._what} after {duration(elapsed)}{', ' + left if left else ''}")


@contextmanager
def reporting(total: int, what: str, *, quiet: bool) -> Iterator[Reporter]:
    """A Reporter for `total` things called `what`."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield Reporter(total, what, bar=None, plain=not quiet)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield Reporter(total, what, bar=bar, plain=False)
