"""Softmax scores."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.scores.certified import Certified, Rounding, RowSteps
from wordsens.maps.scores.closed_form import ClosedForm, Moved, Response, row_blocks
from wordsens.maps.scores.curves import Curve
from wordsens.maps.scores.sigmoid_curve import sigmoid_curve, sigmoid_errors, sigmoid_gain, tanh_half


class Softmax(ClosedForm, Certified):
    """exp(s_l) / sum_m exp(s_m)."""

    name, normalized, sums_to_one = "softmax", True, True

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return torch.softmax(scores, dim=-1)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return attention * (slopes - (attention * slopes).sum(dim=-1, keepdim=True))

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _SoftmaxResponse(scores)

    def gain_slopes(self, scores: Float[Tensor, "n n"], attention: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        return attention

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        return torch.softmax(scores.scatter(1, word.unsqueeze(1), -torch.inf), dim=-1)

    def others(self, scores: Float[Tensor, "N n"], attention: Float[Tensor, "N n"]) -> Float[Tensor, "N n"]:
        """The logarithm of the sum of the exponentials of a row without the word's."""
        return _rests(scores)

    def curve(self, scores: Float[Tensor, "w N"], others: Float[Tensor, "w N"], reach: Float[Tensor, "w N"]) -> Curve:
        return sigmoid_curve(scores - others, reach, None)

    def curve_errors(self, rounding: Rounding) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
        return sigmoid_errors(rounding, 2 * rounding.score)

    def weight_errors(
        self, scores: Float[Tensor, "N n"], attention: Float[Tensor, "N n"], error: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N n"]:
        """A weight changes by a factor in [exp(-2 error), exp(2 error)]; it is at most exp(2 error - its gap)."""
        most, leader = scores.max(dim=1, keepdim=True)
        moved = attention * torch.expm1(2 * error)
        at_most = torch.maximum(attention, torch.exp((scores - most + 2 * error).clamp(max=0)))
        moved = torch.where(moved < at_most, moved, at_most)
        others = moved.scatter(1, leader, 0.0).sum(dim=1, keepdim=True)
        return moved.scatter(1, leader, torch.minimum(moved.gather(1, leader), others))

    def row_steps(
        self, scores: Float[Tensor, "heads w n"], moves: Float[Tensor, "heads w n"], error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        """A weight changes by a factor in [exp(-2 m), exp(2 m)], m the largest move."""
        attention = (self.attention(scores) * torch.exp(8 * error)).clamp(max=1)
        change = attention * torch.expm1(2 * moves.amax(dim=2, keepdim=True))
        return RowSteps(change.nan_to_num(0.0, torch.inf), (attention + change).nan_to_num(1.0).clamp(max=1))


class _SoftmaxResponse(Response):
    """p = sigmoid(logit(a) + t). Logits are kept, so that 1 - a and p may be far below the rounding of 1."""

    def __init__(self, scores: Float[Tensor, "n n"]):
        self._logit = torch.empty_like(scores)
        for block in row_blocks(*scores.shape):
            self._logit[:, block] = (scores[block] - _rests(scores[block])).T

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        logit = self._logit.index_select(0, words)
        odds = logit.clamp(max=0).exp_()  # a/(1 - a), where a is at most 1/2
        p = logit.add_(moved).sigmoid_()
        # 1 - p may have lost its relative precision, but only where p is near 1 and the term is dwarfed by p Delta.
        rest = 1 - p
        # (p - a)/(1 - a) = p + odds (1 - p) times tanh(t/2): no cancellation, no overflow.
        gain = torch.addcmul(p, odds, rest).mul_(tanh_half(moved))
        p_slope = rest.mul_(p)
        return Moved(p, gain, p_slope, odds.mul_(p_slope).add_(p_slope))

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        return sigmoid_gain(self._logit[words, rows], moved)


def _rests(scores: Float[Tensor, "r n"]) -> Float[Tensor, "r n"]:
    """log of the sum of exp over each row but one entry."""
    total = torch.logsumexp(scores, dim=1, keepdim=True)
    attention = torch.exp(scores - total)
    # log(sum without i) = total + log(1 - a) where a is at most 1/2; past that it would cancel.
    rest = total + torch.log1p(-attention.clamp(max=0.5))
    largest, word = attention.max(dim=1)
    row = (largest > 0.5).nonzero().squeeze(1)
    if len(row):
        others = scores[row].scatter(1, word[row].unsqueeze(1), -torch.inf)
        rest[row, word[row]] = torch.logsumexp(others, dim=1)
    return rest
