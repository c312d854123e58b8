"""One text under the maps that read it, and one of its words in detail."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from wordsens.app.request import BOTH, MeasureRequest
from wordsens.certificates.base import CERTIFIED
from wordsens.display.html import html_part
from wordsens.display.numbers import number
from wordsens.display.view import Table, View, level
from wordsens.errors import InputError
from wordsens.evaluation.substitutes import substitutes
from wordsens.maps.attention_pair import attention_pair
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import MODEL, build_map
from wordsens.maps.transformer.features import TransformerFeatures, loaded_model
from wordsens.models.embedding import embed
from wordsens.sensitivity.one_word import relative_change, word_sensitivity
from wordsens.sensitivity.replacements import best_swaps, row_removal
from wordsens.sensitivity.several_texts import sampled_words
from wordsens.text.document import Document
from wordsens.text.matrix import TextMatrix
from wordsens.theory.prediction import predict
from wordsens.workers import report

# The columns of the table of maps, each with what it means.
COLUMNS = {
    "": "",
    "highest found": "",
    "at most": "At most: a proved upper bound for every push no longer than the word’s vector.",
    "theory": "Theory: a prediction for word vectors with many coordinates (large d), not a bound.",
    "word": "",
}

# Under the changes by both maps.
REAL = (
    "A real word can move the fully connected layer more than attention, "
    "although the strongest push moves it less: attention moves far only along "
    "the few directions that win the other words’ attention, and a real word rarely lies there; "
    "the fully connected layer moves about equally far along every direction."
)

# Seconds between two reports of progress.
PROGRESS_SECONDS = 0.1

# Words that are tried in the place of one: a map that is sampled on demand remembers each.
TRIED = 12

# Shares of a perturbation at which attention is drawn.
SHARES = tuple(step / 10 for step in range(11))

# Words of the picture of attention: for a longer text those that turn most.
MOST_LINES = 24

# Tokens that stand for whatever a vocabulary does not have.
UNKNOWN = ("[UNK]", "<unk>")


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """The text of the request under each of its maps: a headline, a table, the command for the same
    numbers, and by map the words to colour.

    `words`: by row, the change found, its upper bound, and the push.
    """
    config = MeasureRequest(**request)
    maps, rows, notes = {}, [], [REAL] * (config.map == BOTH)
    for place, name in enumerate(config.maps):
        phi, text = build(config, name)
        chosen = sampled_words(phi, len(text), 0)
        plan = {"search": config.search, "progress": progress(place, len(config.maps))}
        sensitivity = word_sensitivity(phi, text, chosen, **plan)
        columns = sensitivity.columns()
        pushes = sensitivity.perturbations.tolist()
        found = zip(columns["sensitivity"], columns["upper"], pushes, strict=True)
        words = dict(zip(columns["word"], found, strict=True))
        pieces = _pieces(config.text, text, words)
        count = sum(not isinstance(piece, str) for piece in pieces)
        total = len(text.whole_words or ())
        searched = "" if count == total else f" ({count} of {total} words searched)"
        title = config.title(name)
        maps[name] = {
            "title": f"{title}: {number(sensitivity.value)}{searched}",
            "pieces": pieces,
            "row": sensitivity.word,
            "words": words,
        }
        predicted = predict(phi, text, words=len(words))
        theory = predicted.value if predicted is not None and predicted.in_range else None
        word = _word_at(text, sensitivity.word)
        rows.append((title, sensitivity.value, sensitivity.upper, theory, word))
        notes += [*_unknown(pieces), *sensitivity.notes]
        if sensitivity.rigor not in (None, CERTIFIED):
            notes.append(f"{title}: the upper bound holds {sensitivity.rigor}.")
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    known = {name: cells for name, cells in columns.items() if {*cells} != {None}}
    meaning = " ".join(filter(None, map(COLUMNS.get, known)))
    table = Table("", known, note=meaning, coloured=("highest found",))
    return {
        "headline": _headline(config, [number(value) for _, value, *_ in rows]),
        "table": html_part(View("", (table,), notes=tuple(dict.fromkeys(notes)))),
        "command": "\n".join(map(config.command, config.maps)),
        "maps": maps,
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


def _pieces(
    content: str, text: TextMatrix, words: dict[int, tuple[Any, ...]]
) -> list[str | dict[str, Any]]:
    """The text as it is written, in pieces: strings, and the searched words with their colours. The
    row that moves the output most speaks for its word."""
    pieces: list[Any] = []
    end = 0
    for word in text.whole_words or ():
        rows = [row for row in word.rows if row in words]
        if word.start < end or not rows:
            continue
        row = max(rows, key=lambda row: words[row][0])
        value, unknown = words[row][0], text.word(row) in UNKNOWN
        known = {"row": row, "value": value, "level": level(value), "unknown": unknown}
        pieces += [content[end : word.start], {"text": content[word.start : word.stop]} | known]
        end = word.stop
    return [piece for piece in (*pieces, content[end:]) if piece]


def _word_at(text: TextMatrix, row: int) -> str:
    words = (word.text for word in text.whole_words or () if row in word.rows)
    return next(words, text.word(row))


def _unknown(pieces: Sequence[str | dict[str, Any]]) -> list[str]:
    """A note on words that the vocabulary does not have."""
    names = dict.fromkeys(
        f"“{piece['text']}”" for piece in pieces if not isinstance(piece, str) and piece["unknown"]
    )
    note = (
        f"Not in this model’s vocabulary: {', '.join(names)}. "
        "The model reads the token [UNK] instead, so the number is that of the token."
    )
    return [note] if names else []


def _headline(config: MeasureRequest, values: Sequence[str]) -> str:
    """How far one word's vector moves the output, what the weights are and how far it is pushed."""
    pushed = "Change one word’s vector by up to its own length"
    if config.map == BOTH:
        return (
            f"{pushed}: the attention layer’s output can change by {values[0]} times its size, "
            f"the fully connected layer’s by {values[1]} times. (Both layers have random weights.)"
        )
    weights = "" if config.map == MODEL else " (Random weights.)"
    changed = f"the output can change by {values[0]} times its size"
    return f"{config.title(config.map)}. {pushed}: {changed}.{weights}"


