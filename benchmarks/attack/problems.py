"""Random problems, each rebuilt from one number: a text, a map, a radius. Weights come from the library's own maps."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

import wordsens as ws

from . import minilm
from .attention_map import SCORES, AttentionMap
from .dense_map import DenseMap
from .exact import ExactAttention, ExactChange, ExactDense
from .head_map import ExactHeads, GivenHeads, GivenMap

Array = NDArray[np.float64]

TEXTS = ("gaussian", "repeated", "parallel", "zero-sum", "huge-row", "orthogonal", "correlated", "from-weights", "near")
# One is drawn: softmax, divided ReLU and dense layers twice as often as the others.
MAPS = (
    *("softmax", "relu", "rf", "drf") * 2,
    *("relu-unnormalized", "sigmoid", "linear", "own-squares", "own-tanh"),
)
SCORE_NAMES = ("softmax", "relu", "softmax", "relu", "relu-unnormalized", "sigmoid", "linear")  # of integer texts
HEADS = ("given", "minilm")  # heads with matrices of their own: random ones, and trained ones on their own input
FIRST_OF_INTEGERS = 800_000  # of a seed's problems, those from this number on are of a few rows of small integers
FIRST_OF_HEADS = 900_000  # and those from this number on are of heads
LARGEST_DENSE = 240  # widest layer where the width is not given: keeps a problem under seconds


@dataclass(frozen=True)
class Problem:
    """One text under one map.

    `phi` is the library's (None where it takes no such score), `map` its twin in NumPy, `exact` the definition to 60
    digits. `radius` is `relative_radius` times sqrt(d), of trained heads times the mean length of a row; `text` is one
    of `TEXTS`, "integers", or "tokens" of trained heads; `map_name` is one of `MAPS` or `HEADS`.
    """

    seed: int
    map_name: str
    text: str
    X: Array
    radius: float
    relative_radius: float
    phi: ws.FeatureMap | None
    map: AttentionMap | DenseMap
    exact: ExactChange
    description: str


def problem(seed: int, most_words: int = 50, most_coordinates: int = 96, map_name: str | None = None) -> Problem:
    """The problem of that seed, up to a size; `map_name` one of `MAPS` or `HEADS`, None for one drawn."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(HEADS if seed % 10**6 >= FIRST_OF_HEADS else MAPS))
    name = name if map_name is None else map_name
    if FIRST_OF_INTEGERS <= seed % 10**6 < FIRST_OF_HEADS:
        return _integers(seed, rng, str(rng.choice(SCORE_NAMES)))
    if name == "minilm":
        return _minilm(seed, rng, _size(rng, 3, most_words))
    n, d = _size(rng, 2, most_words), _size(rng, 2, most_coordinates)
    text = str(rng.choice(TEXTS))
    relative_radius = _relative_radius(rng)
    radius = relative_radius * math.sqrt(d)
    if name in ("rf", "drf"):
        return _dense(seed, rng, name, text, n, d, radius, relative_radius)
    if name == "given":
        return _given(seed, rng, text, n, d, radius, relative_radius)
    return _attention(seed, rng, name, text, n, d, radius, relative_radius)


def _size(rng, low: int, high: int) -> int:
    return int(min(high, math.floor(math.exp(rng.uniform(math.log(low), math.log(high + 1))))))


def _relative_radius(rng) -> float:
    """In units of sqrt(d): 1 for a third, else .01 to 4, and 1e-12 to 1e4 for a sixth."""
    kind = rng.uniform()
    if kind < 1 / 3:
        return 1.0
    low, high = (0.01, 4.0) if kind < 5 / 6 else (1e-12, 1e4)
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def _attention(seed, rng, name, text, n, d, radius, relative_radius) -> Problem:
    heads = int(rng.choice([1, 1, 1, 2, 3]))
    W = rng.standard_normal((heads, d, d)) / math.sqrt(d)
    kind = rng.uniform()
    if kind < 0.1:  # low rank, as trained query-key products are
        rank = _size(rng, 1, d)
        W = rng.standard_normal((heads, d, rank)) @ rng.standard_normal((heads, rank, d)) / math.sqrt(d * rank)
    elif kind < 0.15:
        W = W + W.transpose(0, 2, 1)
    temperature = 1.0 if rng.uniform() < 0.5 else _temperature(rng)
    X = _text(rng, text, n, d, lambda: _attention_text(rng, W[0], n))
    given = torch.from_numpy(W if heads > 1 else W[0])
    phi = None
    if not name.startswith("own-") or hasattr(ws, "Score"):
        phi = ws.RandomAttentionFeatures.of_weight(given, library_score(name), temperature=temperature)
    exact = ExactAttention(W, temperature, name)
    numpy_map = AttentionMap(X, W, temperature * math.sqrt(d), SCORES[name], exact.rounded_scores(X))
    described = (
        f"raf {name} n={n} d={d} heads={heads} temperature={temperature:.3g} radius={relative_radius:.3g} sqrt(d)"
    )
    return Problem(
        seed, name, text, X, radius, relative_radius, phi, numpy_map, ExactChange(exact, X), f"{described} {text}"
    )


