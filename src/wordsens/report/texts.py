"""Each text with its words in colour, and what was measured of each."""

import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordsens.display.content import STRONGEST, Bar, Section, Shade, Table, Words, colour_share, level, times
from wordsens.errors import InputError
from wordsens.evaluation.audit.cell import audited as audited_text
from wordsens.maps.registry import base_name, map_entry, map_title
from wordsens.report.load import Run

TEXTS, WORDS = 6, 2_000
"""So many texts, and words of all texts together, are shown."""

Moved = tuple[str, float, float | None, float | None]
"""A row of the features that a witness moves: its token, its change, its attention to the word before and after."""


@dataclass(frozen=True)
class Word:
    """One word, with all that is known of it.

    Attributes:
        text: as it is written.
        attained: how far it can move the output, at least; None of a black box.
        upper: at most, where the map has a bound.
        removal: how far the output moves without it.
        swap, swapped_for: the best real word in its place.
        moved: what its witness does, the most moved row first.
    """

    text: str
    attained: float | None
    upper: float | None = None
    removal: float | None = None
    swap: float | None = None
    swapped_for: str = ""
    moved: tuple[Moved, ...] = ()

    @property
    def shown(self) -> float:
        """The number that its shade shows: what it attains, or of a black box its removal."""
        return (self.removal or 0.0) if self.attained is None else self.attained


@dataclass(frozen=True)
class Text:
    """A text under one map: its title, where it came from, in reading order its words that were measured and what
    stands between them, and what is not shown."""

    title: str
    source: str
    pieces: tuple[Word | str, ...]
    note: str = ""

    @property
    def words(self) -> list[Word]:
        """Those that were measured."""
        return [piece for piece in self.pieces if isinstance(piece, Word)]

    @property
    def absolute(self) -> bool:
        """True where its words were moved as vectors, so that the scale of S is theirs; else they were taken out."""
        return any(word.attained is not None for word in self.words)

    def share(self, value: float, top: float) -> float:
        """How strong the colour of a value is: on the scale of S, or from 0 to the largest removal on the page."""
        return colour_share(value) if self.absolute else min(1.0, value / (top or 1.0))

    @property
    def rtl(self) -> bool:
        """True where its first letter with a direction is Arabic, Hebrew, ...: words stay in their order."""
        letters = (letter for piece in self.pieces for letter in (piece.text if isinstance(piece, Word) else piece))
        kinds = (kind for kind in map(unicodedata.bidirectional, letters) if kind in ("L", "R", "AL"))
        return next(kinds, "L") != "L"


def text_sections(runs: Sequence[Run]) -> list[Section]:
    """The texts of every run whose records hold words: given ones first, attention first, all words searched.

    A text of which few words were searched is left out where another was searched whole.
    """
    known = [
        (run, record)
        for run in runs
        for part in run.parts
        for record in part.done
        if record.columns.get("per_word") or record.columns.get("removal")
    ]
    if whole := [(run, record) for run, record in known if _whole(record)]:
        known = whole
    known = [pair for pair in known if pair[1].columns.get("source") or pair[1].columns.get("content")] or known
    known.sort(key=lambda pair: _order(pair[1]))
    texts, left = [], WORDS
    for run, record in known:
        text = _of_audit(record) if record.experiment == "audit" else _measured(record)
        if text is not None and text.words:
            title = f"{run.name}: {text.title}" if len(runs) > 1 else text.title
            texts.append(replace(text, title=title))
    if moved := [text for text in texts if text.absolute]:  # on one scale; a removal's is another
        texts = moved
    top = max((word.shown for text in texts for word in text.words), default=0.0)
    parts: list[Any] = []
    for at, text in enumerate(texts[:TEXTS]):
        text = _cut(text, left) if len(text.words) > left else text
        left -= len(text.words)
        parts += [_words(text, top, legend=at == 0), _table(text, top)]
        if left <= 0:
            break
    if not parts:
        return []
    shown = len(parts) // 2
    note = f"{shown} of {len(known):,} texts. " if len(known) > shown else ""
    note += "One scale of colours for all: white is 0. Point at a word for its numbers."
    return [Section("Texts", tuple(parts), note)]


