"""The Jacobian of an attention layer in one word, for many words at once and without forming it.

At Delta = 0 (docs/theory/certificates-attention.md), row j != i of phi changes by

    dO_j = a_ji Delta + c_ji r_ji (u_j . Delta),    r_ji = x_i - o_j for scores divided by their sum, x_i for others,

u_j = W^T x_j / scale and c_ji = a_ji (softmax), 1/sum where the score is positive (divided relu), or the score's
derivative. Row i is a linear map of its own, through all its scores.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores import ClosedForm


class AttentionJacobian:
    """y -> J_i^T J_i y for the words i of a batch, J_i = d phi / d x_i. O(n d) a word and product, O(n²) memory.

    Args:
        rows: X, (n, d).
        matrices: (heads, d, d), W.
        scale: what the scores are divided by.
        score: how scores become weights.
        words: (w,), the words.
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        matrices: Float[Tensor, "heads d d"],
        scale: float,
        score: ClosedForm,
        words: Int[Tensor, " w"],
    ):
        self._heads = [_HeadJacobian(rows, matrix / scale, score, words) for matrix in matrices]

    def normal_product(self, vectors: Float[Tensor, "w d"]) -> Float[Tensor, "w d"]:
        """J_i^T J_i y, row k of `vectors` for word k."""
        return torch.stack([head.normal_product(vectors) for head in self._heads]).sum(dim=0)


class _HeadJacobian:
    def __init__(
        self, rows: Float[Tensor, "n d"], matrix: Float[Tensor, "d d"], score: ClosedForm, words: Int[Tensor, " w"]
    ):
        self._rows, self._score, self._words = rows, score, words
        self._queries, self._keys = rows @ matrix, rows @ matrix.T
        scores = self._queries @ rows.T
        attention = score.attention(scores)
        self._own_scores, self._own_attention = scores[words], attention[words]
        self._outputs = attention @ rows if score.normalized else torch.zeros_like(rows)
        weight, slope = attention[:, words].T.clone(), score.gain_slopes(scores, attention)[:, words].T.clone()
        lengths = torch.cdist(rows[words], self._outputs, compute_mode="donot_use_mm_for_euclid_dist").square()
        pair = torch.arange(len(words), device=words.device)
        self._to_itself = weight[pair, words].unsqueeze(1)
        weight[pair, words] = 0
        slope[pair, words] = 0
        self._mixed, self._pushed = weight * slope, slope.square() * lengths
        self._weight_squares = weight.square().sum(dim=1, keepdim=True)

    def normal_product(self, vectors: Float[Tensor, "w d"]) -> Float[Tensor, "w d"]:
        x = self._rows[self._words]
        moved = vectors @ self._queries.T
        along = (x * vectors).sum(dim=1, keepdim=True) - vectors @ self._outputs.T
        to_queries = self._mixed * along + self._pushed * moved
        back = self._mixed * moved
        result = self._weight_squares * vectors + to_queries @ self._queries
        result = result + back.sum(dim=1, keepdim=True) * x - back @ self._outputs
        return result + self._own_product(vectors, moved)

    def _own_product(self, vectors: Float[Tensor, "w d"], moved: Float[Tensor, "w n"]) -> Float[Tensor, "w d"]:
        pair, words = torch.arange(len(vectors), device=vectors.device), self._words
        score_change = vectors @ self._keys.T
        score_change[pair, words] += moved[pair, words]
        weight_change = self._score.push_forward(self._own_scores, self._own_attention, score_change)
        change = weight_change @ self._rows + self._to_itself * vectors
        back = self._score.pull_back(self._own_scores, self._own_attention, change @ self._rows.T)
        return self._to_itself * change + back @ self._keys + back[pair, words].unsqueeze(1) * self._queries[words]
