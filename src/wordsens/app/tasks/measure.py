"""One text under one map, and one of its words in detail."""

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.worker import progress
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
from wordsens.workers import report

# Words that are tried in the place of one: a map that is sampled on demand remembers each.
TRIED = 12

# Shares of a perturbation at which attention is drawn.
SHARES = tuple(step / 10 for step in range(11))

# Words of the picture of attention: for a longer text those that turn most.
MOST_LINES = 24

# Tokens that stand for whatever a vocabulary does not have.
UNKNOWN = ("[UNK]", "<unk>")


def measure(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The text of the request under each of its maps, by their names."""
    config = MeasureRequest(**request)
    maps = config.maps
    return {
        name: _measured(config, name, progress(place, len(maps))) for place, name in enumerate(maps)
    }


def _measured(config: MeasureRequest, name: str, progress: Progress) -> dict[str, Any]:
    phi, text = build(config, name)
    chosen, radius = sampled_words(phi, len(text), 0), _radius(config, text)
    result = word_sensitivity(phi, text, chosen, radius, search=config.search, progress=progress)
    predicted = predict(phi, text, words=len(result.words)) if radius is None else None
    rows, values = result.words.tolist(), result.per_word.tolist()
    uppers = [None] * len(rows) if result.upper_per_word is None else result.upper_per_word.tolist()
    pieces = _pieces(
        config.text, text, dict(zip(rows, zip(values, uppers, strict=True), strict=True))
    )
    kinds = map(unicodedata.bidirectional, config.text)
    first = next((kind for kind in kinds if kind in ("L", "R", "AL")), "L")
    return {
        "pieces": pieces,
        "words": len(text.whole_words or ()),
        "direction": "ltr" if first == "L" else "rtl",
        "value": result.value,
        "row": result.word,
        "upper": result.upper,
        "rigor": "" if result.rigor in (None, CERTIFIED) else f" {result.rigor}",
        "predicted": predicted.value if predicted is not None and predicted.in_range else None,
        "radius": radius,
        "notes": list(result.notes),
        "witnesses": dict(zip(rows, result.perturbations.tolist(), strict=True)),
    }


def build(config: MeasureRequest, name: str) -> tuple[FeatureMap, TextMatrix]:
    """The map and the text's rows, as `wordsens measure` makes them."""
    document = Document(config.text, source="the page")
    if name == MODEL:
        options = {"model": config.model, "model_layer": config.layer, "pool": config.pool or None}
        phi = build_map(MODEL, 1, 1, seed=0, **options)
        return phi, phi.embed([document])[0]
    text = embed([document])[0]
    return build_map(name, *text.rows.shape, seed=0), text


def _radius(config: MeasureRequest, text: TextMatrix) -> float | None:
    """The radius of every ball; None for the map's own. For a model a share is of the rows' mean
    length."""
    if config.share == 1:
        return None
    length = math.sqrt(text.rows.shape[1])
    if config.map == MODEL:
        length = float(torch.linalg.vector_norm(text.rows, dim=1).mean())
    return float(f"{config.share * length:.4g}")


def _pieces(
    content: str, text: TextMatrix, values: Mapping[int, tuple[float, float | None]]
) -> list[str | dict[str, Any]]:
    """The text as it is written, in pieces: strings, and for a searched word what is known of it.

    Args:
        values: by row, what is measured and its upper bound; the row that moves the output most
            speaks for its word.
    """
    pieces: list[Any] = []
    end = 0
    for word in text.whole_words or ():
        rows = [row for row in word.rows if row in values]
        if word.start < end or not rows:
            continue
        row = max(rows, key=lambda row: values[row][0])
        value, upper = values[row]
        known = {"text": content[word.start : word.stop], "row": row, "value": value}
        known |= {"upper": upper, "level": level(value), "unknown": text.word(row) in UNKNOWN}
        pieces += [content[end : word.start], known]
        end = word.stop
    return [piece for piece in (*pieces, content[end:]) if piece]


def word_detail(
    request: dict[str, Any], name: str, row: int, witness: list[float]
) -> dict[str, Any]:
    """What is known of the word in that row of the text under the map of that name, part by part:
    its attention, the change without it, and the largest change by a word that a writer could put
    there, None where none is listed.

    A map that is sampled on demand reads texts of one length alone: it has a row of zeros for the
    deletion.
    """
    config = MeasureRequest(**request)
    phi, text = build(config, name)
    delta = torch.tensor(witness, dtype=torch.float64)
    detail: dict[str, Any] = {"lines": attention_lines(phi, text, row, delta)}
    report(detail)
    removal, rows = row_removal(phi, text, row), phi.accept(text.rows)
    detail["emptied"] = removal is None
    if removal is None:
        zeros = -rows[row].view(1, 1, -1)
        removal = float(relative_change(phi, rows, torch.tensor([[row]]), zeros))
    detail["removal"] = removal
    report(detail)
    word = next((word for word in text.whole_words or () if word.rows == (row,)), None)
    others = () if word is None else substitutes(config.text, (word.start, word.stop))[:TRIED]
    if isinstance(phi, TransformerFeatures):
        vocabulary = phi.vocabulary()
    else:
        vocabulary = loaded_model("minilm").vocabulary(rescale=True)
    listed = vocabulary.only(name for other in others for name in (other, other.lower()))
    if listed is None:
        return detail | {"swap": None, "swapped_for": None}
    swaps = best_swaps(phi, text, [row], vocabulary=listed, search="scan", progress=progress())
    return detail | {"swap": swaps.value, "swapped_for": swaps.swapped_for[0]}


def attention_lines(
    phi: FeatureMap, text: TextMatrix, row: int, delta: torch.Tensor
) -> dict[str, Any] | None:
    """The attention weights while a row moves along `delta`, at SHARES, as `parts.Lines` draws
    them; None for maps without attention.

    frames[k][j][i] is the weight that word j gives word i; for a longer text of the MOST_LINES
    words that turn most. `given` is the mean weight that the other words give the row.
    """
    layer, head = getattr(phi, "layer", 1), getattr(phi, "head", None)
    if not isinstance(phi, AttentionMap) or layer == 0:
        return None
    rows, frames = phi.accept(text.rows), []
    for share in SHARES:
        moved = rows.clone()
        moved[row] += share * delta.to(rows)
        try:
            weights = phi.attention_of(moved, layer)
        except InputError:  # a transformer that was not loaded to give them
            return None
        frames.append(weights.mean(dim=0) if head is None else weights[head])
    table = torch.stack(frames)
    turn = (table[-1, :, row] - table[0, :, row]).abs()
    turn[row] = torch.inf
    shown = sorted(turn.argsort(descending=True)[:MOST_LINES].tolist())
    table = table[:, shown][:, :, shown]
    place = shown.index(row)
    others = [other for other in range(len(shown)) if other != place]
    words, word = [token_name(text.word(row)) for row in shown], token_name(text.word(row))
    drawn = rounded(table)
    return {
        "before": {"title": "Before", "words": words, "weights": drawn[0]},
        "title": f"“{word}” pushed",
        "slider": f"Push of “{word}”, in percent of the strongest",
        "words": words,
        "at": [place],
        "frames": drawn,
        "given": rounded(table[:, others, place].mean(dim=1)),
        "left_out": len(rows) - len(shown),
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
