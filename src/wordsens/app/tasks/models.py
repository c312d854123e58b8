"""A trained model: its attention on two sentences, the cosine of two texts by its words, and its
cosines of pairs."""

import csv
import io
from typing import Any

from wordsens.app.tasks.measure import rounded, token_name
from wordsens.app.worker import TaskContext
from wordsens.display.html import html_part
from wordsens.display.view import View, Words
from wordsens.errors import InputError
from wordsens.evaluation.check import KEEP
from wordsens.evaluation.explain import explain
from wordsens.evaluation.guard import guard
from wordsens.evaluation.pairs import choose_pairs, scored_by, similarities, similarity_name
from wordsens.findings.check import around
from wordsens.findings.explain import separation
from wordsens.intervals import kept_threshold
from wordsens.maps.attention_pair import attention_pair, comparable_pair
from wordsens.maps.transformer.features import loaded_model
from wordsens.models.load import load
from wordsens.models.model import Model
from wordsens.models.pairs import PairModel
from wordsens.text.pairs import Pair
from wordsens.text.tables import parsed_json
from wordsens.text.whole_words import lettered_spans

SAME = 5e-4
"""Attention that moves less than this share is the same."""


def attention(
    context: TaskContext, model: str, first: str, second: str, layer: int, head: int | None
) -> dict[str, Any]:
    """Figure 1 for any two texts: the weights of a layer and head."""
    phi = loaded_model(model)
    layers = phi.attention_layers
    if not 1 <= layer <= layers:
        raise InputError(f"`layer` (={layer}) does not exist; choose 1 to {layers}")
    compare = (
        attention_pair if first == second else comparable_pair
    )  # which refuses texts that read the same
    pair = compare(phi, first, second, layer=layer, head=head)
    heads = len(phi.attention_of(phi.accept(phi.embed([first])[0].rows), layer))
    context.tick()
    moved = None if pair.difference is None else pair.difference.abs().sum(dim=1) / 2
    share = None if moved is None else float(moved.mean())
    return {
        "words": [[token_name(token) for token in tokens] for tokens in pair.tokens],
        "weights": [rounded(weights) for weights in pair.weights],
        "changed": list(pair.changed),
        "share": 0.0 if share is not None and share < SAME else share,
        "most": None if moved is None else token_name(pair.tokens[0][int(moved.argmax())]),
        "layers": layers,
        "heads": heads,
    }


def two_texts(context: TaskContext, model: str, first: str, second: str) -> dict[str, Any]:
    """The similarity of two texts and the guard's verdict, which are a part; and, where a text has
    two words or more, the word that keeps them apart, the words in colour, and all numbers."""
    loaded = load(model)
    value = float(similarities(loaded, [Pair("", first, second, same=False)])[0])
    judgement = guard(first, second)
    answer: dict[str, Any] = {
        "score": similarity_name(loaded),
        "value": value,
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "cut": _cut(loaded, first, second),
        "apart": "",
        "words": "",
        "numbers": "",
    }
    context.send({"answer": answer})
    if max(len(list(lettered_spans(text))) for text in (first, second)) < 2:
        return answer
    explained = explain(loaded, first, second, tries=2, progress=context.progress)
    view = explained.view()
    coloured = tuple(part for part in view.parts if isinstance(part, Words))
    rest = tuple(part for part in view.parts if not isinstance(part, Words))
    answer["apart"], _ = separation(explained)
    return answer | {
        "words": html_part(View("", coloured)),
        "numbers": html_part(View(view.headline, rest)),
    }


def check(context: TaskContext, model: str, length: str, own: str) -> dict[str, Any]:
    """The similarities that a model gives to opposites and near-duplicates: the package's of that
    length, or `own`.

    A row: the similarity, the kind, whether both mean the same, whether the guard calls them
    different, the texts.
    """
    chosen, changes = choose_pairs(_rows(own) if own.strip() else None)
    offered = [pair for pair in chosen if own.strip() or length in ("all", pair.length)]
    counted = [pair for pair in offered if pair.near or not pair.same]
    scored = scored_by([load(model)], counted, changes, guard=True, progress=context.progress)
    rows = []
    for place, pair in enumerate(scored.pairs):
        value, different = round(float(scored.values[place]), 5), bool(scored.different[place])
        texts = around(pair.first, pair.second), around(pair.second, pair.first)
        rows.append([value, pair.kind, pair.near, different, *texts])
    return {
        "score": scored.scores[0],
        "cosines": scored.cosines,
        "threshold": float(kept_threshold(scored.values[scored.near], KEEP)),
        "rows": rows,
        "stand_ins": scored.has_stand_ins,
        "changes": list(scored.changes),
    }


def _rows(content: str) -> list[dict[str, Any]]:
    """The rows of a pasted table with a line of names, or of JSON lines."""
    if content.lstrip().startswith("{"):
        lines = [line for line in content.splitlines() if line.strip()]
        return [parsed_json(line, f"line {number}") for number, line in enumerate(lines, start=1)]
    names = content.lstrip().partition("\n")[0]
    return list(
        csv.DictReader(io.StringIO(content.lstrip()), delimiter=max("\t;|,", key=names.count))
    )


def _cut(model: Model | PairModel, *texts: str) -> str:
    """What of two texts the model does not read, in a sentence; "" where it reads all of both."""
    if isinstance(model, PairModel):
        spans = model.read_spans(*texts)
    else:
        spans = tuple(model.read_span(text) for text in texts)
    parts = [text[slice(*span)].strip() for text, span in zip(texts, spans, strict=True)]
    counts = [
        f"{len(part.split())} of the {len(text.split())} words of {which}"
        for part, text, which in zip(parts, texts, ("the first", "the second"), strict=True)
        if part != text.strip()
    ]
    if not counts:
        return ""
    sentence = f"The model reads only {' and '.join(counts)} text."
    unseen = " What it reads of both is equal: it never sees where they differ."
    return f"{sentence}{unseen * (parts[0] == parts[1])}"
