"""ReLU scores with their kinks rounded off, which a search climbs first: on these a word is drawn before it counts."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.closed_form import ClosedForm, Moved, Response, row_blocks

_FLOOR = 0.05
"""What is added to a row's sum, in widths: weights p then go from .2 to .9 as the only score goes from -4 to 1 widths.
Without it a row whose scores are all negative is a softmax of them, where ReLU leaves it zero."""


class SoftRelu(ClosedForm):
    """softplus(s_l), as it is or divided by the row's sum plus _FLOOR width: width log(1 + exp(s/width)).

    Tends to relu(s), and to relu(s) / sum relu(s) with zero for a row without a positive score.

    Args:
        normalized: whether the weights are divided by their sum.
        width: of the rounded kink, in units of the scores.
    """

    name = "soft-relu"

    def __init__(self, *, normalized: bool, width: float):
        self.normalized, self._width = normalized, width
        self.floor = _FLOOR * width

    def part(self, scores: Tensor) -> Tensor:
        """The weights before they are divided."""
        return self._width * torch.nn.functional.softplus(scores / self._width)

    def total(self, weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch 1"]:
        """What a row's weights are divided by."""
        return weights.sum(dim=-1, keepdim=True) + self.floor

    def part_slope(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(scores / self._width)

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        weights = self.part(scores)
        return weights / self.total(weights) if self.normalized else weights

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        if self.normalized:
            total = self.total(self.part(scores))
            slopes = (slopes - (attention * slopes).sum(dim=-1, keepdim=True)) / total
        return self.part_slope(scores) * slopes

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _SoftResponse(scores, self)

    def gain_slopes(self, scores: Float[Tensor, "n n"], attention: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        slope = self.part_slope(scores)
        return slope / self.total(self.part(scores)) if self.normalized else slope

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        return self.attention(scores.scatter(1, word.unsqueeze(1), -torch.inf))


class _SoftResponse(Response):
    """p = v / (v + rest), v = softplus(s + t), rest the divisor without the word; v itself where undivided."""

    def __init__(self, scores: Float[Tensor, "n n"], score: SoftRelu):
        self._score = score
        self._scores = scores.T.contiguous()
        self._rest = torch.zeros_like(self._scores)
        if score.normalized:
            for block in row_blocks(*scores.shape):
                weights = score.part(scores[block])
                self._rest[:, block] = (score.total(weights) - weights).clamp(min=score.floor).T

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        score = self._scores.index_select(0, words)
        before, after = self._score.part(score), self._score.part(score + moved)
        slope = self._score.part_slope(score + moved)
        if not self._score.normalized:
            return Moved(after, after - before, slope, slope)
        rest = self._rest.index_select(0, words)
        total = after + rest
        p_slope, gain_slope = rest * slope / total / total, (before + rest) * slope / total / total
        return Moved(after / total, (after - before) / total, p_slope, gain_slope)

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        score, rest = self._scores[words, rows], self._rest[words, rows]
        before, after = self._score.part(score), self._score.part(score + moved)
        return (after - before) / (after + rest) * (rest / (before + rest))
