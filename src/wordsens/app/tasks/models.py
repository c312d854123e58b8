"""A trained model: its attention on two sentences, a check of its cosines, and a score explained by its words."""

from typing import Any

import numpy as np
import torch

from wordsens.app.tasks.measure import rounded, token_name
from wordsens.app.worker import TaskContext
from wordsens.display.page import html_part
from wordsens.errors import InputError
from wordsens.evaluation.check import evaluate
from wordsens.evaluation.explain import explain as explanation_of
from wordsens.evaluation.similarities import choose_pairs, gives_cosines, readable, similarities, similarity_name
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention_pair import attention_pair, comparable_pair
from wordsens.maps.transformer.features import loaded_model
from wordsens.models.load import load
from wordsens.text.embedding import embed

BIN, BINS = 0.02, 40
SAME = 5e-4
"""Attention that moves less than this share is the same."""


def attention(
    context: TaskContext, model: str | None, first: str, second: str, layer: int, head: int | None
) -> dict[str, Any]:
    """Figure 1 for any two sentences: the weights of a layer and head; `model` None for random attention, which has one
    of each."""
    if model is None:
        texts = embed([first, second])
        phi: Any = RandomAttentionFeatures(texts[0].rows.shape[1], seed=0)
        pair, layers, heads = attention_pair(phi, texts[0], texts[1]), 1, 1
    else:
        phi = loaded_model(model, torch.float32, "cpu")
        layers = phi.attention_layers
        if not 1 <= layer <= layers:
            raise InputError(f"`layer` (={layer}) does not exist; choose 1 to {layers}")
        compare = attention_pair if first == second else comparable_pair  # which refuses texts that read the same
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


def check(context: TaskContext, model: str, length: str) -> dict[str, Any]:
    """The check of a model by its name on the pairs that the package brings: the worst kind on top."""
    loaded = load(model)
    chosen, notes = choose_pairs(None)
    pairs, unread = readable(loaded, [pair for pair in chosen if length in ("all", pair.length)])
    values = similarities(loaded, pairs, progress=context.progress)
    result = evaluate(loaded, pairs, values, notes=[*notes, *unread])
    cosines, start = gives_cosines(loaded), np.floor(values.min() / BIN) * BIN
    edges = np.arange(start, 1 + BIN, BIN) if cosines else np.histogram_bin_edges(values, BINS)
    return {
        "html": html_part(result.display()),
        "threshold": result.threshold,
        "similarity": similarity_name(loaded),
        "most": 1 if cosines else None,
        "values": {
            name: _histogram(values[members], edges)
            for name, members in (("opposites", result.measured.opposite), ("the same meaning", result.measured.near))
        },
    }


def _histogram(values: np.ndarray, edges: np.ndarray) -> dict[str, Any]:
    """The share of the values in each bin, at the bins' middles."""
    counts, _ = np.histogram(values, edges)
    middles = (edges[:-1] + edges[1:]) / 2
    points = [[round(float(at), 4), count / len(values)] for at, count in zip(middles, counts.tolist(), strict=True)]
    return {"count": len(values), "points": points}


def explain(context: TaskContext, model: str, text: str, other: str) -> dict[str, Any]:
    """A score, or a text's vector, by its words."""
    explained = explanation_of(model, text, other.strip() or None, tries=2, progress=context.progress)
    return {"html": html_part(explained.display())}