def word_detail(
    request: dict[str, Any], row: int, words: dict[str, tuple[float, float | None, list[float]]]
) -> dict[str, Any]:
    """The word in that row of the text under each map, from what `measure` knows of it: all changes
    in tables, with those by real edits, and the first map's attention as lines."""
    config = MeasureRequest(**request)
    parts, lines = [], None
    for name, (value, upper, push) in words.items():
        phi, text = build(config, name)
        changes = {"pushed": value, "pushed, at most (proved)": upper}
        changes |= word_edits(config, phi, text, row)
        cells = [(label, change) for label, change in changes.items() if change is not None]
        headings = "the word is", "change"
        title = config.title(name)
        parts.append(Table.of_rows(title, headings, cells, coloured=headings[1:]))
        if len(parts) == 1:
            parts.insert(0, f"“{_word_at(text, row)}”")
            delta = torch.tensor(push, dtype=torch.float64)
            lines = attention_lines(phi, text, row, delta)
    return {"card": html_part(View("", tuple(parts))), "lines": lines}


def word_edits(
    config: MeasureRequest, phi: FeatureMap, text: TextMatrix, row: int
) -> dict[str, float]:
    """The largest change by a word that a writer could put in the place of that row, where one is
    listed, and the change without it.

    A map that is sampled on demand reads texts of one length alone: it has a row of zeros for the
    deletion.
    """
    edits = {}
    word = next((word for word in text.whole_words or () if word.rows == (row,)), None)
    others = () if word is None else substitutes(config.text, (word.start, word.stop))[:TRIED]
    if isinstance(phi, TransformerFeatures):
        vocabulary = phi.vocabulary()
    else:
        vocabulary = loaded_model("minilm").vocabulary(rescale=True)
    listed = vocabulary.only(name for other in others for name in (other, other.lower()))
    if listed is not None:
        found = best_swaps(phi, text, [row], vocabulary=listed, search="scan", progress=progress())
        edits[f"replaced by “{found.swapped_for[0]}”"] = found.value
    removal, rows = row_removal(phi, text, row), phi.accept(text.rows)
    if removal is not None:
        return edits | {"deleted": removal}
    zeros = -rows[row].view(1, 1, -1)
    change = relative_change(phi, rows, torch.tensor([[row]]), zeros)
    return edits | {"replaced by zeros": float(change)}


def attention_lines(
    phi: Any, text: TextMatrix, row: int, delta: torch.Tensor
) -> dict[str, Any] | None:
    """The attention weights while a row moves along `delta`, at SHARES, as `parts.Lines` draws
    them, and how it turns in a sentence; None for maps without attention.

    frames[k][j][i] is the weight that word j gives word i; for a longer text of the MOST_LINES
    words that turn most.
    """
    rows, frames = phi.accept(text.rows), []
    layer, head = getattr(phi, "layer", 1), getattr(phi, "head", None)
    for share in SHARES:
        moved = rows.clone()
        moved[row] += share * delta.to(rows)
        try:
            pair = attention_pair(phi, text, moved, layer=layer, head=head)
        except InputError:  # a map without attention, or a transformer loaded without it
            return None
        frames.append(pair.weights[1])
    table = torch.stack(frames)
    turn = (table[-1, :, row] - table[0, :, row]).abs()
    turn[row] = -torch.inf
    before, *_, after = (table[:, :, row].sum(dim=1) - table[:, row, row]).tolist()
    shown = sorted({row, *turn.argsort(descending=True)[: MOST_LINES - 1].tolist()})
    drawn = rounded(table[:, shown][:, :, shown])
    names = [token_name(text.word(each)) for each in shown]
    word, others = token_name(text.word(row)), len(rows) - 1
    sentence = (
        f"Pushing the vector of “{word}” {'raises' if after >= before else 'lowers'} its share "
        f"of the other words’ attention from {100 * before / others:.0f}\u00a0% "
        f"to {100 * after / others:.0f}\u00a0%."
    )
    if left_out := len(rows) - len(shown):
        sentence += f" The {left_out} words that turn least are left out."
    return {
        "sentence": sentence,
        "before": {"title": "Before", "words": names, "weights": drawn[0]},
        "title": f"“{word}” pushed",
        "slider": f"Push of “{word}”, in percent of the strongest",
        "words": names,
        "at": [shown.index(row)],
        "frames": drawn,
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


def progress(part: int = 0, parts: int = 1) -> Callable[[int, int], None]:
    """The callback of a computation that is one of so many equal parts of a task: it reports the
    share that is done."""
    last = 0.0

    def report_progress(done: int, total: int) -> None:
        nonlocal last
        share = None
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            share = {"share": (part + done / max(total, 1)) / parts}
        report(share)

    return report_progress
