"""Scores whose weights are not divided by their sum: each weight is a function of its own score."""

from abc import abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.base import ClosedForm, Moved, Response
from wordsens.maps.attention.scores.bounds import (
    CertifiedElementwise,
    Curve,
    Expanded,
    Expansion,
    Rounding,
    RowMoves,
    Tabulated,
    WeightTable,
    between,
    even_nodes,
    nodes,
    relu_table,
    secant_expansion,
)
from wordsens.maps.attention.scores.softmax import STEEPEST_TURN, sigmoid_curve, sigmoid_errors, sigmoid_gain

_FARTHEST = 24.0  # move of a score, in units of the scores' size, past which a table gains a few percent at most


class Undivided(ClosedForm):
    """Each weight is a function of its own score."""

    normalized = False

    @abstractmethod
    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The weight after the score has moved, how much it has gained, and its slope."""

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _UndividedResponse(scores, self)

    def gain_slopes(self, scores: Float[Tensor, "n n"], attention: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        return self.pull_back(scores, attention, torch.ones_like(scores))


class Relu(Undivided, CertifiedElementwise, Tabulated):
    """relu(s_l), not divided."""

    name, kinked, lipschitz, homogeneous = "relu-unnormalized", True, 1.0, True

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return torch.relu(scores)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return torch.where(scores > 0, slopes, torch.zeros_like(slopes))

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        after = torch.relu(score + moved)
        # relu(s + t) - relu(s), without cancellation.
        gain = torch.where(score > 0, torch.maximum(moved, -score), after)
        return after, gain, torch.sign(after)

    def expansion(
        self,
        scores: Float[Tensor, "w n"],
        moves: Float[Tensor, "w n"],
        together: Float[Tensor, " w"],
        error: Float[Tensor, "w 1"],
    ) -> Expansion:
        """The secant is 1 while the score stays positive, 0 while negative; across 0, between."""
        across = (1 - (scores.abs() - error).clamp(min=0) / torch.where(moves > 0, moves, error)).clamp(0, 1)
        across = across.nan_to_num(1.0)
        positive = scores > 0
        low = torch.where(positive, 1 - across, torch.zeros_like(across))
        return secant_expansion(scores, low, torch.where(positive, torch.ones_like(across), across), moves)

    def curve(
        self,
        scores: Float[Tensor, "w N"],
        others: Float[Tensor, "w N"],
        reach: Float[Tensor, "w N"],
        fineness: int = 1,
    ) -> Curve:
        return _relu_curve(scores, reach, fineness)

    def curve_errors(self, rounding: Rounding) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
        shift = rounding.score + rounding.speed * rounding.radius
        return shift.expand_as(rounding.most_p), rounding.kink.expand_as(rounding.most_g)

    def table(self, row: RowMoves) -> WeightTable:
        return relu_table(row)

    def table_gains(self, scores: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Bool[Tensor, " w"]:
        return moves.amax(dim=1) < _FARTHEST * scores.square().mean(dim=1).sqrt()


class Sigmoid(Undivided, CertifiedElementwise, Tabulated):
    """1 / (1 + exp(-s_l)), not divided."""

    name, lipschitz = "sigmoid", 0.25

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return torch.sigmoid(scores)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return slopes * attention * torch.sigmoid(-scores)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p = torch.sigmoid(score + moved)
        return p, sigmoid_gain(score, moved), p - p * p

    def expansion(
        self,
        scores: Float[Tensor, "w n"],
        moves: Float[Tensor, "w n"],
        together: Float[Tensor, " w"],
        error: Float[Tensor, "w 1"],
    ) -> Expansion:
        """By the second derivative where moves are small; by the range of the slope where that is less."""
        weights = self.attention(scores)
        slope = weights * torch.sigmoid(-scores)
        slope_error = slope * torch.expm1(4 * error + 1e-15)
        furthest = moves.amax(dim=1, keepdim=True) + error
        edge = (scores.abs() - furthest).clamp(min=0)
        high = torch.sigmoid(edge) * torch.sigmoid(-edge) * (1 + 1e-12)
        edge = scores.abs() + furthest
        secants = secant_expansion(scores, torch.sigmoid(edge) * torch.sigmoid(-edge) * (1 - 1e-12), high, moves)
        curved = 0.5 * torch.minimum(high, torch.full_like(high, STEEPEST_TURN))
        smooth = Expansion(
            slope, slope_error, curved, torch.zeros_like(slope), high * moves, secants.scale, secants.cap
        )
        small = (curved * moves).amax(dim=1, keepdim=True) < secants.spread.amax(dim=1, keepdim=True)
        picked = {
            field: torch.where(small, getattr(smooth, field), getattr(secants, field))
            for field in ("slope", "slope_error", "bend", "spread", "rise")
        }
        return replace(secants, **picked)

    def curve(
        self,
        scores: Float[Tensor, "w N"],
        others: Float[Tensor, "w N"],
        reach: Float[Tensor, "w N"],
        fineness: int = 1,
    ) -> Curve:
        return sigmoid_curve(scores, reach, torch.ones_like(scores), fineness)

    def curve_errors(self, rounding: Rounding) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
        return sigmoid_errors(rounding, rounding.score)

    def weight_errors(
        self, scores: Float[Tensor, "N n"], attention: Float[Tensor, "N n"], error: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N n"]:
        """Far from 0 a weight is within exp(-|score|) of 0 or of 1."""
        return torch.minimum(self.lipschitz * error, torch.exp((error - scores.abs()).clamp(max=0)))

    def table(self, row: RowMoves) -> WeightTable:
        """|w''| is at most w(1 - w), and at most `STEEPEST_TURN`; w turns up below 0 and down above."""
        tau = even_nodes(row.moves)
        here, turns = row.scores.unsqueeze(-1) + tau, row.turns.unsqueeze(-1)
        low, high = (torch.sigmoid(here + sign * turns) for sign in (-1, 1))
        below, above = (_sag(here + sign * turns, tau, sign) for sign in (-1, 1))
        off = 2 * row.scores.shape[1] * self.lipschitz * row.error.squeeze(1)
        return WeightTable(
            before=self.attention(row.scores),
            tau=tau,
            low=low,
            high=high,
            below=below,
            above=above,
            size=torch.ones_like(row.scores),
            off=off,
        )

    def table_gains(self, scores: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Bool[Tensor, " w"]:
        return moves.amax(dim=1) < _FARTHEST


class Linear(Undivided, CertifiedElementwise, Expanded):
    """s_l itself, not divided: linear attention without a feature map; 0 where a mask hides word l."""

    name, lipschitz, homogeneous = "linear", 1.0, True

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return scores.masked_fill(scores == -torch.inf, 0.0)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return slopes.masked_fill(scores == -torch.inf, 0.0)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = score == -torch.inf
        after, gain = ((score + moved).masked_fill_(hidden, 0.0), moved.masked_fill(hidden, 0.0))
        return after, gain, torch.ones_like(moved).masked_fill_(hidden, 0.0)

    def expansion(
        self,
        scores: Float[Tensor, "w n"],
        moves: Float[Tensor, "w n"],
        together: Float[Tensor, " w"],
        error: Float[Tensor, "w 1"],
    ) -> Expansion:
        ones = torch.ones_like(scores)
        return secant_expansion(scores, ones, ones, moves)

    def curve(
        self,
        scores: Float[Tensor, "w N"],
        others: Float[Tensor, "w N"],
        reach: Float[Tensor, "w N"],
        fineness: int = 1,
    ) -> Curve:
        return _linear_curve(scores, reach, fineness)

    def curve_errors(self, rounding: Rounding) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
        shift = rounding.score + rounding.speed * rounding.radius
        return shift.expand_as(rounding.most_p), rounding.speed.expand_as(rounding.most_g)


class _UndividedResponse(Response):
    """p = g(s + t): no other score matters."""

    def __init__(self, scores: Float[Tensor, "n n"], score: Undivided):
        self._scores = scores.T.contiguous()
        self._score = score

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        p, gain, slope = self._score.move_weight(self._scores.index_select(0, words), moved)
        return Moved(p, gain, slope, slope)


def _linear_curve(score: Float[Tensor, "w N"], reach: Float[Tensor, "w N"], fineness: int) -> Curve:
    t = nodes(-reach, reach, reach, power=1, fineness=fineness)
    rise = t[..., 1:] - t[..., :-1]
    p = score.unsqueeze(-1) + t
    return Curve(t, p, t, rise, torch.zeros_like(rise), torch.ones_like(score), score, affine=True)


def _relu_curve(score: Float[Tensor, "w N"], reach: Float[Tensor, "w N"], fineness: int) -> Curve:
    t = nodes(between(-score, reach), reach, reach, power=1, fineness=fineness)
    p = torch.relu(score.unsqueeze(-1) + t)
    before = torch.relu(score)
    # Where both are positive p - a is t itself; the difference would cancel.
    g = torch.where((p > 0) & (score > 0).unsqueeze(-1), t, p - before.unsqueeze(-1))
    rise = torch.where(p[..., 1:] > 0, t[..., 1:] - t[..., :-1], 0.0)
    return Curve(t, p, g, rise, torch.zeros_like(rise), torch.ones_like(score), before, affine=True)


def _sag(scores: Float[Tensor, "w n nodes"], tau: Float[Tensor, "w n nodes"], side: int) -> Float[Tensor, "w n cells"]:
    """How far the sigmoid may be above its chords, or below them where `side` is -1, by its second derivative."""
    start, end = scores[..., :-1], scores[..., 1:]
    edge = torch.maximum(start.clamp(min=0), -end.clamp(max=0))
    turn = (torch.sigmoid(edge) * torch.sigmoid(-edge)).clamp(max=STEEPEST_TURN) * (1 + 1e-12)
    sag = turn * (tau[..., 1:] - tau[..., :-1]).square() / 8
    sag = torch.minimum(sag, torch.sigmoid(end) - torch.sigmoid(start))
    return torch.where(end > 0 if side > 0 else start < 0, sag, 0.0)
