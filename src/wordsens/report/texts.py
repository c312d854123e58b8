"""The texts of a report with their words in colour, and what was measured of each word."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from wordsens.display.numbers import number
from wordsens.display.view import ColouredWord, Table, View, Words
from wordsens.errors import InputError
from wordsens.maps.registry import base_name, map_entry, map_title
from wordsens.report.load import Run

TEXTS = 6
"""How many texts are shown, each under all its maps."""

Row = dict[str, Any]
"""What is known of a word, by heading; None where it was not measured."""


def text_sections(runs: Sequence[Run]) -> list[View]:
    """The texts of every run whose records hold words: given ones first, the most sensitive of them
    always; a text under all its maps, attention first. One section, or none.

    Where some texts were searched whole, texts of which few words were searched are left out.
    """
    known = [
        (run, record)
        for run in runs
        for part in run.parts
        for record in part.done
        if record.get("per_word")
    ]
    known = [pair for pair in known if pair[1].get("words") == pair[1].get("n")] or known
    known.sort(key=lambda pair: _order(pair[1]))
    texts = [list(group) for _, group in groupby(known, key=lambda pair: _text_of(*pair))]
    if not texts:
        return []
    kind = texts[0][0][1].get("text")
    first = [group for group in texts if group[0][1].get("text") == kind]
    top = max(first, key=lambda group: max(record["value"] for _, record in group))
    listed = [top, *(group for group in texts if group is not top)][:TEXTS]
    parts: list[Any] = []
    for run, record in (pair for group in listed for pair in group):
        name = f"{run.name}: " * (len(runs) > 1)
        parts += _shown(record, name, legend=not parts)
    note = f"{len(listed)} of {len(texts):,} texts. " * (len(texts) > len(listed))
    note += "The most sensitive text is the first." * (len(texts) > 1)
    return [View("Words in colour", (note, *parts) if note else tuple(parts))]


def _text_of(run: Run, record: Any) -> tuple[Any, ...]:
    return record.get("text"), run.name, record.get("source") or record["cell"]


def _order(record: Any) -> tuple[Any, ...]:
    """What texts are sorted by: those of the user come first, then reviews; text 2 comes before
    text 10, and attention before the other maps."""
    try:
        family = map_entry(base_name(record["map"])).family
    except InputError:
        family = ""
    kind, source = record.get("text", "given"), record.get("source") or ""
    natural = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", source)]
    return (
        kind != "given",
        kind != "reviews",
        natural,
        family != "attention",
        record["map"] != "raf",
    )


def _shown(record: Any, name: str, *, legend: bool) -> tuple[Words, Table]:
    """The words in colour, and one row per word, the most sensitive first."""
    title, source = f"{name}{map_title(record['map'])}", record.get("source")
    pieces = list(_measured(record))
    rows = sorted((row for row in pieces if isinstance(row, dict)), key=lambda row: -row["S"])
    left = record["n"] - len(_places(record))
    skipped = f"{left:,} of {record['n']:,} words were not measured: without a colour." * bool(left)
    words = Words(
        f"{title}: {source}" if source else title,
        tuple(_word(piece) if isinstance(piece, dict) else piece for piece in pieces),
        legend=_LEGEND * legend,
        note=f"{skipped} {_HINT * legend}".strip(),
    )
    columns = {heading: [row[heading] for row in rows] for heading in rows[0]}
    measured = {
        heading: cells
        for heading, cells in columns.items()
        if any(cell is not None for cell in cells)
    }
    table = Table(f"Every word: {title}", measured, most=len(rows), folded=True, coloured=("S",))
    return words, table


_HINT = "Point at a word for its numbers."
_LEGEND = "or more times the output's size (S, a lower bound); one scale for all texts"


def _word(row: Row) -> ColouredWord:
    known = [name for name in ("S", "at most", "best real word") if row[name] is not None]
    about = ", ".join(
        f"{name} {row[name] if isinstance(row[name], str) else number(row[name])}" for name in known
    )
    return ColouredWord(row["word"], row["S"], about)


def _places(record: Any) -> dict[int, int]:
    """By row of the text, its place among the searched ones."""
    return {
        row: place for place, row in enumerate(record["searched"] or range(len(record["per_word"])))
    }


def _measured(record: Any) -> Iterator[str | Row]:
    """The words of a sensitivity record; of a word of several rows the row that moves the output
    most speaks."""
    places = _places(record)
    names = json.loads(record["swapped_for"]) if record["swapped_for"] else ()
    for piece in _pieces(record):
        text, rows = (piece, ()) if isinstance(piece, str) else piece
        searched = [places[row] for row in rows if row in places]
        if not searched:
            yield text
            continue
        place = max(searched, key=lambda place: record["per_word"][place])
        upper = record["upper_per_word"]
        yield {
            "word": text,
            "S": record["per_word"][place],
            "at most": max(upper[place] for place in searched) if upper else None,
            "best real word": f"{names[place]} {number(record['swap'][place])}" if names else None,
        }


def _pieces(record: Any) -> Iterator[str | tuple[str, Sequence[int]]]:
    """The text as it was written, its words as (word, rows); else its words with blanks between; or
    its tokens, with none before one that continues a word."""
    if record["whole_words"] is None:
        tokens = json.loads(record["tokens"] or "null") or [f"#{row}" for row in range(record["n"])]
        for row, token in enumerate(tokens):
            yield " " if row and not token.startswith("##") else ""
            yield token.removeprefix("##").lstrip("Ġ▁") or token, (row,)
        return
    end = 0
    for text, rows in json.loads(record["whole_words"]):
        start = record["content"].find(text, end) if record["content"] else -1
        if start >= 0:
            yield record["content"][end:start]
            end = start + len(text)
        yield text, rows
        yield " " * (not record["content"])
    rest = (record["content"] or "…")[end:]
    yield " …" if any(map(str.isalnum, rest)) else rest