def _whole(record: Any) -> bool:
    return record.experiment != "audit" and record.columns.get("words") == record.columns.get("n")


def _order(record: Any) -> tuple[Any, ...]:
    """Given texts before those of experiments, real before made-up ones; some fifty words; one text under all maps,
    attention first."""
    try:
        family = map_entry(base_name(record.map)).family
    except InputError:
        family = ""
    kind, n = record.columns.get("text", "given"), record.columns.get("n") or 50
    length = 0.0 if kind == "given" else abs(math.log(n / 50))
    source = record.columns.get("source") or ""
    return kind != "given", kind != "reviews", length, source, family != "attention", record.columns.get("map") != "raf"


def _words(text: Text, top: float, *, legend: bool) -> Words:
    """The text with its words in colour."""
    pieces = tuple(
        piece
        if isinstance(piece, str)
        else Shade(piece.text, level(text.share(piece.shown, top)), ", ".join(_facts(piece)))
        for piece in text.pieces
    )
    title = f"{text.title}: {text.source}" if text.source else text.title
    most = f"{STRONGEST:g} or more" if text.absolute else f"{top:.3g}"
    measure = (
        "times the output’s size, attained" if text.absolute else "of the output’s size, when the word is taken out"
    )
    return Words(title, pieces, ("0", most, measure) if legend else None, text.note, text.rtl)


def _facts(word: Word) -> list[str]:
    """What is known of a word, in a few words each."""
    known = [
        ("S", word.attained),
        ("at most", word.upper),
        ("taken out", word.removal),
        (f"best real word {word.swapped_for}", word.swap),
    ]
    return [f"{name} {times(value)}" for name, value in known if value is not None]