def _integers(seed, rng, name) -> Problem:
    """Words that have exactly half of a row, scores that are 0, sums that vanish: what other texts miss by a little."""
    n, d = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    X = rng.integers(-2, 3, (n, d)).astype(float)
    if rng.uniform() < 0.3:
        X = np.eye(d)[rng.integers(0, d, n)]
    X[~X.any(axis=1), 0] = 1.0
    W = rng.integers(-2, 3, (1, d, d)).astype(float)
    relative_radius = float(math.exp(rng.uniform(math.log(0.05), math.log(4.0))))
    temperature = float(10 ** rng.uniform(-1, 0.5))  # scores are rounded, and equal ones alike
    phi = ws.RandomAttentionFeatures.of_weight(torch.from_numpy(W[0]), name, temperature=temperature)
    exact = ExactAttention(W, temperature, name)
    numpy_map = AttentionMap(X, W, temperature * math.sqrt(d), SCORES[name], exact.rounded_scores(X))
    described = f"raf {name} n={n} d={d} temperature={temperature:.3g} radius={relative_radius:.3g} sqrt(d) integers"
    radius = relative_radius * math.sqrt(d)
    return Problem(seed, name, "integers", X, radius, relative_radius, phi, numpy_map, ExactChange(exact, X), described)


def _given(seed, rng, text, n, d, radius, relative_radius) -> Problem:
    heads = int(rng.choice([1, 1, 2, 3]))
    m, v = _size(rng, 1, d), _size(rng, 1, d)
    score = str(rng.choice(["softmax", "softmax", "softmax", "relu", "relu-unnormalized", "sigmoid", "linear"]))
    strength = 1.0 if rng.uniform() < 0.5 else 10 ** rng.uniform(-2, 2)
    query, key = (rng.standard_normal((heads, d, m)) * math.sqrt(strength / d) for _ in range(2))
    value = rng.standard_normal((heads, d, v)) / math.sqrt(d)
    biases = [rng.standard_normal((heads, size)) * float(rng.choice([0.0, 0.3, 3.0])) for size in (m, m, v)]
    output = None
    if heads == 1 and rng.uniform() < 0.5:
        output = rng.standard_normal((1, v, _size(rng, 1, d))) / math.sqrt(v)
    seen, masks = None, str(rng.choice(["none", "causal", "some"])) if score == "softmax" else "none"
    if masks != "none":
        seen = np.tril(np.ones((n, n), dtype=bool)) if masks == "causal" else rng.uniform(size=(n, n)) < 0.6
        seen |= np.eye(n, dtype=bool)
    X = _text(rng, text, n, d, lambda: _attention_text(rng, query[0] @ key[0].T, n))
    described = (
        f"given {score} n={n} d={d} m={m} v={v} heads={heads} mask={masks} strength={strength:.3g} "
        f"output={output is not None} radius={relative_radius:.3g} sqrt(d) {text}"
    )

    def of_library(array: Array | None) -> torch.Tensor | None:
        return None if array is None else torch.from_numpy(array if heads > 1 else array[0])

    phi = ws.AttentionFeatures(
        *(of_library(array) for array in (query, key, value, output)),
        score=score,
        mask=None if seen is None else torch.from_numpy(seen),
        bias=ws.AttentionBias(*map(of_library, biases)),
    )
    given = GivenHeads(query, key, value, *biases, output, seen)
    return _of_heads(seed, "given", text, X, radius, relative_radius, phi, given, score, described)


def _minilm(seed, rng, n: int) -> Problem:
    layer, at = int(rng.integers(1, minilm.LAYERS + 1)), int(rng.integers(minilm.HEADS))
    X = minilm.entering(minilm.tokens(rng, n), layer)
    relative_radius = _relative_radius(rng)
    radius = relative_radius * float(np.linalg.norm(X, axis=1).mean())
    phi = _minilm_of_the_library().at(layer=layer, head=at, input="its own")
    described = f"minilm layer={layer} head={at} n={n} radius={relative_radius:.3g} rows"
    given = minilm.head(layer, at)
    return _of_heads(seed, "minilm", "tokens", X, radius, relative_radius, phi, given, "softmax", described)


@cache
def _minilm_of_the_library() -> ws.TransformerFeatures:
    return ws.TransformerFeatures.from_pretrained("minilm")


def _of_heads(seed, name, text, X, radius, relative_radius, phi, given, score, described) -> Problem:
    exact = ExactHeads(given.query, 1.0, score, given=given)
    numpy_map = GivenMap(X, given, SCORES[score], exact.rounded_scores(X))
    return Problem(seed, name, text, X, radius, relative_radius, phi, numpy_map, ExactChange(exact, X), described)


