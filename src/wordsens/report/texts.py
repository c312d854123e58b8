"""The texts of a report with their words in colour, and what was measured of each word."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from wordsens.display.numbers import number
from wordsens.display.view import ColouredWord, Marked, Table, View, Words
from wordsens.maps.registry import map_title
from wordsens.report.load import Run

# How many texts are shown, each under all its maps.
TEXTS = 6

_HINT = "Point at a word for its numbers."
_LEGEND = "or more times the output's size (S, a lower bound); one scale for all texts"


def texts_section(runs: Sequence[Run]) -> View:
    """The texts of every run whose records hold words, given ones first, then reviews; of each kind
    those whose words were all searched first, then the most sensitive. A text under all its maps.
    """
    known = [
        (run.name, record)
        for run in runs
        for part in run.parts
        for record in part.done
        if record.get("per_word")
    ]
    texts: dict[tuple[str, str, str], list[Any]] = {}
    known.sort(key=lambda pair: -max(pair[1]["per_word"]))
    for run, record in sorted(known, key=lambda pair: pair[1].get("words") != pair[1].get("n")):
        text = record.get("text", "given"), record.get("source") or record["cell"], run
        texts.setdefault(text, []).append(record)
    kinds = sorted(texts, key=lambda text: (text[0] != "given", text[0] != "reviews"))
    parts: list[Any] = []
    for text in kinds[:TEXTS]:
        for record in texts[text]:
            parts += _coloured(record, f"{text[-1]}: " * (len(runs) > 1), legend=not parts)
    if len(texts) > TEXTS:
        parts.insert(0, f"{TEXTS} of {len(texts):,} texts, the most sensitive first.")
    return View("Words in colour", tuple(parts))


def _coloured(record: Any, run: str, *, legend: bool) -> tuple[Words, Table]:
    """The words in colour, and one row per word, the most sensitive first; of a word of several
    tokens the one that moves the output most counts."""
    searched = record["searched"] or range(len(record["per_word"]))
    places = {token: place for place, token in enumerate(searched)}
    upper, swaps = record["upper_per_word"], json.loads(record["swapped_for"] or "null")
    pieces: list[ColouredWord | str] = []
    rows: list[dict[str, Any]] = []
    for text, tokens in _pieces(record):
        known = [places[token] for token in tokens if token in places]
        if not known:
            pieces.append(text)
            continue
        place = max(known, key=record["per_word"].__getitem__)
        row = {
            "S": record["per_word"][place],
            "at most": max(upper[each] for each in known) if upper else None,
            "best real word": f"{swaps[place]} {number(record['swap'][place])}" if swaps else None,
        }
        row = {name: cell for name, cell in row.items() if cell is not None}
        cells = [cell if isinstance(cell, str) else number(cell) for cell in row.values()]
        about = ", ".join(map(" ".join, zip(row, cells, strict=True)))
        pieces.append(ColouredWord(text, row["S"], about))
        rows.append({"word": text, **row})
    rows.sort(key=lambda row: -row["S"])
    left = record["n"] - len(places)
    skipped = f"{left:,} of {record['n']:,} words were not measured; they are grey." * bool(left)
    title = f"{run}{map_title(record['map'])}"
    words = Words(
        ": ".join(filter(None, (title, record.get("source")))),
        tuple(pieces),
        legend=_LEGEND * legend,
        note=" ".join(filter(None, (skipped, _HINT * legend))),
    )
    options = {"most": len(rows), "folded": True, "coloured": ("S",)}
    return words, Table.of_rows(
        f"Every word: {title}", list(rows[0]), [[*row.values()] for row in rows], **options
    )


def _pieces(record: Any) -> Iterator[tuple[str, Sequence[int]]]:
    """The text as it was written, or its words with blanks between: each piece with the numbers of
    its tokens, none of what stands between words. A record without words gives its tokens."""
    tokens = json.loads(record["tokens"] or "null") or [f"#{row}" for row in range(record["n"])]
    names = [token.removeprefix("##").lstrip("Ġ▁") or token for token in tokens]
    words, content = [(name, (row,)) for row, name in enumerate(names)], " ".join(names)
    if record["whole_words"] is not None:
        words = json.loads(record["whole_words"])
        content = record["content"] or " ".join([*(text for text, _ in words), "…"])
    *pieces, (rest, ends_with_word) = Marked(content, tuple(text for text, _ in words)).pieces
    unread = not ends_with_word and any(map(str.isalnum, rest))
    known = iter(words)
    for piece, is_word in (*pieces, (" …" if unread else rest, ends_with_word)):
        found = (tokens for text, tokens in known if text == piece)
        yield piece, next(found) if is_word else ()