def _table(text: Text, top: float) -> Table:
    """Every word with its bar from zero, on one absolute scale, the most sensitive first."""
    absolute = text.absolute
    columns: dict[str, list[Any]] = {"word": [], "S" if absolute else "taken out": []}
    columns |= {name: [] for name in ("at most", "without it", "best real word", "its strongest change moves")}
    ordered = sorted(text.words, key=lambda word: -word.shown)
    for word in ordered:
        moved = [
            f"{name} {times(change)}" + _attention(before, after) for name, change, before, after in word.moved[:3]
        ]
        values = (
            word.text,
            Bar(word.shown, text.share(word.shown, top), text.share(word.upper or 0.0, top)),
            word.upper,
            word.removal if absolute else None,
            None if word.swap is None else f"{word.swapped_for} {times(word.swap)}",
            "; ".join(moved),
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    known = {name: column for name, column in columns.items() if any(one not in (None, "") for one in column)}
    rows = tuple(zip(*known.values(), strict=True))
    return Table("Every word", tuple(known), rows, f"Bars from 0 to {STRONGEST:g}." * absolute, len(rows), folded=True)


def _attention(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f" (attention {times(before)} → {times(after)})"


def _of_audit(record: Any) -> Text | None:
    """The measured words; what was not measured between them is an ellipsis: an audit's record has no other words."""
    audited = audited_text(record)
    pieces: list[Word | str] = []
    before = -1  # a text begins where it begins, without a blank
    for word in audited.measured:
        at = round(word.place * (audited.words - 1))
        pieces.append(" " if at == before + 1 else " … " if pieces else "… ")
        pieces.append(
            Word(
                word.word,
                None if math.isnan(word.sensitivity) else word.sensitivity,
                removal=word.removal,
                swap=None if math.isnan(word.swap) else word.swap,
                swapped_for=word.swapped_for,
            )
        )
        before = at
    if before < audited.words - 1:
        pieces.append(" …")
    skipped = audited.words - len(audited.measured)
    note = f"{skipped:,} of its words were not measured (…)." if skipped > 0 else ""
    if audited.words_lost:
        note += f" {audited.words_lost:,} words after these were cut off unread."
    return Text(record.map or record.model, record.source, tuple(pieces), note=note.strip())


def _measured(record: Any) -> Text | None:
    """The words of a sensitivity record: of the text itself where the record has it, else its tokens; None of earlier
    versions' records.
    """
    if record.per_word is None:
        return None
    searched: dict[int, int] = {row: at for at, row in enumerate(record.searched or range(len(record.per_word)))}
    tokens = json.loads(record.tokens) if record.tokens else [f"#{row}" for row in range(record.n)]
    of_row = _Rows(record, searched, tokens)
    whole = json.loads(record.whole_words) if record.whole_words else None
    if whole is None:
        pieces = tuple(_tokens(tokens, of_row))
    elif record.content:
        pieces = tuple(_written(record.content, whole, of_row))
    else:
        pieces = (*_spaced(of_row.word(text, rows) or text for text, rows in whole), " …")
    skipped = record.n - len(searched)
    verbs = ("was", "has") if skipped == 1 else ("were", "have")
    note = (
        f"{skipped:,} of its {record.n:,} rows {verbs[0]} not searched and {verbs[1]} no colour." if skipped > 0 else ""
    )
    return Text(map_title(record.map), record.source or "", pieces, note=note)


class _Rows:
    """The measurements of a record by row."""

    def __init__(self, record: Any, searched: dict[int, int], tokens: Sequence[str]):
        self._record, self._searched, self._tokens = record, searched, tokens
        self._swapped = json.loads(record.swapped_for) if record.swapped_for else None
        self._moved = json.loads(record.moved) if record.moved else None

    def word(self, text: str, rows: Sequence[int]) -> Word | None:
        """A word of these rows: the row that moves the output most speaks for it; None where none was searched."""
        places = [self._searched[row] for row in rows if row in self._searched]
        if not places:
            return None
        record = self._record
        at = max(places, key=lambda place: record.per_word[place])
        uppers = record.upper_per_word
        return Word(
            text,
            record.per_word[at],
            upper=None if uppers is None else max(uppers[place] for place in places),
            swap=None if record.swap is None else record.swap[at],
            swapped_for="" if self._swapped is None else self._swapped[at],
            moved=() if self._moved is None else tuple(map(self._row, self._moved[at])),
        )

    def _row(self, moved: Sequence[Any]) -> Moved:
        row, change, before, after = moved
        return self._tokens[int(row)], change, before, after


def _written(content: str, whole: Sequence[Sequence[Any]], rows: _Rows) -> Iterator[Word | str]:
    """The text as it was written, its words found one after the other."""
    end = 0
    for text, own in whole:
        start = content.find(text, end)
        if start < 0:
            continue
        if start > end:
            yield content[end:start]
        yield rows.word(text, own) or text
        end = start + len(text)
    if end < len(content):
        yield content[end:]


def _tokens(tokens: Sequence[str], rows: _Rows) -> Iterator[Word | str]:
    """Tokens with blanks between, but before one that goes on with the word before."""
    for row, token in enumerate(tokens):
        goes_on = token.startswith("##")
        if row and not goes_on:
            yield " "
        text = token.removeprefix("##").lstrip("Ġ▁") or token
        yield rows.word(text, (row,)) or text


def _spaced(pieces: Iterable[Word | str]) -> Iterator[Word | str]:
    for at, piece in enumerate(pieces):
        if at:
            yield " "
        yield piece


def _cut(text: Text, most: int) -> Text:
    """The text up to its word `most`, and how many are left out."""
    words = len(text.words)
    pieces: list[Word | str] = []
    for piece in text.pieces:
        if isinstance(piece, Word):
            if most == 0:
                break
            most -= 1
        pieces.append(piece)
    shown = sum(isinstance(piece, Word) for piece in pieces)
    return replace(text, pieces=(*pieces, " …"), note=f"{text.note} Its first {shown:,} of {words:,} words.".strip())
