"""ReLU scores with their kinks rounded off, which a search climbs first: on these a word is drawn before it counts."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.scores.closed_form import ClosedForm, Moved, Response, row_blocks


class SoftRelu(ClosedForm):
    """softplus(s_l), divided by the row's sum or not: width log(1 + exp(s/width)), which tends to relu(s).

    Args:
        normalized: whether the weights are divided by their sum.
        width: of the rounded kink, in units of the scores.
    """

    name = "soft-relu"

    def __init__(self, *, normalized: bool, width: float):
        self.normalized, self._width = normalized, width

    def part(self, scores: Tensor) -> Tensor:
        """The weights before they are divided."""
        return self._width * torch.nn.functional.softplus(scores / self._width)

    def part_slope(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(scores / self._width)

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        weights = self.part(scores)
        return weights / _or_one(weights.sum(dim=-1, keepdim=True)) if self.normalized else weights

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        if self.normalized:
            total = _or_one(self.part(scores).sum(dim=-1, keepdim=True))
            slopes = (slopes - (attention * slopes).sum(dim=-1, keepdim=True)) / total
        return self.part_slope(scores) * slopes

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _SoftResponse(scores, self)

    def gain_slopes(self, scores: Float[Tensor, "n n"], attention: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        slope = self.part_slope(scores)
        return slope / _or_one(self.part(scores).sum(dim=1, keepdim=True)) if self.normalized else slope

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        return self.attention(scores.scatter(1, word.unsqueeze(1), -torch.inf))


class _SoftResponse(Response):
    """p = v / (v + rest), v = softplus(s + t), rest the sum of the row's other weights; v itself where undivided."""

    def __init__(self, scores: Float[Tensor, "n n"], score: SoftRelu):
        self._score = score
        self._scores = scores.T.contiguous()
        self._rest = torch.zeros_like(self._scores)
        if score.normalized:
            for block in row_blocks(*scores.shape):
                weights = score.part(scores[block])
                self._rest[:, block] = (weights.sum(dim=1, keepdim=True) - weights).clamp(min=0).T

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        score = self._scores.index_select(0, words)
        before, after = self._score.part(score), self._score.part(score + moved)
        slope = self._score.part_slope(score + moved)
        if not self._score.normalized:
            return Moved(after, after - before, slope, slope)
        rest = self._rest.index_select(0, words)
        total = _or_one(after + rest)
        p_slope, gain_slope = rest * slope / total / total, (before + rest) * slope / total / total
        return Moved(after / total, (after - before) / total, p_slope, gain_slope)

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        score, rest = self._scores[words, rows], self._rest[words, rows]
        before, after = self._score.part(score), self._score.part(score + moved)
        return (after - before) / _or_one(after + rest) * (rest / _or_one(before + rest))


def _or_one(total: Tensor) -> Tensor:
    return torch.where(total > 0, total, torch.ones_like(total))
