"""One text under one map: a first look word by word, then the measurement itself."""

import json
import math
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.work.worker import Desk
from wordsens.experiments.sensitivity import SensitivityCell, columns_of_result, json_text
from wordsens.experiments.store import record_of
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import MODEL, build_map, map_entry
from wordsens.report.page import word_data
from wordsens.report.texts import Word, coloured, measured_text
from wordsens.search.plan import SearchPlan
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.several_texts import on_demand, sampled_words
from wordsens.text.document import Document
from wordsens.text.embedding import embed
from wordsens.text.matrix import TextMatrix

FIRST_LOOK = SearchPlan("quick", starts=1, steps=1)
"""A handful of evaluations a word: enough to rank most words, and done before a reader has looked up."""

SOON = 0.25
"""Seconds between two parts of a first look, about: where the words are searched faster, more are searched at once."""


def measure(desk: Desk, request: dict[str, Any]) -> dict[str, Any]:
    """Measure as asked; parts have the text so far, or the share that is done; the answer has record and witnesses."""
    asked, started = MeasureRequest(**request), datetime.now(UTC).isoformat(timespec="seconds")
    phi, text = built(asked)
    chosen = sampled_words(phi, len(text), asked.seed)
    radius = radius_of(asked, text)
    # A map that is sampled on demand would remember the queries of a first look: that has one of its own.
    _first_look(desk, asked, built(asked)[0] if on_demand(phi) else phi, text, chosen, radius)

    result = word_sensitivity(phi, text, chosen, radius, asked.seed, search=asked.search, progress=desk.share)
    columns = columns_of_result(phi, text, result, usual_radius=radius is None)
    cell = cell_of(asked, text, chosen, radius)
    record = record_of(cell, "done", columns, started=started, seconds=result.seconds)
    return {
        "text": text_data(record),
        "record": record.columns,
        "witnesses": dict(zip(result.words.tolist(), result.perturbations.tolist(), strict=True)),
        "radius": radius,
        "searched": chosen,
        "value": result.value,
        "word": record.token,
        "upper": result.upper,
        "predicted": record.predicted,
        "notes": list(result.notes),
    }


def built(asked: MeasureRequest) -> tuple[FeatureMap, TextMatrix]:
    """The map and the text's rows, as `wordsens measure` makes them."""
    document = Document(asked.text, source="the page")
    if asked.map == MODEL:
        phi = build_map(MODEL, 1, 1, options=asked.map_options, seed=asked.seed)
        return phi, phi.embed([document])[0]
    text = embed([document])[0]
    return build_map(asked.map, *text.rows.shape, options=asked.map_options, seed=asked.seed), text


def radius_of(asked: MeasureRequest, text: TextMatrix) -> float | None:
    """The radius of every ball; None for the map's own. Of a model a share is of the rows' mean length."""
    if asked.share == 1:
        return None
    length = float(torch.linalg.vector_norm(text.rows, dim=1).mean())
    usual = length if asked.map == MODEL else math.sqrt(text.rows.shape[1])
    return float(f"{asked.share * usual:.4g}")


def cell_of(asked: MeasureRequest, text: TextMatrix, words: list[int] | None, radius: float | None) -> SensitivityCell:
    """The cell that `wordsens measure --out` would write for it."""
    entry, (n, d) = map_entry(asked.map), text.rows.shape
    given: dict[str, Any] = {"kind": "given", "content": asked.text, "source": text.source}
    if entry.family != "transformer":
        given |= {"encoder": "minilm", "layer": 0}
    keys = {"map": asked.map, "n": n, "d": d, "text": given, "dtype": entry.dtype, "seed": asked.seed}
    keys |= {"radius": radius, "search": asked.search, "words": "all" if words is None else {"indices": words}}
    return SensitivityCell.parse(keys | {key: getattr(asked.map_options, key) for key in entry.options})


def _first_look(
    desk: Desk, asked: MeasureRequest, phi: FeatureMap, text: TextMatrix, chosen: list[int] | None, radius: float | None
) -> None:
    """Colour the words a few at a time, with what a few steps attain."""
    whole = None if text.whole_words is None else json_text([[word.text, list(word.rows)] for word in text.whole_words])
    words = list(range(len(text))) if chosen is None else chosen
    seen: list[int] = []
    values: list[float] = []
    together = 1
    while len(seen) < len(words):
        began, part = time.monotonic(), words[len(seen) : len(seen) + together]
        found = word_sensitivity(
            phi, text, part, radius, asked.seed, search=FIRST_LOOK, certificate=False, progress=desk.tick
        )
        seen += part
        values += found.per_word.tolist()
        rough = SimpleNamespace(
            per_word=values, searched=seen, tokens=json_text(text.tokens), n=len(text), whole_words=whole,
            content=asked.text, upper_per_word=None, swap=None, swapped_for=None, moved=None, map=phi.name,
            source=text.source,
        )  # fmt: skip
        desk.tell({"text": text_data(rough), "looked": len(seen) / len(words)})
        together *= 2 if time.monotonic() - began < SOON else 1


def text_data(record: Any) -> dict[str, Any]:
    """The text of a record as the page draws it: its pieces, what its colours stand for."""
    shown = measured_text(record)
    assert shown is not None
    if shown.words:
        shown = coloured(shown)
    pieces = [
        {**word_data(piece), "level": piece.level, "row": piece.row} if isinstance(piece, Word) else piece
        for piece in shown.pieces
    ]
    return {
        "pieces": pieces,
        "direction": shown.direction,
        "ends": list(shown.ends),
        "low": shown.low,
        "high": shown.high,
        "measure": shown.measure,
        "note": shown.note,
        "tokens": json.loads(record.tokens),
    }
