"""A model's similarity of the two texts of every pair."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.models.black_box import Model
from wordsens.models.pairs import PairModel
from wordsens.text.pairs import Pair

CHUNK = 64
"""Texts, or pairs, between two reports of progress."""

Progress = Callable[[int, int], None]


def similarities(
    model: Model | PairModel, pairs: Sequence[Pair], *, progress: Progress = lambda done, total: None
) -> Float[np.ndarray, " pairs"]:
    """The cosine of every pair's two vectors, in float64; of a model that scores pairs, its score.

    A text that several pairs share is encoded once, and texts of like length go together.

    Args:
        model: what is asked.
        pairs: of texts.
        progress: called with (done, total), in texts or pairs, after every chunk.

    Raises:
        InputError: the model's answer is no vector a text.
    """
    if isinstance(model, PairModel):
        return _scores(model, pairs, progress)
    vectors = unit_vectors(model.encode, [text for pair in pairs for text in (pair.first, pair.second)], progress)
    return np.array([float(vectors[pair.first] @ vectors[pair.second]) for pair in pairs])


def unit_vectors(encode: Callable[[list[str]], Tensor], texts: Sequence[str], progress: Progress) -> dict[str, Tensor]:
    """Every text's vector at length one, (d,), or at every layer (layers, d), where `encode` gives (layers, m, d)."""
    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    found: dict[str, Tensor] = {}
    for start in range(0, len(ordered), CHUNK):
        chunk = ordered[start : start + CHUNK]
        units = torch.nn.functional.normalize(encode(chunk).to("cpu", torch.float64), dim=-1)
        found |= {text: units[..., at, :] for at, text in enumerate(chunk)}
        progress(len(found), len(ordered))
    return found


def _scores(model: PairModel, pairs: Sequence[Pair], progress: Progress) -> Float[np.ndarray, " pairs"]:
    order = sorted(range(len(pairs)), key=lambda at: (len(pairs[at].first) + len(pairs[at].second), at))
    scores = np.empty(len(pairs))
    for start in range(0, len(order), CHUNK):
        chunk = order[start : start + CHUNK]
        given = model.score([pairs[at].first for at in chunk], [pairs[at].second for at in chunk])
        scores[chunk] = given.numpy()
        progress(start + len(chunk), len(order))
    return scores
