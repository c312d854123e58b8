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

NAMES = {"raf": "Attention", "rf": "Fully connected layer"}

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
    answers, rows, notes, commands = {}, [], [], []
    for place, name in enumerate(config.maps):
        phi, text = build(config, name)
        chosen = sampled_words(phi, len(text), 0)
        plan = {"search": config.search, "progress": progress(place, len(config.maps))}
        result = word_sensitivity(phi, text, chosen, **plan)
        columns, pushes = result.columns(), result.perturbations.tolist()
        known = zip(columns["sensitivity"], columns["upper"], pushes, strict=True)
        words = dict(zip(columns["word"], known, strict=True))
        pieces, title = _pieces(config.text, text, words), NAMES.get(name, config.title)
        count = sum(not isinstance(each, str) for each in pieces)
        total = len(text.whole_words or ())
        searched = "" if count == total else f" ({count} of {total} words searched)"
        answers[name] = {
            "title": f"{title}: {number(result.value)}{searched}",
            "pieces": pieces,
            "row": result.word,
            "words": words,
        }
        predicted = predict(phi, text, words=len(words))
        theory = predicted.value if predicted is not None and predicted.in_range else None
        rows.append((title, result.value, result.upper, theory, _word_at(text, result.word)))
        notes += [*_unknown(pieces), *result.notes]
        if result.rigor not in (None, CERTIFIED):
            notes.append(f"{title}: the upper bound holds {result.rigor}.")
        commands.append(config.command(name))
    meaning = (
        "At most: proved, for any push of a word within its own length. Theory: a prediction for "
        "large d, not a bound."
    )
    headings = "", "highest found", "at most", "theory", "word"
    columns = dict(zip(headings, zip(*rows, strict=True), strict=True))
    known = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table("", known, note=meaning, coloured=("highest found",))
    return {
        "headline": _headline(config, [number(value) for _, value, *_ in rows]),
        "table": html_part(View("", (table,), notes=tuple(dict.fromkeys(notes)))),
        "command": "\n".join(commands),
        "maps": answers,
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
    words = [piece for piece in pieces if not isinstance(piece, str)]
    names = dict.fromkeys(f"“{word['text']}”" for word in words if word["unknown"])
    if not names:
        return []
    return [
        f"Not in this model’s vocabulary: {', '.join(names)}. The model reads the mark [UNK] in "
        "the place of each, so the number is of the mark, not of the word."
    ]


def _headline(config: MeasureRequest, values: Sequence[str]) -> str:
    """How far one word's vector moves the output, what the weights are and how far it is pushed."""
    pushed = "Change one word’s vector by up to its own length"
    if config.map == BOTH:
        return (
            f"{pushed}: the attention layer’s output can change by {values[0]} times its size, the "
            f"fully connected layer’s by {values[1]} times. (Both layers have random weights.)"
        )
    weights = "" if config.map == MODEL else " (Random weights.)"
    changes = f"the output can change by {values[0]} times its size"
    return f"{config.title}. {pushed}: {changes}.{weights}"


def word_detail(
    request: dict[str, Any], row: int, words: dict[str, tuple[float, float | None, list[float]]]
) -> dict[str, Any]:
    """The word in that row of the text under each map, from what `measure` knows of it: what real
    edits do in a sentence, all changes in tables, and attention as lines with a sentence."""
    config = MeasureRequest(**request)
    tables, sentences, lines, turned, word = [], [], None, "", ""
    for name, (value, upper, push) in words.items():
        phi, text = build(config, name)
        word, title = _word_at(text, row), NAMES.get(name, "Output")
        edits = word_edits(config, phi, text, row)
        changes = {"vector pushed": value, "proved: at most": upper} | edits
        cells = [(label, change) for label, change in changes.items() if change is not None]
        headings = "the word", "change"
        tables.append(Table.of_rows(title, headings, cells, coloured=headings[1:]))
        each = (f"{number(change)} when it is {label}" for label, change in edits.items())
        sentences.append(f"{title}: {', '.join(each)}.")
        if lines is None:
            delta = torch.tensor(push, dtype=torch.float64)
            lines, turned = attention_lines(phi, text, row, delta)
    return {
        "sentence": f"What real edits of “{word}” change. {' '.join(sentences)}",
        "card": html_part(View("", (f"“{word}”", *tables))),
        "lines": lines,
        "turned": turned,
    }


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
) -> tuple[dict[str, Any] | None, str]:
    """The attention weights while a row moves along `delta`, at SHARES, as `parts.Lines` draws
    them, and how it turns in a sentence; None and "" for maps without attention.

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
            return None, ""
        frames.append(pair.weights[1])
    table = torch.stack(frames)
    turn = (table[-1, :, row] - table[0, :, row]).abs()
    turn[row] = torch.inf
    shown = sorted(turn.argsort(descending=True)[:MOST_LINES].tolist())
    table = table[:, shown][:, :, shown]
    place = shown.index(row)
    others = [other for other in range(len(shown)) if other != place]
    before, *_, after = table[:, others, place].mean(dim=1).tolist()
    words, word = [token_name(text.word(row)) for row in shown], token_name(text.word(row))
    drawn = rounded(table)
    lines = {
        "before": {"title": "Before", "words": words, "weights": drawn[0]},
        "title": f"“{word}” pushed",
        "slider": f"Push of “{word}”, in percent of the strongest",
        "words": words,
        "at": [place],
        "frames": drawn,
    }
    sentence = (
        f"Pushing the vector of “{word}” {'raises' if after >= before else 'lowers'} its share of "
        f"the other words’ attention from {before:.0%} to {after:.0%}."
    )
    if left_out := len(rows) - len(shown):
        sentence += f" The {left_out} words that turn least are left out."
    return lines, sentence


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
    reported = 0.0

    def report_progress(done: int, total: int) -> None:
        nonlocal reported
        if time.monotonic() - reported < PROGRESS_SECONDS:
            report()
            return
        reported = time.monotonic()
        report({"share": (part + done / max(total, 1)) / parts})

    return report_progress
