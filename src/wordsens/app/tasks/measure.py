"""One text under one map: a first look, the measurement, one word in detail, and files to download."""

import io
import json
import math
import tempfile
import time
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.worker import TaskContext
from wordsens.display.content import colour_share, level
from wordsens.errors import InputError
from wordsens.maps.attention_pair import AttentionMap
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import MODEL, build_map, map_entry, map_title
from wordsens.maps.transformer.features import TransformerFeatures, loaded_model
from wordsens.plotting import words as words_figure
from wordsens.report.write import write_report
from wordsens.search.plan import SearchPlan
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.removals import row_removal
from wordsens.sensitivity.several_texts import on_demand, sampled_words
from wordsens.sensitivity.swaps import ShortlistPlan, best_swaps
from wordsens.sensitivity.witness_effect import witness_effect
from wordsens.sweeps.measurement import SensitivityCell, columns_of_result
from wordsens.sweeps.store import Record, Store, record_of, write_tables
from wordsens.text.document import Document
from wordsens.text.embedding import embed
from wordsens.text.matrix import TextMatrix

FIRST_LOOK = SearchPlan("quick", starts=1, steps=1)
"""A handful of evaluations a word: enough to rank most words."""

FIRST_SECONDS, PART_SECONDS = 1.5, 0.25
"""The longest that a first look takes, and about the time between two of its parts."""

SWAPS = ShortlistPlan(anchors=12, rounds=3, verified=40, promoted=4)
"""Of a trained model: a fifth of the usual evaluations, for an answer while the reader waits."""

SHARES = tuple(at / 10 for at in range(11))
"""Shares of a perturbation at which attention is drawn."""

MOST_LINES = 24
"""Words of the picture of attention: those that turn most, of a longer text."""

UNKNOWN = ("[UNK]", "<unk>")
"""Tokens that stand for whatever a vocabulary does not have."""


def measure(context: TaskContext, request: dict[str, Any]) -> dict[str, Any]:
    """Measure the text of the request; parts have the first look's words, or the share that is done."""
    config, started = MeasureRequest(**request), datetime.now(UTC).isoformat(timespec="seconds")
    phi, text = build(config)
    chosen, radius = sampled_words(phi, len(text), config.seed), _radius(config, text)
    # A map that is sampled on demand would remember the queries of a first look: that has one of its own.
    _first_look(context, config, build(config)[0] if on_demand(phi) else phi, text, chosen, radius)
    result = word_sensitivity(phi, text, chosen, radius, config.seed, search=config.search, progress=context.progress)
    columns = columns_of_result(phi, text, result, usual_radius=radius is None)
    record = record_of(_cell(config, text, chosen, radius), "done", columns, started=started, seconds=result.seconds)
    rows, values = result.words.tolist(), result.per_word.tolist()
    uppers = [None] * len(rows) if result.upper_per_word is None else result.upper_per_word.tolist()
    return {
        **shown_text(config.text, text, dict(zip(rows, zip(values, uppers, strict=True), strict=True))),
        "value": result.value,
        "row": result.word,
        "upper": result.upper,
        "predicted": record.predicted if record.predicted_in_range else None,
        "radius": radius,
        "chosen": chosen,
        "notes": list(result.notes),
        "record": record.columns,
        "witnesses": dict(zip(rows, result.perturbations.tolist(), strict=True)),
    }


def build(config: MeasureRequest) -> tuple[FeatureMap, TextMatrix]:
    """The map and the text's rows, as `wordsens measure` makes them."""
    document = Document(config.text, source="the page")
    if config.map == MODEL:
        phi = build_map(MODEL, 1, 1, seed=config.seed, **config.map_options)
        return phi, phi.embed([document])[0]
    text = embed([document])[0]
    return build_map(config.map, *text.rows.shape, seed=config.seed, **config.map_options), text


def _radius(config: MeasureRequest, text: TextMatrix) -> float | None:
    """The radius of every ball; None for the map's own. Of a model a share is of the rows' mean length."""
    if config.share == 1:
        return None
    length = float(torch.linalg.vector_norm(text.rows, dim=1).mean())
    return float(f"{config.share * (length if config.map == MODEL else math.sqrt(text.rows.shape[1])):.4g}")


def _cell(config: MeasureRequest, text: TextMatrix, words: list[int] | None, radius: float | None) -> SensitivityCell:
    """The cell that `wordsens measure --out` would write for it."""
    entry, (n, d) = map_entry(config.map), text.rows.shape
    given: dict[str, Any] = {"kind": "given", "content": config.text, "source": text.source}
    if entry.family != "transformer":
        given |= {"encoder": "minilm", "layer": 0}
    keys = {"map": config.map, "n": n, "d": d, "text": given, "dtype": entry.dtype, "seed": config.seed}
    keys |= {"radius": radius, "search": config.search, "words": "all" if words is None else {"indices": words}}
    return SensitivityCell.parse(keys | {key: config.map_options[key] for key in entry.options})


def _first_look(
    context: TaskContext,
    config: MeasureRequest,
    phi: FeatureMap,
    text: TextMatrix,
    chosen: list[int] | None,
    radius: float | None,
) -> None:
    """Colour words a few at a time with what a few steps attain, for FIRST_SECONDS at most: of a long text, some."""
    words, values, together = list(range(len(text))) if chosen is None else chosen, {}, 1
    until = time.monotonic() + FIRST_SECONDS
    while len(values) < len(words) and time.monotonic() < until:
        began, part = time.monotonic(), words[len(values) : len(values) + together]
        result = word_sensitivity(
            phi, text, part, radius, config.seed, search=FIRST_LOOK, certificate=False, progress=context.tick
        )
        values |= {row: (value, None) for row, value in zip(part, result.per_word.tolist(), strict=True)}
        context.send({**shown_text(config.text, text, values), "first_look": len(values) / len(words)})
        together *= 2 if time.monotonic() - began < PART_SECONDS else 1


