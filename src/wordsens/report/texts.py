"""Each text with its words in colour, and what was measured of each."""

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordsens.display.content import (
    STRONGEST,
    Bar,
    Section,
    Shade,
    Table,
    Words,
    colour_share,
    level,
    times,
)
from wordsens.errors import InputError
from wordsens.evaluation.audit.cell import audited as audited_text
from wordsens.maps.registry import base_name, map_entry, map_title
from wordsens.report.load import Run

TEXTS, WORDS = 6, 2_000
"""So many texts, and words of all texts together, are shown."""


@dataclass(frozen=True)
class ShownWord:
    """One word, with all that is known of it.

    Attributes:
        text: as it is written.
        attained: how far it can move the output, at least; None of a black box.
        upper: at most, where the map has a bound.
        removal: how far the output moves without it.
        swap: by the best real word in its place, and that word.
        moved: what its witness does, in words: the most moved rows.
    """

    text: str
    attained: float | None
    upper: float | None = None
    removal: float | None = None
    swap: tuple[float, str] | None = None
    moved: str = ""

    @property
    def value(self) -> float:
        """The number of its shade: what it attains, or of a black box its removal."""
        return (self.removal or 0.0) if self.attained is None else self.attained


@dataclass(frozen=True)
class ShownText:
    """A text under one map: its title, where it came from, in reading order its words that were
    measured and what stands between them, and what is not shown."""

    title: str
    source: str
    pieces: tuple[ShownWord | str, ...]
    note: str = ""

    @property
    def words(self) -> list[ShownWord]:
        """Those that were measured."""
        return [piece for piece in self.pieces if isinstance(piece, ShownWord)]

    @property
    def absolute(self) -> bool:
        """True where its words were moved as vectors, so that the scale of S is theirs; else they
        were taken out."""
        return any(word.attained is not None for word in self.words)

    def share(self, value: float, top: float) -> float:
        """How strong the colour of a value is: on the scale of S, or from 0 to the largest removal
        on the page."""
        return colour_share(value) if self.absolute else min(1.0, value / (top or 1.0))


def text_sections(runs: Sequence[Run]) -> list[Section]:
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
        text = _audited(record) if record.experiment == "audit" else _measured(record)
        if text.words:
            text = replace(text, title=f"{run.name}: {text.title}") if len(runs) > 1 else text
            kind = record.columns.get("text")
            texts.setdefault((kind, run.name, text.source or record.cell), []).append(text)
    # On one scale; a removal's is another.
    texts = {
        key: group for key, group in texts.items() if any(text.absolute for text in group)
    } or texts
    if not texts:
        return []
    first = next(iter(texts))[0]
    most = max(
        (key for key in texts if key[0] == first),
        key=lambda key: max(map(_most_sensitive, texts[key])),
    )
    listed = list(texts)[:TEXTS]
    if most not in listed:
        listed[-1] = most
    top = max(map(_most_sensitive, (text for group in texts.values() for text in group)))
    parts: list[Any] = []
    left = WORDS
    for text in (
        text for key in sorted(listed, key=lambda key: key != most) for text in texts[key]
    ):
        if left > 0:
            text = _cut(text, left)
            left -= len(text.words)
            parts += [_words(text, top, legend=not parts), _table(text, top)]
    note = f"{len(listed)} of {len(texts):,} texts. " if len(texts) > len(listed) else ""
    note += "The most sensitive text first. " if len(texts) > 1 else ""
    note += "One scale of colours for all: white is 0. Point at a word for its numbers."
    return [Section("Texts", tuple(parts), note)]


def _most_sensitive(text: ShownText) -> float:
    return max(word.value for word in text.words)


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


def _cut(text: ShownText, most: int) -> ShownText:
    """The text up to its word `most`."""
    places = [place for place, piece in enumerate(text.pieces) if isinstance(piece, ShownWord)]
    if len(places) <= most:
        return text
    note = f"{text.note} Its first {most:,} of {len(places):,} words.".strip()
    return replace(text, pieces=(*text.pieces[: places[most]], " …"), note=note)


def _words(text: ShownText, top: float, *, legend: bool) -> Words:
    """The text with its words in colour; from right to left where its first letter with a direction
    is so."""
    pieces = tuple(
        piece
        if isinstance(piece, str)
        else Shade(piece.text, level(text.share(piece.value, top)), _facts(piece))
        for piece in text.pieces
    )
    most = f"{STRONGEST:g} or more" if text.absolute else f"{top:.3g}"
    unit = (
        "times the output’s size, a lower bound"
        if text.absolute
        else "of the output’s size, without the word"
    )
    written = "".join(piece if isinstance(piece, str) else piece.text for piece in text.pieces)
    directions = (
        kind for kind in map(unicodedata.bidirectional, written) if kind in ("L", "R", "AL")
    )
    rtl = next(directions, "L") != "L"
    title = f"{text.title}: {text.source}" if text.source else text.title
    return Words(title, pieces, ("0", most, unit) if legend else None, text.note, rtl)


