"""Softmax scores, and the logistic curve that a moved weight follows under softmax and sigmoid
scores."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.base import (
    AllRows,
    Batch,
    ClosedForm,
    Curve,
    Expanded,
    Expansion,
    HeadRows,
    Moved,
    PairIndices,
    Pairs,
    PerPair,
    PerWord,
    Response,
    Rounding,
    RowErrors,
    Rows,
    RowSteps,
    Square,
    WordErrors,
    WordRows,
    between,
    nodes,
    row_blocks,
)

_LOW, _HIGH = (
    -6.0,
    7.0,
)  # outside these logits p is within .0025 of 0 or .001 of 1, and cells are wide
STEEPEST_TURN = 0.0963  # max of |sigmoid''| = 1/(6 sqrt(3)) = .09622...
_LARGEST_SHIFT = 0.1


def sigmoid_curve(logit: PerPair, reach: PerPair, factor: PerPair | None) -> Curve:
    """p = sigmoid(logit + t): softmax scores, and sigmoid scores.

    factor None: 1/(1 - a) where a <= 1/2 and 1 elsewhere, as softmax wants it.
    """
    low = between(_LOW - logit, reach)
    high = between(_HIGH - logit, reach)
    t = nodes(low, high, reach, power=1)
    before, rest = torch.sigmoid(logit), torch.sigmoid(-logit)
    dominant = torch.zeros_like(logit).bool() if factor is not None else logit > 0
    if factor is None:
        factor = torch.where(dominant, torch.ones_like(logit), 1 + logit.clamp(max=0).exp())
    p = torch.sigmoid(logit.unsqueeze(-1) + t)
    # p - a = (p (1 - a) + a (1 - p)) tanh(t/2): no cancellation where t is small.
    g = (
        p * (factor * rest).unsqueeze(-1) + (1 - p) * (factor * before).unsqueeze(-1)
    ) * torch.tanh(t / 2)
    edge = torch.minimum(p[..., 1:], torch.sigmoid(-logit.unsqueeze(-1) - t[..., :-1]))
    width = t[..., 1:] - t[..., :-1]
    rise, turn = edge.clamp(max=0.25) * width, edge.clamp(max=STEEPEST_TURN) * width**2
    return Curve(t, p, g, rise, turn, factor, before, dominant=dominant)


def sigmoid_errors(rounding: Rounding, logit: Float[Tensor, "1 N"]) -> tuple[PerPair, PerPair]:
    """Bounds of the errors of p and g / radius when the logits are off by up to `logit`: p is in
    [0, 1], |g| <= 1."""
    shift = logit + rounding.speed * rounding.radius
    p_error = 2 * rounding.most_p * shift
    g_error = 4 * logit * rounding.most_g
    g_error = g_error + 2 * rounding.factor * rounding.most_p.clamp(max=0.25) * rounding.speed
    far = shift > _LARGEST_SHIFT
    return torch.where(far, 1.0, p_error), torch.minimum(
        torch.where(far, torch.inf, g_error), 2 / rounding.radius
    )


def sigmoid_gain(logit: Tensor, moved: Tensor) -> Tensor:
    """p - a for a = sigmoid(logit), p = sigmoid(logit + moved): (p (1 - a) + a (1 - p))
    tanh(moved/2)."""
    after = logit + moved
    p, a = torch.sigmoid(after), torch.sigmoid(logit)
    spread = torch.sigmoid(-logit).mul_(p).addcmul_(a, torch.sigmoid(after.neg_()))
    return spread.mul_(tanh_half(moved))


def tanh_half(t: Tensor) -> Tensor:
    """tanh(t/2) = -y/(2 + y), y = exp(-t) - 1: in half the time of torch.tanh, and as precise near
    0."""
    y = (
        t.neg().clamp_(max=80.0).expm1_()
    )  # past 80 the quotient is 1 to rounding, and exp must not overflow
    return y.div_(y + 2).neg_()


class Softmax(ClosedForm, Expanded):
    """exp(s_l) / sum_m exp(s_m)."""

    name, normalized, sums_to_one, shift_invariant, masks = "softmax", True, True, True, True

    def attention(self, scores: Rows) -> Rows:
        return torch.softmax(scores, dim=-1)

    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        return attention * (slopes - (attention * slopes).sum(dim=-1, keepdim=True))

    def response(self, scores: Square) -> Response:
        return _SoftmaxResponse(scores)

    def gain_slopes(self, scores: Square, attention: Square) -> Square:
        return attention

    def attention_without(
        self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]
    ) -> Float[Tensor, "r n"]:
        """Zero where a mask hides all other words."""
        left = torch.softmax(scores.scatter(1, word.unsqueeze(1), -torch.inf), dim=-1)
        return left.nan_to_num(0.0)

    def others(self, scores: AllRows, attention: AllRows) -> AllRows:
        """The logarithm of the sum of the exponentials of a row without the word's."""
        return _rests(scores)

    def curve(self, scores: PerPair, others: PerPair, reach: PerPair) -> Curve:
        return sigmoid_curve(scores - others, reach, None)

    def curve_errors(self, rounding: Rounding) -> tuple[PerPair, PerPair]:
        return sigmoid_errors(rounding, 2 * rounding.score)

    def weight_errors(self, scores: AllRows, attention: AllRows, error: RowErrors) -> AllRows:
        """A weight changes by a factor in [exp(-2 error), exp(2 error)]; it is at most exp(2 error
        - its gap)."""
        most, leader = scores.max(dim=1, keepdim=True)
        moved = attention * torch.expm1(2 * error)
        at_most = torch.maximum(attention, torch.exp((scores - most + 2 * error).clamp(max=0)))
        moved = torch.where(moved < at_most, moved, at_most)
        others = moved.scatter(1, leader, 0.0).sum(dim=1, keepdim=True)
        return moved.scatter(1, leader, torch.minimum(moved.gather(1, leader), others))

    def row_steps(
        self, scores: HeadRows, moves: HeadRows, error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        """A weight changes by a factor in [exp(-2 m), exp(2 m)], m the largest move."""
        attention = (self.attention(scores) * torch.exp(8 * error)).clamp(max=1)
        change = attention * torch.expm1(2 * moves.amax(dim=2, keepdim=True))
        return RowSteps(
            change.nan_to_num(0.0, torch.inf), (attention + change).nan_to_num(1.0).clamp(max=1)
        )

    def expansion(
        self, scores: WordRows, moves: WordRows, together: PerWord, error: WordErrors
    ) -> Expansion:
        """New weights are a_l e^tau_l / Z, Z = sum_m a_m e^tau_m >= 1 by Jensen's inequality, sum_m
        a_m tau_m being 0.

        tau has the mean -a_l tau_l/(1 - a_l) over the others: Z >= a_l e^tau_l + (1 - a_l) e^(-a_l
        tau_l/(1 - a_l)).
        """
        attention = self.attention(scores)
        # What rounding can do to a weight, and to log Z through the mean that was subtracted.
        loose = 8 * error + 64 * scores.shape[1] * torch.finfo(scores.dtype).eps
        scale = torch.exp((loose * moves.amax(dim=1, keepdim=True)).squeeze(1))
        inflated = torch.exp(loose) * scale.unsqueeze(1)
        grid = torch.linspace(0, 1, _CELLS + 1, dtype=scores.dtype, device=scores.device)
        tau = moves.unsqueeze(-1) * grid
        odds = (torch.log1p(-attention) - attention.log()).unsqueeze(-1)
        rest = (1 - attention).unsqueeze(-1)
        # Where a mask hides all other words, they add nothing.
        others = torch.where(rest > 0, rest * torch.exp(-attention.unsqueeze(-1) * tau / rest), 0.0)
        least = attention.unsqueeze(-1) * tau.exp() + others
        # (e^tau - 1 - tau)/tau² rises; where it would cancel, e^(tau/2)/2 is above it.
        curved = torch.where(
            tau < 0.01, 0.5 * torch.exp(tau / 2), (torch.expm1(tau) - tau) / tau.square()
        )
        bend = (
            attention
            * (curved[..., 1:] / least[..., :-1].clamp(min=1)).amax(dim=-1).clamp(min=0.5)
            * inflated
        )
        rest = rest.squeeze(-1)
        most = torch.where(rest > 0, torch.exp(odds.squeeze(-1) - moves / rest), 0.0)
        rise = (
            torch.maximum(-torch.expm1(-moves) / (1 + most), -attention * torch.expm1(-moves))
            * inflated
        )
        return Expansion(
            slope=attention,
            slope_error=attention * torch.expm1(loose),
            bend=bend.nan_to_num(torch.inf),
            spread=torch.zeros_like(bend),
            rise=rise.nan_to_num(1.0).clamp(max=1),
            scale=scale,
        )


# Of the range of a score's move: the remainder is taken 2 % too large where scores move by 2.
_CELLS = 48


class _SoftmaxResponse(Response):
    """p = sigmoid(logit(a) + t). Logits are kept, so that 1 - a and p may be far below the rounding
    of 1."""

    def __init__(self, scores: Square):
        self._logit = torch.empty_like(scores)
        for block in row_blocks(*scores.shape):
            self._logit[:, block] = (scores[block] - _rests(scores[block])).T

    def move(self, moved: Batch, words: Int[Tensor, " b"]) -> Moved:
        logit = self._logit.index_select(0, words)
        odds = logit.clamp(max=0).exp_()  # a/(1 - a), where a is at most 1/2
        p = logit.add_(moved).sigmoid_()
        # 1 - p may have lost its relative precision, but only where p is near 1 and the term is
        # dwarfed by p Delta.
        rest = 1 - p
        # (p - a)/(1 - a) = p + odds (1 - p) times tanh(t/2): no cancellation, no overflow.
        gain = torch.addcmul(p, odds, rest).mul_(tanh_half(moved))
        p_slope = rest.mul_(p)
        return Moved(p, gain, p_slope, odds.mul_(p_slope).add_(p_slope))

    def owned_gain(self, moved: Pairs, words: PairIndices, rows: PairIndices) -> Pairs:
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