def shown_text(content: str, text: TextMatrix, values: Mapping[int, tuple[float, float | None]]) -> dict[str, Any]:
    """The text as it is written, in pieces: strings, and for a searched word what is known of it.

    Args:
        values: by row, what is attained and its upper bound; the row that moves the output most speaks for its word.
    """
    pieces: list[Any] = []
    end = total = 0
    for word in text.whole_words or ():
        start = content.find(word.text, end)
        if start < 0:
            continue
        total += 1
        pieces.append(content[end:start])
        end = start + len(word.text)
        row = max((row for row in word.rows if row in values), key=lambda row: values[row][0], default=None)
        if row is None:
            pieces.append(word.text)
            continue
        value, upper = values[row]
        known = {"value": value, "upper": upper, "level": level(colour_share(value))}
        pieces.append({"text": word.text, "row": row, **known, "unknown": text.word(row) in UNKNOWN})
    kinds = map(unicodedata.bidirectional, content)
    rtl = next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"
    shown = [piece for piece in (*pieces, content[end:]) if piece]
    return {"pieces": shown, "words": total, "direction": "rtl" if rtl else "ltr"}


def word_detail(context: TaskContext, request: dict[str, Any], row: int, witness: list[float]) -> dict[str, Any]:
    """The word in that row of the text, part by part; the answer is the last part."""
    phi, text = build(MeasureRequest(**request))
    if on_demand(phi):
        return {}
    delta = torch.tensor(witness, dtype=torch.float64)
    effect = witness_effect(phi, text, torch.tensor([row]), delta.unsqueeze(0))
    moved = (
        [] if effect is None else [[text.word(each.row), each.change, each.before, each.after] for each in effect[0]]
    )
    context.send({"moved": moved, "lines": attention_lines(phi, text, row, delta)})
    context.send({"removal": row_removal(phi, text, row)})
    if isinstance(phi, TransformerFeatures):
        swaps = best_swaps(phi, text, [row], vocabulary=phi.vocabulary(), search=SWAPS, progress=context.tick)
    else:
        vocabulary = loaded_model("minilm", torch.float32, "cpu").vocabulary(rescale=True)
        swaps = best_swaps(phi, text, [row], vocabulary=vocabulary, progress=context.tick)
    return {"swap": swaps.value, "swapped_for": swaps.swapped_for[0], "swap_exact": swaps.exact}


def attention_lines(phi: FeatureMap, text: TextMatrix, at: int, delta: torch.Tensor) -> dict[str, Any] | None:
    """The attention weights while row `at` goes along `delta`, at SHARES; None for maps without attention.

    frames[k][j][i] is the weight that word j gives word i; of a longer text the MOST_LINES words that turn most.
    """
    layer, head = getattr(phi, "layer", 1), getattr(phi, "head", None)
    if not isinstance(phi, AttentionMap) or layer == 0:
        return None
    rows, frames = phi.accept(text.rows), []
    for share in SHARES:
        moved = rows.clone()
        moved[at] += share * delta.to(rows)
        try:
            weights = phi.attention_of(moved, layer)
        except InputError:  # a transformer that was not loaded to give them
            return None
        frames.append(weights.mean(dim=0) if head is None else weights[head])
    table = torch.stack(frames)
    turn = (table[-1, :, at] - table[0, :, at]).abs()
    turn[at] = torch.inf
    rows_shown = sorted(turn.argsort(descending=True)[:MOST_LINES].tolist())
    table = table[:, rows_shown][:, :, rows_shown]
    place = rows_shown.index(at)
    others = [row for row in range(len(rows_shown)) if row != place]
    return {
        "words": [token_name(text.word(row)) for row in rows_shown],
        "at": [place],
        "frames": rounded(table),
        "given": rounded(table[:, others, place].mean(dim=1)),
        "left_out": len(rows) - len(rows_shown),
    }


def token_name(token: str) -> str:
    """A token for a reader.

    >>> token_name("Ġnot"), token_name("##ing"), token_name("▁")
    ('not', 'ing', '␣')
    """
    return token.lstrip("Ġ▁").removeprefix("##") or "␣"


def rounded(table: torch.Tensor) -> Any:
    """A table as nested lists of numbers with three decimals."""
    return (table.double() * 1000).round().div(1000).tolist()


def export(context: TaskContext, records: list[dict[str, Any]], form: str, arguments: list[str]) -> bytes:
    """The file: `form` is report (HTML) or records (Parquet) of all records, or figure (PNG) of the first."""
    context.tick()
    measured = [Record(record) for record in records]
    if form == "figure":
        record, file = measured[0], io.BytesIO()
        tokens, values = json.loads(str(record.tokens)), record.per_word or ()
        names = [tokens[row] for row in record.searched or range(len(values))]
        figure = words_figure(names, values, upper=record.upper_per_word, title=map_title(record.map))
        figure.savefig(file, format="png", dpi=200)
        return file.getvalue()
    with tempfile.TemporaryDirectory(prefix="wordsens-") as place:
        folder = Path(place) / "measured"
        if form == "records":
            return write_tables(measured, Path(place), "records").read_bytes()
        with Store(folder) as store:
            for record in measured:
                store.write(record)
            store.add_command(arguments)
        return write_report(folder, Path(place) / "report.html").read_bytes()
