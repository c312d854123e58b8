"""Positive parts of the scores, divided by their sum."""

import torch
from jaxtyping import Bool, Float, Int
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

_JUMP_MARGIN = 1e-6
# No bound: where p jumps from 0 to 1, monotony gives the smaller bound, or the hull does.
_JUMP = 1e60


class DividedRelu(ClosedForm, Expanded):
    """relu(s_l) / sum_m relu(s_m); a row whose sum is 0 stays 0."""

    name, normalized, kinked, homogeneous = "relu", True, True, True

    def attention(self, scores: Rows) -> Rows:
        weights = torch.relu(scores)
        return weights / _or_one(weights.sum(dim=-1, keepdim=True))

    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        positive = scores > 0
        total = _or_one(torch.relu(scores).sum(dim=-1, keepdim=True))
        return torch.where(
            positive,
            (slopes - (attention * slopes).sum(dim=-1, keepdim=True)) / total,
            torch.zeros_like(slopes),
        )

    def push_forward(self, scores: Batch, attention: Batch, changes: Batch) -> Batch:
        total = _or_one(torch.relu(scores).sum(dim=-1, keepdim=True))
        moved = torch.where(scores > 0, changes, torch.zeros_like(changes)) / total
        return moved - attention * moved.sum(dim=-1, keepdim=True)

    def response(self, scores: Square) -> Response:
        return _DividedReluResponse(scores)

    def gain_slopes(self, scores: Square, attention: Square) -> Square:
        total = _or_one(torch.relu(scores).sum(dim=1, keepdim=True))
        return torch.where(scores > 0, 1 / total, torch.zeros_like(scores))

    def attention_without(
        self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]
    ) -> Float[Tensor, "r n"]:
        return self.attention(scores.scatter(1, word.unsqueeze(1), 0.0))

    def others(self, scores: AllRows, attention: AllRows) -> AllRows:
        """The sum of the positive parts of a row without the word's."""
        return _rests(scores)

    def curve(self, scores: PerPair, others: PerPair, reach: PerPair) -> Curve:
        """p = v/(v + others), v = relu(score + t), others the other weights of the row; 0 where v =
        0."""
        # Where others = 0 the curve jumps, and rounding of a score may put the jump a little
        # earlier.
        margin = torch.where(
            others == 0, _JUMP_MARGIN * (scores.abs() + reach), torch.zeros_like(scores)
        )
        t = nodes(between(-scores - margin, reach), reach, reach, power=2)
        weight_before, rest_by_node = torch.relu(scores), others.unsqueeze(-1)
        weight = torch.relu(scores.unsqueeze(-1) + t)
        total = _or_one(weight + rest_by_node)
        p = weight / total
        dominant = weight_before > others
        before = weight_before / _or_one(weight_before + others)
        factor = torch.where(
            dominant, torch.ones_like(weight_before), (weight_before + others) / _or_one(others)
        )
        factor = torch.where(
            (weight_before == 0) & (others == 0), torch.ones_like(weight_before), factor
        )
        # Where both are positive their difference is t itself; computed, it would cancel.
        step = torch.where(
            (weight > 0) & (scores > 0).unsqueeze(-1), t, weight - weight_before.unsqueeze(-1)
        )
        gain = step / total
        alone = (others == 0) & dominant
        g = torch.where(
            dominant.unsqueeze(-1),
            gain * (others / _or_one(weight_before + others)).unsqueeze(-1),
            gain,
        )
        g = torch.where(alone.unsqueeze(-1), p - 1, g)
        moves = weight[..., 1:] > 0
        least, width = weight[..., :-1] + rest_by_node, weight[..., 1:] - weight[..., :-1]
        share, longest = rest_by_node / _or_one(least), (width / _or_one(least)).clamp(max=_JUMP)
        jump = moves & (least == 0)
        rise = torch.where(jump, _JUMP, torch.where(moves, share * longest, 0.0))
        turn = torch.where(jump, _JUMP, torch.where(moves, 2 * share * longest.square(), 0.0))
        return Curve(t, p, g, rise, turn, factor, before, dominant=dominant)

    def curve_errors(self, rounding: Rounding) -> tuple[PerPair, PerPair]:
        n = rounding.all_scores.shape[1]
        rest, most_g = rounding.others, rounding.most_g
        shift = ((n + 1) * rounding.score + rounding.speed * rounding.radius) / rest
        p_error = shift.nan_to_num(1.0).clamp(max=1.0)
        g_error = (rounding.factor * rounding.kink / rest + 2 * most_g * shift).nan_to_num(
            torch.inf, torch.inf
        )
        g_error = torch.minimum(g_error, 4 / rounding.radius)
        # Where no other score can be positive, p is 0 or 1 whatever the rounding; the curve's jump
        # has a margin.
        unsure = _unsure(rounding.all_scores, rounding.score.T)
        others = (unsure.sum(dim=1, keepdim=True) - unsure.to(torch.int64))[:, rounding.words].T
        return torch.where(others > 0, p_error, 0.0), torch.where(others > 0, g_error, 0.0)

    def weight_errors(self, scores: AllRows, attention: AllRows, error: RowErrors) -> AllRows:
        n = scores.shape[1]
        left = (
            torch.relu(scores).sum(dim=1, keepdim=True) * (1 - n * torch.finfo(scores.dtype).eps)
            - n * error
        )
        moved = ((n * attention + 1) * error / left).clamp(max=1)
        moved = torch.where(left > 0, moved, torch.ones_like(moved))
        # A score that is negative, rounding or not, has no weight.
        return torch.where(_unsure(scores, error), moved, torch.zeros_like(moved))

    def row_steps(
        self, scores: HeadRows, moves: HeadRows, error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        """Over the least that the sum of the weights can be."""
        most = torch.relu(scores + moves + error)
        left = torch.relu(scores - moves - error).sum(dim=2, keepdim=True)
        change = torch.where(most > 0, moves / left, torch.zeros_like(most))
        return RowSteps(
            change.nan_to_num(torch.inf, torch.inf), (most / left).nan_to_num(0.0, torch.inf)
        )

    def expansion(
        self, scores: WordRows, moves: WordRows, together: PerWord, error: WordErrors
    ) -> Expansion:
        """Over the old sum, the row changing by zeta times that, zeta the old sum over the new
        one."""
        weights = torch.relu(scores)
        total = weights.sum(dim=1, keepdim=True)
        active = scores + moves + error > 0
        counted = active.sum(dim=1, keepdim=True).to(scores.dtype)
        drop = torch.minimum(
            counted.sqrt() * together.unsqueeze(1), (moves * active).sum(dim=1, keepdim=True)
        )
        loose = scores.shape[1] * (error + 4 * torch.finfo(scores.dtype).eps * total)
        left = total - drop - 2 * loose
        scale = torch.where(left > 0, (total + loose) / left, torch.inf)
        across = (
            1 - (scores.abs() - error).clamp(min=0) / torch.where(moves > 0, moves, error)
        ).clamp(0, 1)
        across = across.nan_to_num(1.0)
        low = torch.where(scores > 0, 1 - across, torch.zeros_like(across)) / total
        high = torch.where(scores > 0, torch.ones_like(across), across) / total
        slope = 0.5 * (high + low)
        return Expansion(
            slope=slope,
            slope_error=slope * (2 * loose / (total - loose)),
            bend=torch.zeros_like(slope),
            spread=0.5 * (high - low) * scale,
            rise=high * moves * scale,
            scale=scale.squeeze(1),
        )


class _DividedReluResponse(Response):
    """p = v / (v + rest), v = relu(s + t), rest the sum of the row's other weights; 0 where v is
    0."""

    def __init__(self, scores: Square):
        self._scores = torch.empty_like(scores)
        self._rest = torch.empty_like(scores)
        for block in row_blocks(*scores.shape):
            self._scores[:, block] = scores[block].T
            self._rest[:, block] = _rests(scores[block]).T

    def move(self, moved: Batch, words: Int[Tensor, " b"]) -> Moved:
        score, rest = self._scores.index_select(0, words), self._rest.index_select(0, words)
        before = torch.relu(score)
        after = score.add_(moved).relu_()
        positive = torch.sign(after)
        old_total, total = before + rest, _or_one(after + rest)
        # (p - a)/(1 - a) = (after - before)/total, also in a row of zeros, which word i then has
        # for itself.
        gain = (after - before).div_(total)
        gain_slope = old_total.mul_(positive).div_(total).div_(total)
        p_slope = rest.mul_(positive).div_(total).div_(total)
        return Moved(after.div_(total), gain, p_slope, gain_slope)

    def owned_gain(self, moved: Pairs, words: PairIndices, rows: PairIndices) -> Pairs:
        score, rest = self._scores[words, rows], self._rest[words, rows]
        before, after = torch.relu(score), torch.relu(score + moved)
        old_total, total = before + rest, _or_one(after + rest)
        # Where nothing else is positive, p and a are 0 or 1.
        return torch.where(
            rest == 0, after / total - 1, (after - before) / total * (rest / old_total)
        )


def _or_one(total: Tensor) -> Tensor:
    """The divisor, with 1 where it is zero: zero weights stay zero."""
    return torch.where(total > 0, total, torch.ones_like(total))


def _rests(scores: Float[Tensor, "r n"]) -> Float[Tensor, "r n"]:
    """The sum of each row's positive parts but one."""
    weights = torch.relu(scores)
    total = weights.sum(dim=1, keepdim=True)
    rest = total - weights
    # total - weight cancels where one word has more than half of the sum.
    row, word = (weights > 0.5 * total).nonzero(as_tuple=True)
    if len(row):
        rest[row, word] = weights[row].scatter(1, word.unsqueeze(1), 0.0).sum(dim=1)
    return rest


def _unsure(scores: Float[Tensor, "N n"], error: Float[Tensor, "N 1"]) -> Bool[Tensor, "N n"]:
    """True where it is uncertain whether a score is positive."""
    return scores > -2 * error
