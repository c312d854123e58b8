"""Figure 1 for any two sentences: their attention side by side."""

from dataclasses import asdict
from typing import Any

import torch

from wordsens.app.work.worker import Desk
from wordsens.errors import InputError
from wordsens.experiments.attention import moved_attention
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention_pair import attention_pair, comparable_pair
from wordsens.maps.transformer.features import loaded_model
from wordsens.report.attention import weight_matrices
from wordsens.text.embedding import embed


def attention(desk: Desk, model: str | None, first: str, second: str, layer: int, head: int | None) -> dict[str, Any]:
    """The matrices of a layer and head; `model` None for random attention, which has one of each."""
    if model is None:
        texts = embed([first, second])
        phi: Any = RandomAttentionFeatures(texts[0].rows.shape[1], seed=0)
        pair, layers, heads = attention_pair(phi, texts[0], texts[1]), 1, 1
    else:
        phi = loaded_model(model, torch.float32, "cpu")
        layers = phi.attention_layers
        if not 1 <= layer <= layers:
            raise InputError(f"`layer` (={layer}) does not exist; choose 1 to {layers}")
        pair = comparable_pair(phi, first, second, layer=layer, head=head)
        heads = len(phi.attention_of(phi.accept(phi.embed([first])[0].rows), layer))
    desk.tick()
    moved = None if pair.difference is None else moved_attention(pair)
    titles = first, second, "Difference: second − first"
    return {
        "matrices": [asdict(one) for one in weight_matrices(pair, titles)],
        "share": None if moved is None else float(moved.mean()),
        "layers": layers,
        "heads": heads,
        "most": None if moved is None else pair.tokens[0][int(moved.argmax())],
    }
