"""Scores whose weights are not divided by their sum: each weight is a function of its own score."""

from abc import abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.maps.attention.scores.base import (
    AllRows,
    Batch,
    CertifiedElementwise,
    ClosedForm,
    Curve,
    Expanded,
    Expansion,
    Moved,
    PerPair,
    PerWord,
    Response,
    Rounding,
    RowErrors,
    Rows,
    Square,
    WordErrors,
    WordRows,
    between,
    nodes,
    secant_expansion,
)
from wordsens.maps.attention.scores.softmax import (
    STEEPEST_TURN,
    sigmoid_curve,
    sigmoid_errors,
    sigmoid_gain,
)


class Undivided(ClosedForm):
    """Each weight is a function of its own score."""

    normalized = False

    @abstractmethod
    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The weight after the score has moved, how much it has gained, and its slope."""

    def response(self, scores: Square) -> Response:
        return _UndividedResponse(scores, self)

    def gain_slopes(self, scores: Square, attention: Square) -> Square:
        return self.pull_back(scores, attention, torch.ones_like(scores))


class Relu(Undivided, CertifiedElementwise, Expanded):
    """relu(s_l), not divided."""

    name, kinked, lipschitz, homogeneous = "relu-unnormalized", True, 1.0, True

    def attention(self, scores: Rows) -> Rows:
        return torch.relu(scores)

    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        return torch.where(scores > 0, slopes, torch.zeros_like(slopes))

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        after = torch.relu(score + moved)
        # relu(s + t) - relu(s), without cancellation.
        gain = torch.where(score > 0, torch.maximum(moved, -score), after)
        return after, gain, torch.sign(after)

    def expansion(
        self, scores: WordRows, moves: WordRows, together: PerWord, error: WordErrors
    ) -> Expansion:
        """The secant is 1 while the score stays positive, 0 while negative; across 0, between."""
        across = (
            1 - (scores.abs() - error).clamp(min=0) / torch.where(moves > 0, moves, error)
        ).clamp(0, 1)
        across = across.nan_to_num(1.0)
        positive = scores > 0
        low = torch.where(positive, 1 - across, torch.zeros_like(across))
        return secant_expansion(
            scores, low, torch.where(positive, torch.ones_like(across), across), moves
        )

    def curve(self, scores: PerPair, others: PerPair, reach: PerPair) -> Curve:
        t = nodes(between(-scores, reach), reach, reach, power=1)
        p, before = torch.relu(scores.unsqueeze(-1) + t), torch.relu(scores)
        # Where both are positive p - a is t itself; the difference would cancel.
        g = torch.where((p > 0) & (scores > 0).unsqueeze(-1), t, p - before.unsqueeze(-1))
        rise = torch.where(p[..., 1:] > 0, t[..., 1:] - t[..., :-1], 0.0)
        return Curve(t, p, g, rise, torch.zeros_like(rise), torch.ones_like(scores), before)

    def curve_errors(self, rounding: Rounding) -> tuple[PerPair, PerPair]:
        shift = rounding.score + rounding.speed * rounding.radius
        return shift.expand_as(rounding.most_p), rounding.kink.expand_as(rounding.most_g)


class Sigmoid(Undivided, CertifiedElementwise, Expanded):
    """1 / (1 + exp(-s_l)), not divided."""

    name, lipschitz = "sigmoid", 0.25

    def attention(self, scores: Rows) -> Rows:
        return torch.sigmoid(scores)

    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        return slopes * attention * torch.sigmoid(-scores)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p = torch.sigmoid(score + moved)
        return p, sigmoid_gain(score, moved), p - p * p

    def expansion(
        self, scores: WordRows, moves: WordRows, together: PerWord, error: WordErrors
    ) -> Expansion:
        """By the second derivative where moves are small; by the range of the slope where that is
        less."""
        weights = self.attention(scores)
        slope = weights * torch.sigmoid(-scores)
        slope_error = slope * torch.expm1(4 * error + 1e-15)
        furthest = moves.amax(dim=1, keepdim=True) + error
        edge = (scores.abs() - furthest).clamp(min=0)
        high = torch.sigmoid(edge) * torch.sigmoid(-edge) * (1 + 1e-12)
        edge = scores.abs() + furthest
        secants = secant_expansion(
            scores, torch.sigmoid(edge) * torch.sigmoid(-edge) * (1 - 1e-12), high, moves
        )
        curved = 0.5 * torch.minimum(high, torch.full_like(high, STEEPEST_TURN))
        smooth = Expansion(
            slope, slope_error, curved, torch.zeros_like(slope), high * moves, secants.scale
        )
        small = (curved * moves).amax(dim=1, keepdim=True) < secants.spread.amax(
            dim=1, keepdim=True
        )
        picked = {
            field: torch.where(small, getattr(smooth, field), getattr(secants, field))
            for field in ("slope", "slope_error", "bend", "spread", "rise")
        }
        return replace(secants, **picked)

    def curve(self, scores: PerPair, others: PerPair, reach: PerPair) -> Curve:
        return sigmoid_curve(scores, reach, torch.ones_like(scores))

    def curve_errors(self, rounding: Rounding) -> tuple[PerPair, PerPair]:
        return sigmoid_errors(rounding, rounding.score)

    def weight_errors(self, scores: AllRows, attention: AllRows, error: RowErrors) -> AllRows:
        """Far from 0 a weight is within exp(-|score|) of 0 or of 1."""
        return torch.minimum(self.lipschitz * error, torch.exp((error - scores.abs()).clamp(max=0)))


class Linear(Undivided, CertifiedElementwise, Expanded):
    """s_l itself, not divided: linear attention without a feature map; 0 where a mask hides word
    l."""

    name, lipschitz, homogeneous = "linear", 1.0, True

    def attention(self, scores: Rows) -> Rows:
        return scores.masked_fill(scores == -torch.inf, 0.0)

    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        return slopes.masked_fill(scores == -torch.inf, 0.0)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = score == -torch.inf
        after, gain = ((score + moved).masked_fill_(hidden, 0.0), moved.masked_fill(hidden, 0.0))
        return after, gain, torch.ones_like(moved).masked_fill_(hidden, 0.0)

    def expansion(
        self, scores: WordRows, moves: WordRows, together: PerWord, error: WordErrors
    ) -> Expansion:
        ones = torch.ones_like(scores)
        return secant_expansion(scores, ones, ones, moves)

    def curve(self, scores: PerPair, others: PerPair, reach: PerPair) -> Curve:
        t = nodes(-reach, reach, reach, power=1)
        rise = t[..., 1:] - t[..., :-1]
        ones = torch.ones_like(scores)
        return Curve(t, scores.unsqueeze(-1) + t, t, rise, torch.zeros_like(rise), ones, scores)

    def curve_errors(self, rounding: Rounding) -> tuple[PerPair, PerPair]:
        shift = rounding.score + rounding.speed * rounding.radius
        return shift.expand_as(rounding.most_p), rounding.speed.expand_as(rounding.most_g)


class _UndividedResponse(Response):
    """p = g(s + t): no other score matters."""

    def __init__(self, scores: Square, score: Undivided):
        self._scores = scores.T.contiguous()
        self._score = score

    def move(self, moved: Batch, words: Int[Tensor, " b"]) -> Moved:
        p, gain, slope = self._score.move_weight(self._scores.index_select(0, words), moved)
        return Moved(p, gain, slope, slope)
