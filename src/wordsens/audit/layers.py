"""Sensitivity by layer and head on a few texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from wordsens.audit.text import chosen_words
from wordsens.maps.contract import perturbed_texts
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.sensitivity.whole_words import whole_word_sensitivity
from wordsens.text.document import Document


@dataclass(frozen=True)
class LayerSensitivity:
    """One layer.

    Attributes:
        layer: 1 to L.
        sensitivity: the mean over texts of the largest attained value over the searched words.
        heads: for each head, the mean over texts of the largest relative change of its output at the layer's witnesses:
            attained, and not searched for the head itself.
    """

    layer: int
    sensitivity: float
    heads: tuple[float, ...]


def layer_sensitivities(
    phi: TransformerFeatures, documents: Sequence[Document], *, words: int, max_words: int, seed: int = 0
) -> list[LayerSensitivity]:
    """Every layer's sensitivity, and every head's change at its witnesses. Cost: L short searches a text."""
    embedded = [(document, phi.embed(document, max_words=max_words)[0]) for document in documents]
    texts = [(document, text) for document, text in embedded if len(text.whole_words or ()) >= 2]
    if not texts:
        return []
    found = []
    for layer in range(1, phi.stack.layers + 1):
        values, heads = [], []
        for document, text in texts:
            chosen = chosen_words(text, words, seed=seed, content=document.text)
            result = whole_word_sensitivity(phi.at(layer=layer), text, chosen, seed, steps=0, generations=0)
            values.append(result.value)
            moved = [
                perturbed_texts(text.rows, torch.tensor([word.rows]), delta.unsqueeze(0).to(text.rows.dtype))
                for word, delta in zip(result.whole, result.perturbations, strict=True)
            ]
            heads.append([_head_change(phi.at(layer=layer, head=head), text.rows, torch.cat(moved))
                          for head in range(phi.stack.heads)])  # fmt: skip
        mean = torch.tensor(heads, dtype=torch.float64).mean(dim=0).tolist()
        found.append(LayerSensitivity(layer, sum(values) / len(values), tuple(mean)))
    return found


@torch.no_grad()
def _head_change(phi: TransformerFeatures, rows: torch.Tensor, moved: torch.Tensor) -> float:
    base = phi(rows).double()
    change = torch.linalg.vector_norm((phi(moved).double() - base).flatten(start_dim=1), dim=1)
    return float(change.max() / torch.linalg.vector_norm(base))
