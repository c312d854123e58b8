"""A trained model: its attention on two sentences, the cosine of two texts by its words, and its
cosines of pairs."""

import csv
import io
import math
from typing import Any

import numpy as np

from wordsens.app.tasks.measure import progress, rounded, token_name
from wordsens.display.html import html_part
from wordsens.display.numbers import as_sentences, percent
from wordsens.display.view import View, Words
from wordsens.evaluation.check import KEEP
from wordsens.evaluation.explain import explain
from wordsens.evaluation.guard import guard
from wordsens.evaluation.pairs import choose_pairs, scored_by, similarities, similarity_name
from wordsens.findings.check import around
from wordsens.findings.explain import separation
from wordsens.intervals import kept_threshold
from wordsens.maps.attention_pair import comparable_pair
from wordsens.maps.transformer.features import loaded_model
from wordsens.models.load import load
from wordsens.models.model import Model
from wordsens.models.pairs import PairModel
from wordsens.text.pairs import Pair
from wordsens.text.tables import parsed_json
from wordsens.text.whole_words import lettered_spans
from wordsens.workers import report

# Words of a text that have numbers: each costs a run of the model or more.
EXPLAINED = 60

# The width of a bar of cosines; how many bars there are of other scores.
BIN, BINS = 0.02, 40


def attention(model: str, first: str, second: str, layer: int, head: int | None) -> dict[str, Any]:
    """Figure 1 for any two texts: the weights of a layer and head, as `parts.Lines` draws them."""
    phi = loaded_model(model)
    pair = comparable_pair(phi, first, second, layer=layer, head=head)
    moved = (pair.weights[1] - pair.weights[0]).abs().sum(dim=1) / 2
    heads = len(phi.attention_of(phi.accept(phi.embed([first])[0].rows), layer))
    tokens = [[token_name(token) for token in each] for each in pair.tokens]
    weights = [rounded(each) for each in pair.weights]
    sentence = (
        f"{percent(float(moved.mean()))} of all attention goes elsewhere in the second text; "
        f"the attention of “{tokens[0][int(moved.argmax())]}” changes most."
    )
    return {
        "lines": {
            "sentence": sentence,
            "before": {"title": first, "words": tokens[0], "weights": weights[0]},
            "title": second,
            "words": tokens[1],
            "frames": [weights[1]],
            "at": list(pair.changed),
        },
        "numbers": html_part(pair.view()),
        "layers": phi.attention_layers,
        "heads": heads,
    }


def two_texts(model: str, first: str, second: str) -> dict[str, Any]:
    """The similarity of two texts and the guard's verdict, which are a part; then, where a text has
    two words or more, what separates them, the words in colour, and all numbers."""
    loaded = load(model)
    judgement = guard(first, second)
    answer: dict[str, Any] = {
        "score": similarity_name(loaded),
        "value": float(similarities(loaded, [Pair("", first, second, same=False)])[0]),
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "cut": unread(loaded, first, second),
        "apart": "",
        "words": "",
        "numbers": "",
    }
    report(answer)
    if all(len(lettered_spans(text)) < 2 for text in (first, second)):
        return answer
    explained = explain(loaded, first, second, tries=2, words=EXPLAINED, progress=progress())
    view = explained.view()
    coloured = tuple(part for part in view.parts if isinstance(part, Words))
    rest = tuple(part for part in view.parts if not isinstance(part, Words))
    sentence, _ = separation(explained)
    return answer | {
        "apart": f"{sentence} {as_sentences(*explained.changes)}".strip(),
        "words": html_part(View("", coloured)),
        "numbers": html_part(View(view.headline, rest, notes=view.notes)),
    }


def check(model: str, length: str, own: str) -> dict[str, Any]:
    """The similarities that a model gives to opposites and near-duplicates: the package's of that
    length, or `own`; and how they are distributed: the edges of the bins and the shares of both.

    `refused`: whether the guard calls the texts of a pair different.
    """
    chosen, changes = choose_pairs(_rows(own) if own.strip() else None)
    offered = [pair for pair in chosen if own.strip() or length in ("all", pair.length)]
    counted = [pair for pair in offered if pair.near or not pair.same]
    scored = scored_by([load(model)], counted, changes, guard=True, progress=progress())
    rows = [
        {
            "value": round(float(scored.values[place]), 5),
            "kind": pair.kind,
            "same": pair.near,
            "refused": bool(scored.different[place]),
            "first": around(pair.first, pair.second),
            "second": around(pair.second, pair.first),
        }
        for place, pair in enumerate(scored.pairs)
    ]
    edges = np.histogram_bin_edges(scored.values, BINS)
    if scored.cosines:
        lowest = math.floor(10 * min(0.9, scored.values.min())) / 10
        edges = np.linspace(lowest, 1, round((1 - lowest) / BIN) + 1)
    shares = [
        np.histogram(scored.values[mask], edges)[0] / mask.sum()
        for mask in (scored.opposite, scored.near)
    ]
    return {
        "score": scored.scores[0],
        "cosines": scored.cosines,
        "threshold": float(kept_threshold(scored.values[scored.near], KEEP)),
        "rows": rows,
        "edges": edges.round(4).tolist(),
        "shares": [each.round(4).tolist() for each in shares],
        "stand_ins": scored.has_stand_ins,
        "changes": list(scored.changes),
    }


def _rows(content: str) -> list[dict[str, Any]]:
    """The rows of a pasted table with a line of names, or of JSON lines."""
    content = content.lstrip()
    if content.startswith("{"):
        lines = [line for line in content.splitlines() if line.strip()]
        return [parsed_json(line, f"line {number}") for number, line in enumerate(lines, start=1)]
    names = content.partition("\n")[0]
    return list(csv.DictReader(io.StringIO(content), delimiter=max("\t;|,", key=names.count)))


def unread(model: Model | PairModel, *texts: str) -> str:
    """A sentence on texts that the model does not read to their end; "" for others."""
    if isinstance(model, PairModel):
        spans = model.read_spans(*texts)
    else:
        spans = tuple(model.read_span(text) for text in texts)
    whole = [text.strip() for text in texts]
    parts = [text[slice(*span)].strip() for text, span in zip(texts, spans, strict=True)]
    if parts == whole:
        return ""
    unseen = parts[0] == parts[1] and whole[0] != whole[1]
    return f"The model does not read the texts to the end{', nor where they differ' * unseen}."
