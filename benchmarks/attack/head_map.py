"""Heads with matrices of their own, in plain NumPy and to 60 digits: rectangular queries and keys, values, an output
matrix, biases, masks. Scores (x_j W_Q + b_Q) . (x_l W_K + b_K) / sqrt(m), values (x_l W_V + b_V) W_O."""

import math
from dataclasses import dataclass, field

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .attention_map import AttentionMap, Head, Linear, Score
from .exact import BITS, ExactAttention, whole

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GivenHeads:
    """The matrices of one or more heads that stand side by side.

    Attributes:
        query, key: (heads, d, m); value: (heads, d, v); output: (heads, v, o), or None.
        query_bias, key_bias: (heads, m); value_bias: (heads, v); zeros for none.
        seen: (n, n), whether row j sees word l; None: all do.
    """

    query: Array
    key: Array
    value: Array
    query_bias: Array
    key_bias: Array
    value_bias: Array
    output: Array | None = None
    seen: NDArray[np.bool_] | None = None

    @property
    def sigma(self) -> float:
        """What divides the scores."""
        return math.sqrt(self.query.shape[2])

    def linear(self, X: Array, head: int) -> Linear:
        """What of a head is linear in one word."""
        W_Q, W_K, sigma = self.query[head], self.key[head], self.sigma
        values, lift = X @ self.value[head] + self.value_bias[head], self.value[head]
        if self.output is not None:
            values, lift = values @ self.output[head], lift @ self.output[head]
        queries, keys = X @ W_Q + self.query_bias[head], X @ W_K + self.key_bias[head]
        return Linear(queries @ W_K.T / sigma, keys @ W_Q.T / sigma, W_Q @ W_K.T / sigma, values, lift)


class GivenMap(AttentionMap):
    """‖phi(X^i(Delta)) - phi(X)‖² of such heads, and its gradient; `factor` divides the scores besides."""

    def __init__(self, X: Array, given: GivenHeads, score: Score, scores: Array, factor: float = 1.0):
        self.X, self.given, self.score, self.scores, self.factor = X, given, score, scores, factor
        self.words, self.coordinates = X.shape
        self.heads = [Head(given.linear(X, at).divided(factor), score, s) for at, s in enumerate(scores)]

    def softened(self, factor: float) -> "GivenMap":
        return GivenMap(self.X, self.given, self.score, self.scores / factor, self.factor * factor)

    def features(self, X: Array) -> Array:
        """phi(X) by the definition, in float64: (heads, n, v)."""
        given, outputs = self.given, []
        for at in range(len(given.query)):
            queries = X @ given.query[at] + given.query_bias[at]
            scores = queries @ (X @ given.key[at] + given.key_bias[at]).T / (given.sigma * self.factor)
            if given.seen is not None:
                scores = np.where(given.seen, scores, -np.inf)
            if self.score.function is None:
                weights = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
            else:
                weights = self.score.function(scores)
                if self.score.divided:
                    sums = weights.sum(axis=1, keepdims=True)
                    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
            outputs.append(weights @ given.linear(X, at).values)
        return np.stack(outputs)


def _added(first: tuple[NDArray, int], second: tuple[NDArray, int]) -> tuple[NDArray, int]:
    """The sum of whole numbers over powers of two."""
    power = max(first[1], second[1])
    return (first[0] << (power - first[1])) + (second[0] << (power - second[1])), power


@dataclass(frozen=True)
class ExactHeads(ExactAttention):
    """Such heads by the definition, to 60 digits; `weights` and `temperature` are not looked at."""

    given: GivenHeads = field(kw_only=True)

    def sigma(self, columns: int) -> mpmath.mpf:
        return mpmath.sqrt(self.given.query.shape[2])

    def scores(self, X: NDArray, power: int) -> tuple[list[NDArray], int]:
        given = self.given
        sides = []
        for matrices, biases in ((given.query, given.query_bias), (given.key, given.key_bias)):
            (W, of_weight), (b, of_bias) = whole(matrices), whole(biases)
            parts = [_added((X.dot(one), power + of_weight), (bias, of_bias)) for one, bias in zip(W, b, strict=True)]
            sides.append(parts)
        found = [q.dot(k.T) for (q, _), (k, _) in zip(*sides, strict=True)]
        return found, sides[0][0][1] + sides[1][0][1]

    def seen(self, rows: int) -> NDArray[np.bool_]:
        return np.ones((rows, rows), dtype=bool) if self.given.seen is None else self.given.seen

    def features(self, X: NDArray, power: int) -> tuple[NDArray, mpmath.mpf]:
        scores, score_power = self.scores(X, power)
        given = self.given
        (V, of_weight), (b, of_bias) = whole(given.value), whole(given.value_bias)
        values = [_added((X.dot(one), power + of_weight), (bias, of_bias)) for one, bias in zip(V, b, strict=True)]
        if given.output is not None:
            outputs, of_output = whole(given.output)
            values = [(value.dot(one), at + of_output) for (value, at), one in zip(values, outputs, strict=True)]
        with mpmath.workprec(BITS + 200):
            sigma = self.sigma(X.shape[1])
            unit = mpmath.ldexp(1, -values[0][1]) * self.weight_unit(score_power, sigma)
            weights = [self._weights(head, score_power, sigma) for head in scores]
            return np.concatenate([w.dot(value) for w, (value, _) in zip(weights, values, strict=True)]), unit
