"""The Jacobian of an attention layer in one word, for many words at once and without forming it.

At Delta = 0 (docs/proofs.md#the-small-radius-limit), row j != i of phi changes by

    dO_j = a_ji Delta + c_ji r_ji (u_j . Delta),    r_ji = x_i - o_j for divided scores, x_i for others,

u_j = W^T x_j / scale and c_ji = a_ji (softmax), 1/sum where the score is positive (divided relu),
or the score's derivative. Row i is a linear map of its own, through all its scores.
"""  # noqa: E501

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.head import HeadWeights
from wordsens.maps.attention.scores import ClosedForm


def attention_normal_product(
    rows: Float[Tensor, "n d"],
    weights: Sequence[HeadWeights],
    score: ClosedForm,
    words: Int[Tensor, " w"],
) -> Callable[[Float[Tensor, "w d"]], Float[Tensor, "w d"]]:
    """y -> J_i^T J_i y for the words i, row k of y for word k, J_i = d phi / d x_i. O(n d) a word,
    O(n²) memory."""
    heads = [_HeadJacobian(rows, head, score, words) for head in weights]
    return lambda vectors: torch.stack([head.normal_product(vectors) for head in heads]).sum(dim=0)


class _HeadJacobian:
    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        weights: HeadWeights,
        score: ClosedForm,
        words: Int[Tensor, " w"],
    ):
        self._weights, self._score, self._words = weights, score, words
        self._queries, self._keys = weights.queries(rows), weights.keys(rows)
        self._values, scores = weights.values(rows), weights.scores(rows)
        attention = score.attention(scores)
        self._row_scores, self._row_attention = scores[words], attention[words]
        self._outputs = (
            attention @ self._values if score.normalized else torch.zeros_like(self._values)
        )
        weight, slope = (
            attention[:, words].T.clone(),
            score.gain_slopes(scores, attention)[:, words].T.clone(),
        )
        lengths = torch.cdist(
            self._values[words], self._outputs, compute_mode="donot_use_mm_for_euclid_dist"
        ).square()
        pair = torch.arange(len(words), device=words.device)
        self._to_itself = weight[pair, words].unsqueeze(1)
        weight[pair, words] = 0
        slope[pair, words] = 0
        self._mixed, self._pushed = weight * slope, slope.square() * lengths
        self._weight_squares = weight.square().sum(dim=1, keepdim=True)

    def normal_product(self, vectors: Float[Tensor, "w d"]) -> Float[Tensor, "w d"]:
        values, value_delta = self._values[self._words], self._weights.value_change(vectors)
        moved = vectors @ self._queries.T
        along = (values * value_delta).sum(dim=1, keepdim=True) - value_delta @ self._outputs.T
        to_queries = self._mixed * along + self._pushed * moved
        back = self._mixed * moved
        on_projected = (
            self._weight_squares * value_delta
            + back.sum(dim=1, keepdim=True) * values
            - back @ self._outputs
        )
        through_queries = to_queries @ self._queries + self._row_product(
            vectors, value_delta, moved, on_projected
        )
        value = self._weights.value
        return through_queries + (on_projected if value is None else on_projected @ value.mT)

    def _row_product(
        self,
        vectors: Float[Tensor, "w d"],
        value_delta: Float[Tensor, "w m"],
        moved: Float[Tensor, "w n"],
        on_projected: Float[Tensor, "w m"],
    ) -> Float[Tensor, "w d"]:
        """Of the own rows; the part that goes through their values is added to `on_projected`."""
        pair, words = torch.arange(len(vectors), device=vectors.device), self._words
        score_change = vectors @ self._keys.T
        score_change[pair, words] += moved[pair, words]
        weight_change = self._score.push_forward(
            self._row_scores, self._row_attention, score_change
        )
        change = weight_change @ self._values + self._to_itself * value_delta
        back = self._score.pull_back(self._row_scores, self._row_attention, change @ self._values.T)
        on_projected += self._to_itself * change
        return back @ self._keys + back[pair, words].unsqueeze(1) * self._queries[words]