def _facts(word: ShownWord) -> str:
    """What is known of a word, in a few words each."""
    numbers = (("S", word.attained), ("at most", word.upper), ("taken out", word.removal))
    facts = [f"{name} {times(value)}" for name, value in numbers if value is not None]
    return ", ".join([*facts, *([f"best real word {_swap(word)}"] if word.swap else [])])


def _swap(word: ShownWord) -> str | None:
    return word.swap and f"{word.swap[1]} {times(word.swap[0])}"


def _table(text: ShownText, top: float) -> Table:
    """Every word with its bar from zero, on one absolute scale, the most sensitive first."""
    words = sorted(text.words, key=lambda word: -word.value)
    bars = [
        Bar(word.value, text.share(word.value, top), text.share(word.upper or 0.0, top))
        for word in words
    ]
    columns: dict[str, list[Any]] = {
        "word": [word.text for word in words],
        "S" if text.absolute else "taken out": bars,
        "at most": [word.upper for word in words],
        "without it": [word.removal if text.absolute else None for word in words],
        "best real word": [_swap(word) for word in words],
        "its strongest change moves": [word.moved for word in words],
    }
    columns = {
        name: column
        for name, column in columns.items()
        if any(cell not in (None, "") for cell in column)
    }
    note = f"Bars from 0 to {STRONGEST:g}." if text.absolute else ""
    return Table(
        "Every word",
        tuple(columns),
        tuple(zip(*columns.values(), strict=True)),
        note,
        len(words),
        folded=True,
    )


def _audited(record: Any) -> ShownText:
    """The measured words; what was not measured between them is an ellipsis: an audit's record has
    no other words."""
    audited = audited_text(record)
    pieces: list[ShownWord | str] = []
    before = -1  # a text begins where it begins, without a blank
    for word in audited.measured:
        place = round(word.place * (audited.words - 1))
        pieces.append(" " if place == before + 1 else " … " if pieces else "… ")
        attained = None if math.isnan(word.sensitivity) else word.sensitivity
        swap = None if math.isnan(word.swap) else (word.swap, word.swapped_for)
        pieces.append(ShownWord(word.word, attained, removal=word.removal, swap=swap))
        before = place
    if before < audited.words - 1:
        pieces.append(" …")
    skipped = audited.words - len(audited.measured)
    note = f"{skipped:,} of its words were not measured (…)." if skipped > 0 else ""
    if audited.words_lost:
        note += f" {audited.words_lost:,} words after these were cut off unread."
    return ShownText(record.model, record.source, tuple(pieces), note=note.strip())


def _measured(record: Any) -> ShownText:
    """The words of a sensitivity record: of the text itself where the record has it, else its words
    or tokens."""
    places = {
        row: place for place, row in enumerate(record.searched or range(len(record.per_word)))
    }
    tokens = json.loads(record.tokens) if record.tokens else [f"#{row}" for row in range(record.n)]
    swapped_for = json.loads(record.swapped_for) if record.swapped_for else ()
    moved = json.loads(record.moved) if record.moved else ()

    def word(text: str, rows: Sequence[int]) -> ShownWord | str:
        """A word of these rows: the row that moves the output most speaks for it; its text where
        none was searched."""
        searched = [places[row] for row in rows if row in places]
        if not searched:
            return text
        place = max(searched, key=lambda place: record.per_word[place])
        upper = record.upper_per_word and max(record.upper_per_word[place] for place in searched)
        swap = (record.swap[place], swapped_for[place]) if record.swap else None
        moves = "; ".join(_moves(tokens, *row) for row in moved[place][:3]) if moved else ""
        return ShownWord(text, record.per_word[place], upper=upper, swap=swap, moved=moves)

    pieces = tuple(piece for piece in _pieces(record, tokens, word) if piece)
    skipped = record.n - len(places)
    verbs = ("was", "has") if skipped == 1 else ("were", "have")
    note = (
        f"{skipped:,} of its {record.n:,} rows {verbs[0]} not searched and {verbs[1]} no colour."
        if skipped
        else ""
    )
    return ShownText(map_title(record.map), record.source or "", pieces, note=note)


def _pieces(record: Any, tokens: Sequence[str], word: Any) -> Iterator[ShownWord | str]:
    """The text as it was written; its words with blanks between; or its tokens, with none before
    one that goes on."""
    if record.whole_words is None:
        for row, token in enumerate(tokens):
            yield " " if row and not token.startswith("##") else ""
            yield word(token.removeprefix("##").lstrip("Ġ▁") or token, (row,))
    elif not record.content:
        for text, rows in json.loads(record.whole_words):
            yield word(text, rows)
            yield " "
        yield "…"
    else:
        end = 0
        for text, rows in json.loads(record.whole_words):
            if (start := record.content.find(text, end)) >= 0:
                yield record.content[end:start]
                yield word(text, rows)
                end = start + len(text)
        rest = record.content[end:]
        yield " …" if any(map(str.isalnum, rest)) else rest


def _moves(
    tokens: Sequence[str], row: float, change: float, before: float | None, after: float | None
) -> str:
    """A row of the features that a witness moves: its token, its change, its attention to the word
    before and after."""
    attention = (
        "" if before is None or after is None else f" (attention {times(before)} → {times(after)})"
    )
    return f"{tokens[int(row)]} {times(change)}{attention}"
