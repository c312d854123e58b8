"""The table of exponents that `wordsens paper sensitivity` ends with."""

from collections.abc import Sequence
from pathlib import Path

from wordsens.cli.terminal import stdout, table
from wordsens.experiments.map_choice import map_title
from wordsens.experiments.summary import Series
from wordsens.experiments.wording import exponent_text, findings, text_title


def print_summary(series: Sequence[Series], folder: Path) -> None:
    """The exponents, what was found in words, and where everything lies."""
    console = stdout()
    made = table(
        ("map", "left"),
        ("text", "left"),
        ("d", "right"),
        ("n", "right"),
        ("draws", "right"),
        ("exponent", "right"),
        ("S at\nfirst n", "right"),
        ("S at\nlast n", "right"),
    )
    for one in series:
        first, last = one.points[0], one.points[-1]
        made.add_row(
            map_title(one.map),
            text_title(one.text),
            str(one.d),
            f"{first.n}-{last.n}",
            str(min(point.draws for point in one.points)),
            exponent_text(one.fit),
            f"{first.mean:.3f}",
            f"{last.mean:.3f}",
        )
    console.print("Word sensitivity against the number of words: S ~ n^exponent", style="bold")
    console.print(made)
    console.print()
    for sentence in findings(series):
        console.print(sentence)
    console.print()
    console.print(_search_note(series))
    console.print()
    console.print(f"records  {folder / 'sensitivity.parquet'}", soft_wrap=True)
    console.print(f"figures  {folder / 'figures'}", soft_wrap=True)


def _search_note(series: Sequence[Series]) -> str:
    sampled = sorted({map_title(one.map) for one in series if not one.all_words})
    whole = sorted({map_title(one.map) for one in series if one.all_words})
    notes = ["Every S is attained by a perturbation that was found: a lower bound of the sup."]
    if whole:
        notes.append(f"All words searched: {'; '.join(whole)}.")
    if sampled:
        notes.append(f"A random sample of each text's words searched: {'; '.join(sampled)}.")
    return " ".join(notes)