def library_score(name: str):
    """What `RandomAttentionFeatures` takes as `score`: a name, or an object for a score of one's own."""
    if not name.startswith("own-"):
        return name

    class Squares(ws.Score):
        name, normalized = "own-squares", True

        def attention(self, scores):
            squares = scores.square()
            return squares / squares.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)

        def attention_without(self, scores, word):
            without = torch.arange(scores.shape[-1], device=scores.device) != word.unsqueeze(-1)
            return self.attention(scores * without)

    class Tanh(ws.Score):
        name, normalized = "own-tanh", False

        def attention(self, scores):
            return scores.tanh()

    return Squares() if name == "own-squares" else Tanh()


def _temperature(rng) -> float:
    """.05 to 20 for half, 1e-20 to 1e20 for the others."""
    decades = 1.3 if rng.uniform() < 0.5 else 20.0
    return float(10 ** rng.uniform(-decades, decades))


def _dense(seed, rng, name, text, n, d, radius, relative_radius) -> Problem:
    activation = str(rng.choice(["relu", "relu", "tanh", "erf", "gelu", "leaky_relu", "identity"]))
    depth = 1 if name == "rf" else int(rng.integers(2, 5))
    width = n * d if n * d <= LARGEST_DENSE and rng.uniform() < 0.6 else _size(rng, 4, LARGEST_DENSE)
    phi = ws.DeepRandomFeatures(n, d, depth, width, activation, "dense", int(rng.integers(2**31)))
    if depth == 1:
        phi = ws.RandomFeatures(n, d, width, activation, "dense", int(rng.integers(2**31)))
    weights = [V.numpy() for V in ([phi.weight] if depth == 1 else phi.weights)]
    X = _text(rng, text, n, d, lambda: _dense_text(rng, weights[0], n, d))
    described = f"{name} {activation} n={n} d={d} depth={depth} width={width} radius={relative_radius:.3g} sqrt(d)"
    return Problem(
        seed,
        name,
        text,
        X,
        radius,
        relative_radius,
        phi,
        DenseMap(X, weights, activation),
        ExactChange(ExactDense(weights, activation), X),
        f"{described} {text}",
    )


def _text(rng, kind: str, n: int, d: int, from_weights) -> Array:
    """Rows of length sqrt(d), but for zero-sum and huge-row texts."""
    X = rng.standard_normal((n, d))
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // int(rng.integers(2, 5))), n)]
    elif kind == "parallel":
        signs = rng.choice([-1.0, 1.0] if rng.uniform() < 0.5 else [1.0], n)
        X[: max(2, n // 2)] = X[0] * signs[: max(2, n // 2), None]
    elif kind == "orthogonal":
        base = np.linalg.qr(rng.standard_normal((max(n, d), max(n, d))))[0]
        X = base[:n, :d] * math.sqrt(d)
    elif kind == "correlated":
        cosine = rng.uniform(0.3, 0.999)
        X = math.sqrt(cosine) * X[:1] + math.sqrt(1 - cosine) * rng.standard_normal((n, d))
    elif kind == "near":
        X = X[:1] + 10.0 ** -rng.uniform(2, 9) * rng.standard_normal((n, d))
    elif kind == "from-weights":
        X = from_weights()
    X = X * (math.sqrt(d) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300))
    if kind == "zero-sum":
        half = n // 2
        X[half : 2 * half] = -X[:half]
        if n % 2:
            X[-1] = X[0] * rng.uniform(0.5, 1.5)
            X[half] -= X[-1]
        X = X[rng.permutation(n)]
    elif kind == "huge-row":
        X[rng.integers(n)] *= 10.0 ** rng.uniform(1, 6)
    return X


def _attention_text(rng, W: Array, n: int) -> Array:
    """Rows along W's singular or eigenvectors, or spread about one of them."""
    left, _, right = np.linalg.svd(W)
    axes = [left.T, right, np.linalg.eigh(W + W.T)[1].T[::-1]][rng.integers(3)]
    d = len(W)
    if rng.uniform() < 0.5:
        return axes[rng.integers(0, min(d, int(rng.integers(1, 4))), n)] * rng.choice([-1.0, 1.0], (n, 1)) + (
            rng.uniform(0, 0.3) * rng.standard_normal((n, d)) / math.sqrt(d)
        )
    return axes[np.arange(n) % d]


def _dense_text(rng, V: Array, n: int, d: int) -> Array:
    """A text whose active units are those where the block of one word is large along one of its singular vectors."""
    block = V.reshape(len(V), n, d)[:, rng.integers(n)]
    image = np.abs(block @ np.linalg.svd(block, full_matrices=False)[2][0])
    signs = np.where(image > np.quantile(image, rng.uniform(0.3, 0.9)), 1.0, -1.0)
    flat = np.linalg.lstsq(V, signs, rcond=None)[0]
    return flat.reshape(n, d) + 1e-3 * np.abs(flat).mean() * rng.standard_normal((n, d))
