"""Sensitivity by layer and head on a few texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.evaluation.audit.text import chosen_words
from wordsens.maps.mapping import feature_norm, perturbed_texts
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.search.plan import SearchPlan
from wordsens.sensitivity.several_words import whole_word_sensitivity
from wordsens.text.document import Document

SHORT_SEARCH = SearchPlan("quick", starts=2, steps=6)
"""A few steps: every layer of every text has a search of its own."""


@dataclass(frozen=True)
class LayerSensitivity:
    """One layer.

    Attributes:
        layer: 1 to L.
        sensitivity: the mean over texts of the largest value over the searched words, a lower
            bound.
        heads: for each head, the mean over texts of the largest relative change of its output at
            the layer's witnesses, which were not searched for the head itself.
    """

    layer: int
    sensitivity: float
    heads: tuple[float, ...]


def layer_sensitivities(
    phi: TransformerFeatures,
    documents: Sequence[Document],
    *,
    words: int,
    max_words: int,
    seed: int = 0,
    progress: Callable[[float], None] = lambda done: None,
) -> list[LayerSensitivity]:
    """Every layer's sensitivity, and every head's change at its witnesses. Cost: L short searches a
    text.

    `progress` is called with the share that is done.
    """
    embedded = [(document, phi.embed(document, max_words=max_words)[0]) for document in documents]
    texts = [(document, text) for document, text in embedded if len(text.whole_words or ()) >= 2]
    if not texts:
        return []
    layers, depth = [], phi.attention_layers
    for layer in range(1, depth + 1):
        values, heads = [], []
        for document, text in texts:
            chosen = chosen_words(text, words, seed=seed, content=document.text)
            searched = whole_word_sensitivity(
                phi.at(layer=layer), text, chosen, seed=seed, search=SHORT_SEARCH
            )
            values.append(searched.value)
            moved = [
                perturbed_texts(
                    text.rows, torch.tensor([group]), delta.unsqueeze(0).to(text.rows.dtype)
                )
                for group, delta in zip(searched.groups, searched.witnesses, strict=True)
            ]
            heads.append(_head_changes(phi, layer, torch.cat([text.rows.unsqueeze(0), *moved])))
        # A layer costs a pass of all layers below it.
        progress(layer * (layer + 1) / (depth * (depth + 1)))
        mean = torch.tensor(heads, dtype=torch.float64).mean(dim=0).tolist()
        layers.append(LayerSensitivity(layer, sum(values) / len(values), tuple(mean)))
    return layers


@torch.no_grad()
def _head_changes(
    phi: TransformerFeatures, layer: int, texts: Float[Tensor, "b n d"]
) -> list[float]:
    """For each head the largest relative change of its output from the first text to any other."""
    changes = []
    rows = texts.to(phi.model.dtype)
    for outputs in phi.heads.outputs(rows, layer, range(phi.model.heads)):
        base, *moved = outputs.double().flatten(start_dim=1)
        changes.append(
            max(float(torch.linalg.vector_norm(one - base)) for one in moved)
            / feature_norm(base, phi.name)
        )
    return changes
