"""The interface of a score that an upper bound needs (docs/theory/certificates-attention.md)."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.contract import Score
from wordsens.maps.attention.scores.curves import Curve


@dataclass(frozen=True)
class Rounding:
    """Bounds of the rounding in the curves of w words: word first, or one row for all words.

    Attributes:
        before: the scores at which the curves start.
        score: bounds of the error of any score of a row.
        speed: of the error of the speed at which row j's score with the word moves, ‖u_j‖.
        fastest: ‖u_j‖.
        radius: of each word's ball.
        most_p, most_g: the largest |p|, and the largest |g| / radius.
        factor: g = factor (p - a).
        others: what each row's other scores add up to, as `Certified.others` has it.
        all_scores: (N, n), of every row; `words` are the columns meant.
    """

    before: Float[Tensor, "w N"]
    score: Float[Tensor, "1 N"]
    speed: Float[Tensor, "1 N"]
    fastest: Float[Tensor, "1 N"]
    radius: Float[Tensor, "w 1"]
    most_p: Float[Tensor, "w N"]
    most_g: Float[Tensor, "w N"]
    factor: Float[Tensor, "w N"]
    others: Float[Tensor, "w N"]
    all_scores: Float[Tensor, "N n"]
    words: Int[Tensor, " w"]

    @property
    def kink(self) -> Float[Tensor, "w N"]:
        """Of the error, per radius, of relu(s + t) - relu(s).

        A score that is off puts the kink elsewhere: the difference is off by no more than twice that, and by no more
        than twice |t|. Where the kink is out of reach, the difference is t.
        """
        off = torch.minimum(2 * self.score / self.radius, 2 * self.fastest) + self.speed
        clear = self.before - 2 * self.fastest * self.radius > 2 * self.score
        return torch.where(clear, self.speed, off)


@dataclass(frozen=True)
class RowSteps:
    """Bounds for a row whose score l moves by at most moves_l: its output changes by at most

        sum_l change_l ‖x_l - c‖ + after_i ‖Delta‖,

    c being its output for divided scores and 0 for others, i the word whose row it is. Arrays are (heads, w, n).
    """

    change: Float[Tensor, "heads w n"]
    after: Float[Tensor, "heads w n"]


class Certified(Score):
    """A score whose weights are w(s_l), or w(s_l) / sum_m w(s_m) where `normalized`, w never falling, and w >= 0 there.

    For every method, `error` bounds how far rounding, or a move that nobody controls, may have put a score.

    Attributes:
        lipschitz: of w; only asked where the weights are not divided.
        masks: whether scores may be -inf, where a mask hides a word from a row.
    """

    lipschitz: float = torch.inf
    masks: bool = False

    @abstractmethod
    def curve(
        self,
        scores: Float[Tensor, "w N"],
        others: Float[Tensor, "w N"],
        reach: Float[Tensor, "w N"],
        fineness: int = 1,
    ) -> Curve:
        """The answer of a score's weight to its moving by up to `reach`; `others` of the row stand.

        On `fineness` times as many cells, if the score can: more cells, a sharper bound.
        """

    @abstractmethod
    def curve_errors(self, rounding: Rounding) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
        """Bounds of the errors of p, and of g / radius, anywhere on the curves."""

    @abstractmethod
    def weight_errors(
        self, scores: Float[Tensor, "N n"], attention: Float[Tensor, "N n"], error: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N n"]:
        """Bounds of the errors of the weights of rows whose scores are each off by up to `error`."""

    def others(self, scores: Float[Tensor, "N n"], attention: Float[Tensor, "N n"]) -> Float[Tensor, "N n"]:
        """The sum of row j's scores but the i-th, as `curve` wants it. Unused where nothing is divided."""
        return scores

    @abstractmethod
    def row_steps(
        self, scores: Float[Tensor, "heads w n"], moves: Float[Tensor, "heads w n"], error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        """The effect of all scores of a row moving at once; infinite if only that rows are means is known."""


class CertifiedElementwise(Certified):
    """The part that every score shares whose weights are not divided."""

    def weight_errors(
        self, scores: Float[Tensor, "N n"], attention: Float[Tensor, "N n"], error: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N n"]:
        return (self.lipschitz * error).expand_as(scores)

    def row_steps(
        self, scores: Float[Tensor, "heads w n"], moves: Float[Tensor, "heads w n"], error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        low, here, high = (self.attention(place) for place in (scores - moves - error, scores, scores + moves + error))
        # The differences are worth more where w is flat, the Lipschitz constant where they cancel.
        change = torch.minimum(torch.maximum(high - here, here - low), self.lipschitz * moves)
        return RowSteps(change, torch.maximum(high.abs(), low.abs()))
