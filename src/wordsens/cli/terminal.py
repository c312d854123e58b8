"""The terminal: what was typed there, and its streams. Results go to stdout, everything else to
stderr."""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.progress import BarColumn, Progress, TextColumn
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from wordsens.cli.columns import columns_on_screen
from wordsens.display.content import (
    LEVELS,
    Display,
    Findings,
    Marked,
    Section,
    Shade,
    Strong,
    Table,
    Words,
    plain,
)

typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The words after `wordsens`; none where no command line runs."""

_CONTROLS = [*range(9), *range(11, 32), *range(127, 160)]
"""Unicode's control characters but tab and line feed: a terminal obeys them, in a text or a name as
well."""

_FINDINGS = 10
"""Lines: a screen has room for them and for the first table."""

_LEFT_OUT: dict[int, str | None] = dict.fromkeys(_CONTROLS)
_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROLS}


def printable(text: str) -> str:
    """The text without control characters.

    >>> printable("\\x1b[31mred\\x07")
    '[31mred'
    """
    return text.translate(_LEFT_OUT)


class _Screen(Console):
    """A console that shows what it is given: no markup, no emoji by name and no control characters
    of a text's own.

    It lets the caller decide what a closed pipe means.
    """

    def __init__(self, **options: Any):
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise


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
    return _Screen()


def stderr() -> Console:
    """The console for progress and notices: a notice is one line in a file, and wraps between words
    on a terminal."""
    return _Screen(stderr=True, soft_wrap=sys.stderr is None or not sys.stderr.isatty())


def notice(message: str) -> None:
    """One line on stderr that is neither a result nor an error."""
    stderr().print(f"wordsens: {message}")


def print_json(document: Any) -> None:
    """One JSON document on stdout, in whatever encoding that has; a control character in a text is
    escaped."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    spelled = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    sys.stdout.write(f"{spelled.translate(_ESCAPED)}\n")


MUCH, LITTLE = "black on #f6a368", "black on #9fd0ee"
"""Words that move a model much, and little; rich leaves them plain in a pipe and with NO_COLOR."""

_RISES = ("", "black on #deebf7", "black on #c6dbef", LITTLE, "black on #6baed6")
_FALLS = ("", "black on #fdeee2", "black on #fbd9bd", "black on #f8bf92", MUCH)


def _style(shade: Shade) -> str:
    """The style of a shade, in the colours of the pages."""
    ramp = _FALLS if shade.falls else _RISES
    return f"{ramp[shade.level * len(ramp) // LEVELS]}{' bold' * shade.decides}"


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


def print_display(display: Display, *, verbose: bool = False) -> None:
    """What a result says: its answer, failures, findings, tables and notes; folded tables with
    `verbose`."""
    console = stdout()
    for at, sentence in enumerate(display.answer):
        console.print(Text(sentence, style="bold" if at == 0 else ""))
    for one in display.failures:
        console.print(Text(f"FAILED: {one}", style="bold red"))
    if display.passed:
        console.print(Text(display.passed, style="bold green"))
    for part in display.parts:
        _print_part(part, verbose=verbose)
    for note in display.notes:
        console.print(Text(f"Note: {note}"))


def _print_part(part: Any, *, verbose: bool) -> None:
    console = stdout()
    if isinstance(part, str):
        console.print(Text(part))
    elif isinstance(part, Findings):
        for number, one in enumerate(part.findings[: None if verbose else _FINDINGS], start=1):
            console.print(Text(f"{number}. {one.sentence}"))
    elif isinstance(part, Section):
        if part.parts:
            console.print()
            console.print(Text(part.title, style="bold"))
            for one in part.parts:
                _print_part(one, verbose=verbose)
    elif isinstance(part, Words):
        pieces = [
            piece if isinstance(piece, str) else (piece.text, _style(piece))
            for piece in part.pieces
        ]
        console.print(Text.assemble(*([f"{part.title}: "] if part.title else []), *pieces))
        if part.legend is not None and console.color_system is not None and not console.no_color:
            console.print(
                Text(
                    f"Colours: from {part.legend[0]} to {part.legend[1]}, {part.legend[2]}.",
                    style="dim",
                )
            )
    elif isinstance(part, Table) and part.rows and (verbose or not part.folded):
        _print_table(part, whole=verbose and part.folded)


def _print_table(data: Table, *, whole: bool) -> None:
    """Lines break between words. What is wider than the screen goes on below, behind the columns
    that name a row."""
    console = stdout()
    console.print()
    if data.title:
        console.print(Text(data.title, style="bold"))
    rows = [list(map(_cell, row)) for row in (data.rows if whole else data.rows[: data.most])]
    columns = [
        [cell.plain for cell in column]
        for column in zip(map(Text, data.headings), *rows, strict=True)
    ]
    numbers, gap = (
        [data.is_number(place) for place in range(len(columns))],
        2 if console.width >= 100 else 1,
    )
    for number, part in enumerate(
        columns_on_screen(columns, numbers, screen=console.width, gap=gap)
    ):
        if number:
            console.print()
        drawn = Grid(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for place, width in part.items():
            side = "right" if numbers[place] else "left"
            drawn.add_column(data.headings[place], justify=side, width=width, overflow="fold")
        for row in rows:
            drawn.add_row(*(row[place] for place in part))
        console.print(drawn)
    if len(rows) < len(data.rows):
        console.print(Text(f"{len(rows)} of {len(data.rows)} are shown."))
    if data.note:
        console.print(Text(data.note))


def _cell(cell: Any) -> Text:
    if isinstance(cell, Marked):
        return Text.assemble(
            *((text, "bold underline" if marked else "") for text, marked in cell.pieces)
        )
    if isinstance(cell, Strong):
        return Text(cell.text, style={"rise": MUCH, "fall": LITTLE}.get(cell.how, "bold"))
    if isinstance(cell, Shade):
        return Text(cell.text, style=_style(cell))
    return Text(plain(cell))
