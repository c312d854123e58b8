"""A view as lines of a terminal, or as plain text."""

import io
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from wordsens.display.view import (
    LEVELS,
    STRONGEST,
    Code,
    Finding,
    Marked,
    Table,
    View,
    Words,
    level,
)

# Unicode's control characters but tab and line feed: a terminal obeys them, in a text or a name as
# well.
CONTROLS = [*range(9), *range(11, 32), *range(127, 160)]

# Words that move a model much, and little; rich leaves them plain in a pipe and with NO_COLOR.
MUCH, LITTLE = "black on #f6a368", "black on #9fd0ee"

_RISES = ("", "black on #deebf7", "black on #c6dbef", LITTLE, "black on #6baed6")
_FALLS = ("", "black on #fdeee2", "black on #fbd9bd", "black on #f8bf92", MUCH)

_LEFT_OUT: dict[int, str | None] = dict.fromkeys(CONTROLS)
# A column of texts wraps, but not below this width.
_LEAST_TEXT = 24


def printable(text: str) -> str:
    """The text without control characters.

    >>> printable("\\x1b[31mred\\x07")
    '[31mred'
    """
    return text.translate(_LEFT_OUT)


class Screen(Console):
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


def plain_text(view: View, *, width: int = 100) -> str:
    """The view as lines of text, without colours."""
    file = io.StringIO()
    print_view(view, Screen(file=file, width=width, no_color=True, force_terminal=False))
    return file.getvalue().rstrip("\n")


def print_view(view: View, console: Console, *, verbose: bool = False) -> None:
    """Print the headline, what fails, the parts and the notes; folded tables with `verbose`."""
    if view.headline:
        console.print(Text(view.headline, style="bold"))
    for failure in view.failures:
        console.print(Text(f"FAILED: {failure}", style="bold red"))
    if view.passed:
        console.print(Text(view.passed, style="bold green"))
    for part in view.parts:
        _print_part(part, console, verbose=verbose)
    for note in view.notes:
        console.print(Text(f"Note: {note}"))


def _print_part(part: Any, console: Console, *, verbose: bool) -> None:
    if isinstance(part, str):
        console.print(Text(part))
    elif isinstance(part, Finding):
        console.print(Text(f"- {part.sentence}"))
        if part.known and verbose:
            console.print(Text(f"  {part.known}", style="dim"))
    elif isinstance(part, View):
        if part.parts:
            console.print()
            print_view(part, console, verbose=verbose)
    elif isinstance(part, Words):
        _print_words(part, console)
    elif isinstance(part, Code):
        console.print(Text(f"{part.title}\n{part.text}"))
    elif isinstance(part, Table) and len(part) and (verbose or not part.folded):
        _print_table(part, console, rows=len(part) if verbose and part.folded else part.most)


def _style(value: float | None, most: float) -> str:
    """The colour of a number, as on pages."""
    ramp = _FALLS if (value or 0) < 0 else _RISES
    return ramp[level(value or 0, most) * len(ramp) // LEVELS]


def _print_words(words: Words, console: Console) -> None:
    pieces = [
        piece
        if isinstance(piece, str)
        else (piece.text, _style(piece.value, words.most) + " bold" * piece.underlined)
        for piece in words.pieces
    ]
    console.print(Text.assemble(*([f"{words.title}: "] if words.title else []), *pieces))
    if words.legend and console.color_system is not None and not console.no_color:
        console.print(Text(f"Colours: 0 to {words.most:.3g} {words.legend}.", style="dim"))


def _print_table(table: Table, console: Console, *, rows: int) -> None:
    """Columns in their order as far as the screen has room for them; the others are named."""
    console.print()
    if table.title:
        console.print(Text(table.title, style="bold"))
    columns = {name: cells[:rows] for name, cells in table.texts().items()}
    gap = 2 if console.width >= 100 else 1
    grid = Grid(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    left = console.width - 1  # rich makes a full line one cell too wide
    widths = [max(map(cell_len, [table.heading(name), *columns[name]])) for name in columns]
    roomy = sum(widths) + gap * len(widths) <= left
    for name, cells in columns.items():
        number = name in table.numeric
        heading = table.heading(name) if roomy else _stacked(table.heading(name), cells)
        least = max(map(cell_len, [*cells, *heading.splitlines()]), default=0)
        left -= (least if number else min(least, _LEAST_TEXT)) + gap * bool(grid.columns)
        if left < 0 and grid.columns:
            break
        grid.add_column(
            Text(heading),
            justify="right" if number else "left",
            no_wrap=number,
            min_width=min(_LEAST_TEXT, max(map(cell_len, [*cells, ""]))),
            overflow="fold",
        )
    shown = list(columns)[: len(grid.columns)]
    for row in range(min(rows, len(table))):
        grid.add_row(*(_cell(table, name, columns[name][row], row) for name in shown))
    console.print(grid, crop=False)
    if rows < len(table):
        console.print(Text(f"{rows} of {len(table)} rows are shown."))
    if hidden := [table.heading(name) for name in columns if name not in shown]:
        console.print(Text(f"Not shown, for want of room: {', '.join(hidden)}."))
    if table.note:
        console.print(Text(table.note))


def _stacked(heading: str, cells: Sequence[str]) -> str:
    """The heading in lines that are no wider than the cells or its longest word."""
    width = max(map(cell_len, [*cells, *heading.split()]), default=1)
    return fill(heading, max(width, 1), break_long_words=False, break_on_hyphens=False)


def _cell(table: Table, name: str, text: str, row: int) -> Text:
    value = table.columns[name][row]
    if isinstance(value, Marked):
        pieces = [(piece, "bold underline" if marked else "") for piece, marked in value.pieces]
        return Text.assemble(*pieces)
    if name in table.coloured and isinstance(value, float):
        return Text(text, style=_style(value, STRONGEST))
    return Text(text)
