"""Each text with its words in colour, and what was measured of each."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordsens.display.numbers import number
from wordsens.display.view import STRONGEST, Table, View, Word, Words
from wordsens.errors import InputError
from wordsens.evaluation.audit.cell import audited as audited_text
from wordsens.maps.registry import base_name, map_entry, map_title
from wordsens.report.load import Run

TEXTS, WORDS = 6, 2_000
"""How many texts, and words of all texts together, are shown."""


@dataclass(frozen=True)
class ShownText:
    """A text under one map.

    Attributes:
        words: the text in colour.
        rows: what is known of each measured word, by heading.
        absolute: whether words were moved as vectors, so that the scale of S is theirs; else they
            were deleted.
    """

    words: Words
    rows: tuple[dict[str, Any], ...]
    absolute: bool

    @property
    def most(self) -> float:
        """The largest number of a word."""
        return max(row["S"] if self.absolute else row["deleted"] for row in self.rows)


def text_sections(runs: Sequence[Run]) -> list[View]:
    """The texts of every run whose records hold words: given ones first, the most sensitive of them
    always; a text under all its maps, attention first.

    A text of which few words were searched is left out where another was searched whole.
    """
    known = [
        (run, record)
        for run in runs
        for part in run.parts
        for record in part.done
        if record.columns.get("per_word")
        or (record.experiment == "audit" and record.columns.get("removal"))
    ]
    known = [pair for pair in known if _whole(pair[1])] or known
    known = [
        pair for pair in known if pair[1].columns.get("source") or pair[1].columns.get("content")
    ] or known
    known.sort(key=lambda pair: _order(pair[1]))
    texts: dict[tuple[Any, ...], list[ShownText]] = {}
    for run, record in known:
        text = shown_text(record, f"{run.name}: " * (len(runs) > 1))
        if text.rows:
            key = record.columns.get("text"), run.name, record.source or record.cell
            texts.setdefault(key, []).append(text)
    # On one scale; that of deletions is another.
    texts = {
        key: group for key, group in texts.items() if any(text.absolute for text in group)
    } or texts
    return [_section(texts)] if texts else []


def _whole(record: Any) -> bool:
    return record.experiment != "audit" and record.columns.get("words") == record.columns.get("n")


def _order(record: Any) -> tuple[Any, ...]:
    """Given texts before those of experiments, real before made-up ones; some fifty words; in the
    order of their names (text 2 before text 10), under all maps, attention first."""
    try:
        family = map_entry(base_name(record.map)).family
    except InputError:
        family = ""
    kind, n = record.columns.get("text", "given"), record.columns.get("n") or 50
    length = 0.0 if kind == "given" else abs(math.log(n / 50))
    source = [
        int(part) if part.isdigit() else part
        for part in re.split(r"(\d+)", record.columns.get("source") or "")
    ]
    return (
        kind != "given",
        kind != "reviews",
        length,
        source,
        family != "attention",
        record.columns.get("map") != "raf",
    )


def _section(texts: dict[tuple[Any, ...], list[ShownText]]) -> View:
    """The first texts, the most sensitive of the first kind at the top, on one scale of colours."""
    first = next(iter(texts))[0]
    most = max(
        (key for key in texts if key[0] == first),
        key=lambda key: max(text.most for text in texts[key]),
    )
    listed = [most, *(key for key in texts if key != most)][:TEXTS]
    top = max(text.most for group in texts.values() for text in group)
    parts: list[Any] = []
    left = WORDS
    for text in (text for key in listed for text in texts[key]):
        if left > 0:
            left -= len(text.rows)
            scale = STRONGEST if text.absolute else top or 1.0
            legend = "S, times the output's size, a lower bound"
            if not text.absolute:
                legend = "of the output's size, when the word is deleted"
            parts += [
                replace(text.words, most=scale, legend="" if parts else legend),
                _table(text),
            ]
    note = f"{len(listed)} of {len(texts):,} texts. " if len(texts) > len(listed) else ""
    note += "The most sensitive text is the first. " if len(texts) > 1 else ""
    return View("Texts", tuple(parts), notes=(f"{note}Point at a word for its numbers.",))


def _table(text: ShownText) -> Table:
    """One row per word, the most sensitive first."""
    ranked = "S" if text.absolute else "deleted"
    rows = sorted(text.rows, key=lambda row: -row[ranked])
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    known = {
        name: cells
        for name, cells in columns.items()
        if any(cell not in (None, "") for cell in cells)
    }
    coloured = ("S",) if text.absolute else ()
    return Table("Every word", known, most=len(rows), folded=True, coloured=coloured)


def shown_text(record: Any, run: str = "") -> ShownText:
    """The text of a record of an audit, or of a measurement of sensitivity, with its words in
    colour; `run` stands before its title."""
    if record.experiment == "audit":
        name, (pieces, rows), note = record.model, *_audited(record)
    else:
        name, (pieces, rows), note = map_title(record.map), *_measured(record)
    source = record.columns.get("source")
    title = f"{run}{name}: {source}" if source else f"{run}{name}"
    words = Words(title, tuple(piece for piece in pieces if piece), note=note)
    return ShownText(words, tuple(rows), any(row["S"] is not None for row in rows))


Pieces = tuple[list[Word | str], list[dict[str, Any]]]


def _row(word: str, sensitivity: float | None, **facts: Any) -> tuple[Word, dict[str, Any]]:
    """A word with its number and its facts: what a reader sees on hover, and a row of the table."""
    names = {"upper": "at most", "removal": "deleted", "swap": "best real word"}
    names["moved"] = "its strongest change moves"
    row = {"word": word, "S": sensitivity}
    row |= {heading: facts.get(name) for name, heading in names.items()}
    numbers = [
        f"{name} {number(row[name])}"
        for name in ("S", "at most", "deleted")
        if row[name] is not None
    ]
    swap = [f"best real word {row['best real word']}"] if row["best real word"] else []
    value = row["deleted"] if sensitivity is None else sensitivity
    return Word(word, value, ", ".join(numbers + swap)), row


def _swap(word: str, change: float) -> str:
    return f"{word} {number(change)}"


def _audited(record: Any) -> tuple[Pieces, str]:
    """The measured words; what was not measured between them is an ellipsis: an audit's record has
    no other words."""
    audited = audited_text(record)
    pieces: list[Word | str] = []
    rows = []
    before = -1  # a text begins where it begins, without a blank
    for word in audited.measured:
        place = round(word.place * (audited.words - 1))
        pieces.append(" " if place == before + 1 else " … " if pieces else "… ")
        attained = None if math.isnan(word.sensitivity) else word.sensitivity
        swap = None if math.isnan(word.swap) else _swap(word.swapped_for, word.swap)
        piece, row = _row(word.word, attained, removal=word.removal, swap=swap)
        pieces.append(piece)
        rows.append(row)
        before = place
    if before < audited.words - 1:
        pieces.append(" …")
    skipped = audited.words - len(audited.measured)
    note = f"{skipped:,} of its words were not measured (…)." if skipped > 0 else ""
    if audited.words_lost:
        note += f" {audited.words_lost:,} words after these were cut off unread."
    return (pieces, rows), note.strip()


def _measured(record: Any) -> tuple[Pieces, str]:
    """The words of a sensitivity record: of the text itself where the record has it, else its words
    or tokens."""
    places = {
        row: place for place, row in enumerate(record.searched or range(len(record.per_word)))
    }
    tokens = json.loads(record.tokens) if record.tokens else [f"#{row}" for row in range(record.n)]
    swapped_for = json.loads(record.swapped_for) if record.swapped_for else ()
    moved = json.loads(record.moved) if record.moved else ()
    pieces: list[Word | str] = []
    known = []
    for piece in _pieces(record, tokens):
        text, rows = (piece, ()) if isinstance(piece, str) else piece
        searched = [places[row] for row in rows if row in places]
        if not searched:
            pieces.append(text)
            continue
        # The row that moves the output most speaks for its word.
        place = max(searched, key=lambda place: record.per_word[place])
        upper = record.upper_per_word and max(record.upper_per_word[place] for place in searched)
        swap = _swap(swapped_for[place], record.swap[place]) if record.swap else None
        moves = "; ".join(_moves(tokens, *row) for row in moved[place][:3]) if moved else ""
        word, row = _row(text, record.per_word[place], upper=upper, swap=swap, moved=moves)
        pieces.append(word)
        known.append(row)
    skipped = record.n - len(places)
    note = (
        f"{skipped:,} of its {record.n:,} rows: not searched, without a colour." if skipped else ""
    )
    return (pieces, known), note


def _pieces(record: Any, tokens: Sequence[str]) -> Iterator[str | tuple[str, Sequence[int]]]:
    """The text as it was written, its words as (word, rows); else its words with blanks between; or
    its tokens, with none before one that continues a word."""
    if record.whole_words is None:
        for row, token in enumerate(tokens):
            yield " " if row and not token.startswith("##") else ""
            yield token.removeprefix("##").lstrip("Ġ▁") or token, (row,)
    elif not record.content:
        for text, rows in json.loads(record.whole_words):
            yield text, rows
            yield " "
        yield "…"
    else:
        end = 0
        for text, rows in json.loads(record.whole_words):
            if (start := record.content.find(text, end)) >= 0:
                yield record.content[end:start]
                yield text, rows
                end = start + len(text)
        rest = record.content[end:]
        yield " …" if any(map(str.isalnum, rest)) else rest


def _moves(
    tokens: Sequence[str], row: float, change: float, before: float | None, after: float | None
) -> str:
    """A row of the features that a witness moves: its token, its change, its attention to the word
    before and after."""
    attention = (
        ""
        if before is None or after is None
        else f" (attention {number(before)} → {number(after)})"
    )
    return f"{tokens[int(row)]} {number(change)}{attention}"
