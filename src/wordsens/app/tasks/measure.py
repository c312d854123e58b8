"""One text under one map, and one of its words in detail."""

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.worker import TaskContext
from wordsens.certificates.base import CERTIFIED
from wordsens.display.view import level
from wordsens.errors import InputError
from wordsens.evaluation.substitutes import substitutes
from wordsens.maps.attention_pair import AttentionMap
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import MODEL, build_map
from wordsens.maps.transformer.features import TransformerFeatures, loaded_model
from wordsens.models.embedding import embed
from wordsens.search.objective import Progress
from wordsens.sensitivity.one_word import relative_change, word_sensitivity
from wordsens.sensitivity.replacements import best_swaps, row_removal
from wordsens.sensitivity.several_texts import sampled_words
from wordsens.text.document import Document
from wordsens.text.matrix import TextMatrix
from wordsens.theory.prediction import predict

TRIED = 12
"""Words that are tried in the place of one: a map that is sampled on demand remembers each."""

SHARES = tuple(at / 10 for at in range(11))
"""Shares of a perturbation at which attention is drawn."""

MOST_LINES = 24
"""Words of the picture of attention: those that turn most, of a longer text."""

UNKNOWN = ("[UNK]", "<unk>")
"""Tokens that stand for whatever a vocabulary does not have."""


def measure(context: TaskContext, request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The text of the request under each of its maps, by their names; parts have the share that is
    done."""
    singles = MeasureRequest(**request).single

    def report(at: int) -> Progress:
        return lambda done, total: context.progress(done + at * total, total * len(singles))

    return {single.map: _measured(single, report(at)) for at, single in enumerate(singles)}


def _measured(config: MeasureRequest, progress: Progress) -> dict[str, Any]:
    phi, text = build(config)
    chosen, radius = sampled_words(phi, len(text), config.seed), _radius(config, text)
    result = word_sensitivity(
        phi, text, chosen, radius, config.seed, search=config.search, progress=progress
    )
    predicted = predict(phi, text, words=len(result.words)) if radius is None else None
    rows, values = result.words.tolist(), result.per_word.tolist()
    uppers = [None] * len(rows) if result.upper_per_word is None else result.upper_per_word.tolist()
    return {
        **shown_text(
            config.text, text, dict(zip(rows, zip(values, uppers, strict=True), strict=True))
        ),
        "value": result.value,
        "row": result.word,
        "upper": result.upper,
        "rigor": "" if result.rigor in (None, CERTIFIED) else f" {result.rigor}",
        "share": config.share,
        "predicted": predicted.value if predicted is not None and predicted.in_range else None,
        "radius": radius,
        "notes": list(result.notes),
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
    """The radius of every ball; None for the map's own. Of a model a share is of the rows' mean
    length."""
    if config.share == 1:
        return None
    length = float(torch.linalg.vector_norm(text.rows, dim=1).mean())
    return float(
        f"{config.share * (length if config.map == MODEL else math.sqrt(text.rows.shape[1])):.4g}"
    )


def shown_text(
    content: str, text: TextMatrix, values: Mapping[int, tuple[float, float | None]]
) -> dict[str, Any]:
    """The text as it is written, in pieces: strings, and for a searched word what is known of it.

    Args:
        values: by row, what is attained and its upper bound; the row that moves the output most
            speaks for its word.
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
        row = max(
            (row for row in word.rows if row in values),
            key=lambda row: values[row][0],
            default=None,
        )
        if row is None:
            pieces.append(word.text)
            continue
        value, upper = values[row]
        known = {"value": value, "upper": upper, "level": level(value)}
        pieces.append(
            {"text": word.text, "row": row, **known, "unknown": text.word(row) in UNKNOWN}
        )
    kinds = map(unicodedata.bidirectional, content)
    rtl = next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"
    shown = [piece for piece in (*pieces, content[end:]) if piece]
    return {"pieces": shown, "words": total, "direction": "rtl" if rtl else "ltr"}


def word_detail(
    context: TaskContext, request: dict[str, Any], row: int, witness: list[float]
) -> dict[str, Any]:
    """The word in that row of the text, part by part; the answer is the last part: the farthest of
    the words that a writer could put there, None where there is none.

    A map that is sampled on demand reads texts of one length alone: it has a row of zeros for the
    deletion.
    """
    config = MeasureRequest(**request)
    phi, text = build(config)
    delta = torch.tensor(witness, dtype=torch.float64)
    context.send({"lines": attention_lines(phi, text, row, delta)})
    removal, rows = row_removal(phi, text, row), phi.accept(text.rows)
    emptied = removal is None
    if emptied:
        removal = float(
            relative_change(phi, rows, torch.tensor([[row]]), -rows[row].view(1, 1, -1))
        )
    context.send({"removal": removal, "emptied": emptied})
    word = next((word for word in text.whole_words or () if word.rows == (row,)), None)
    others = () if word is None else substitutes(config.text, (word.start, word.stop))[:TRIED]
    if isinstance(phi, TransformerFeatures):
        vocabulary = phi.vocabulary()
    else:
        vocabulary = loaded_model("minilm").vocabulary(rescale=True)
    listed = vocabulary.only(name for other in others for name in (other, other.lower()))
    if listed is None:
        return {"swap": None, "swapped_for": None}
    swaps = best_swaps(phi, text, [row], vocabulary=listed, search="scan", progress=context.tick)
    return {"swap": swaps.value, "swapped_for": swaps.swapped_for[0]}


def attention_lines(
    phi: FeatureMap, text: TextMatrix, at: int, delta: torch.Tensor
) -> dict[str, Any] | None:
    """The attention weights while row `at` goes along `delta`, at SHARES; None for maps without
    attention.

    frames[k][j][i] is the weight that word j gives word i; of a longer text the MOST_LINES words
    that turn most.
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
