"""The answer and the tables of `wordsens compare`."""

from collections.abc import Sequence

from rich.text import Text

from wordsens.cli.terminal import LITTLE, MUCH, stdout, table
from wordsens.evaluation.compare.comparison import Comparison
from wordsens.evaluation.compare.difference import CHECK, NEIGHBOURS, RANK, REMOVAL, WORD, Difference
from wordsens.evaluation.compare.neighbours import ChangedNeighbour

_TITLES = {
    CHECK: "Flipped meanings: area under the curve of opposites against paraphrases",
    REMOVAL: "Kinds of words: how far a text moves without one, relative to its length",
    RANK: "Words' ranks among the words of their text (0 the least, 1 the most)",
    WORD: "Single words: how far a text moves without it",
    NEIGHBOURS: "Neighbours: between two calls of one model, and between the models",
}
_WORDS = 8
"""Rows of single words and ranks that are printed; --json has all."""

_TEXTS = 5
"""Texts with another first neighbour that are printed."""

_LETTERS = 90


def print_comparison(found: Comparison) -> None:
    """The answer, what failed, then the rows of every part and the texts whose neighbours changed."""
    console = stdout()
    first, *others = found.answer
    console.print(Text(first, style="bold"))
    for line in others:
        console.print(Text(line))
    for failure in found.failures:
        console.print(Text(f"FAILED: {failure}", style="bold red"))
    if found.passed and found.requirements:
        console.print("All requirements are met.", style="bold green")
    for part, title in _TITLES.items():
        rows = [row for row in found.rows if row.part == part and row.low is not None]
        if part in (RANK, WORD):
            rows = sorted(rows, key=lambda row: (not row.differs, -abs(row.difference)))
        _rows(found, title, rows, _WORDS if part in (RANK, WORD) else len(rows))
    _changed(found.changed)
    console.print()
    if found.apart is not None:
        console.print(f"The two vectors of a text, at length one, lie {found.apart:.2g} apart (mean).")
    for note in found.notes:
        console.print(Text(f"Note: {note}"))


def _rows(found: Comparison, title: str, rows: Sequence[Difference], most: int) -> None:
    if not rows:
        return
    console = stdout()
    console.print()
    console.print(title, style="bold")
    shown = table(("", "left"), ("first", "right"), ("second", "right"), ("difference", "right"), ("95 %", "right"),
                  ("", "right"))  # fmt: skip
    for row in rows[:most]:
        style = "" if not row.differs else MUCH if row.difference > 0 else LITTLE
        shown.add_row(
            Text(row.name, style=style), f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference:+.4f}",
            f"{row.low:+.4f} to {row.high:+.4f}", f"{row.count} {'pairs' if row.part == CHECK else 'texts'}",
        )  # fmt: skip
    console.print(shown)
    if len(rows) > most:
        console.print(f"and {len(rows) - most} more (--json)")


def _changed(changed: Sequence[ChangedNeighbour]) -> None:
    if not changed:
        return
    console = stdout()
    console.print()
    console.print("Texts with another first neighbour, the clearest first", style="bold")
    for one in changed[:_TEXTS]:
        console.print(Text(_cut(one.text)))
        console.print(Text(f"  was next to: {_cut(one.old_text)}"))
        console.print(Text(f"  is next to:  {_cut(one.new_text)}"))
        if one.words:
            told = ", ".join(f"'{word.word}' {word.first:+.3f} / {word.second:+.3f}" for word in one.words[:3])
            console.print(Text(f"  without these words the old one leads by more or less, first / second: {told}"))


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LETTERS else plain[:_LETTERS].rsplit(" ", 1)[0] + " ..."
