"""What an upper bound needs of a score (docs/theory/certificates-attention.md): curves, rounding, expansions, tables.

A `Curve` is the growth of the attention p of a row to the changed word with the row's score gain t, on a grid of t over
the whole range |t| <= ‖u_j‖ radius: p and the gain g at the nodes, and on each cell between two nodes bounds of p' and
p'', times the cell's width and its square. p never falls in t, which is all that the widest cells rely on. An
`Expansion` answers for a whole row to first order, for small radii; a `WeightTable` for rows that are not divided.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.base import Score

LOW_TAIL, INNER_NODES, HIGH_TAIL = 8, 25, 2
NODES = LOW_TAIL + INNER_NODES + HIGH_TAIL


@dataclass(frozen=True)
class Curve:
    """Word first, then row, then node (K of them) or cell (K - 1). The change of a row is p Delta + g r.

    Attributes:
        t: score gains; the first is -reach, the last is reach.
        p: the attention at the nodes.
        g: p - a, times `factor`.
        rise, turn: upper bounds of p' s and |p''| s² on each cell, s its width; p' is exact where `affine`.
        factor: (w, N), g = factor (p - a).
        before: (w, N), a.
        affine: whether p is affine on every cell.
        dominant: (w, N), where `factor` is that of a > 1/2: g goes with x_i less the row's output without word i, and
            elsewhere, if scores are divided, with x_i less the row's output. None: where `before` is more than 1/2.
            To be given where `factor` goes by another comparison: rounded, a may be 1/2 on either side of it.
    """

    t: Float[Tensor, "w N K"]
    p: Float[Tensor, "w N K"]
    g: Float[Tensor, "w N K"]
    rise: Float[Tensor, "w N cells"]
    turn: Float[Tensor, "w N cells"]
    factor: Float[Tensor, "w N"]
    before: Float[Tensor, "w N"]
    affine: bool = False
    dominant: Bool[Tensor, "w N"] | None = None

    @property
    def mostly(self) -> Bool[Tensor, "w N"]:
        """`dominant`, or what None stands for."""
        return self.before > 0.5 if self.dominant is None else self.dominant


def between(value: Tensor, reach: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(value, reach), -reach)


def nodes(low: Tensor, high: Tensor, reach: Tensor, *, power: int, fineness: int = 1) -> Tensor:
    """Tails from -reach to low and from high to reach, dense at low and high; for power 2 dense at low between them.

    `fineness` times `NODES` of them.
    """

    def line(count: int, power: int) -> Tensor:
        return torch.linspace(0, 1, count, dtype=low.dtype, device=low.device) ** power

    left, middle, reach = low.unsqueeze(-1), high.unsqueeze(-1), reach.unsqueeze(-1)
    low_tail, count, high_tail = (fineness * part for part in (LOW_TAIL, INNER_NODES, HIGH_TAIL))
    down, inner, up = line(low_tail + 1, 2).flip(0)[:-1], line(count, power), line(high_tail + 1, 2)[1:]
    nodes = torch.cat(
        [
            left * (1 - down) - reach * down,
            left * (1 - inner) + middle * inner,
            middle * (1 - up) + reach * up,
        ],
        dim=-1,
    )
    # Where a tail is empty, rounding could put its nodes out of order.
    return torch.minimum(nodes.cummax(dim=-1).values, reach)


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


@dataclass(frozen=True)
class Expansion:
    """The answer of a row to its scores' moves t_l, tau_l = t_l - sum_m mean_m t_m, the weights' mean being subtracted
    where the score is `shift_invariant`. For some 0 <= zeta <= scale its output changes by

        sum_l (zeta slope_l tau_l + rest_l) (x_l - c) + (zeta a_i + rho) Delta,

    with |rest_l| <= bend_l tau_l² + spread_l |tau_l| and |rho| <= rise_i; c is the old output for divided scores and 0
    for others, a_i the old weight of the word whose row it is. Word first.

    Attributes:
        slope_error: how far rounding may have put each slope from a true one.
        cap: no weight exceeds it; 1 where nothing better is known. Only for weights that sum to one.
    """

    slope: Float[Tensor, "w n"]
    slope_error: Float[Tensor, "w n"]
    bend: Float[Tensor, "w n"]
    spread: Float[Tensor, "w n"]
    rise: Float[Tensor, "w n"]
    scale: Float[Tensor, " w"]
    cap: Float[Tensor, " w"]


class Expanded(Certified):
    """A certified score that also says how a whole row answers to first order.

    Attributes:
        shift_invariant: whether adding one number to all scores of a row leaves the weights as they are.
    """

    shift_invariant: bool = False

    @abstractmethod
    def expansion(
        self,
        scores: Float[Tensor, "w n"],
        moves: Float[Tensor, "w n"],
        together: Float[Tensor, " w"],
        error: Float[Tensor, "w 1"],
    ) -> Expansion:
        """For |tau_l| <= moves_l and (sum_l tau_l²)^(1/2) <= together; each score may be off by `error`."""


def secant_expansion(
    weights: Float[Tensor, "w n"], low: Float[Tensor, "w n"], high: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]
) -> Expansion:
    """Of weights that are not divided, whose secants (w(s + t) - w(s))/t lie between `low` and `high`."""
    zeros, ones = torch.zeros_like(weights), torch.ones_like(weights[:, 0])
    return Expansion(0.5 * (high + low), zeros, zeros, 0.5 * (high - low), high * moves, ones, ones)


CELLS, STRIDE = 48, 4  # of a score's range; a kink stands at a node of those that STRIDE leaves


@dataclass(frozen=True)
class RowMoves:
    """Some rows of scores, and what can move them: score l by tau_l + q_l, |tau_l| <= moves_l and |q_l| <= turns_l.

    `error` is the most that rounding may have put any score off by, moved or not. Word first.
    """

    scores: Float[Tensor, "w n"]
    moves: Float[Tensor, "w n"]
    turns: Float[Tensor, "w n"]
    error: Float[Tensor, "w 1"]


@dataclass(frozen=True)
class WeightTable:
    """Weights E_l where score l has moved by tau_l + q_l.

    On a cell between two nodes of tau_l the lowest E_l is at most `below` below its chord, and the highest at most
    `above` above its own.

    Attributes:
        before: where nothing has moved.
        tau: the nodes, from -moves to moves.
        low, high: E at the nodes, q smallest and largest.
        size: entries are off by at most a few roundings of it.
        off: the most that rounding changes the new weights by, summed over the row.
    """

    before: Float[Tensor, "w n"]
    tau: Float[Tensor, "w n nodes"]
    low: Float[Tensor, "w n nodes"]
    high: Float[Tensor, "w n nodes"]
    below: Float[Tensor, "w n cells"]
    above: Float[Tensor, "w n cells"]
    size: Float[Tensor, "w n"]
    off: Float[Tensor, " w"]

    def of(self, chosen: Bool[Tensor, " w"]) -> "WeightTable":
        """Of some of the rows."""
        return replace(self, **{name: part[chosen] for name, part in vars(self).items()})


class Tabulated(Expanded):
    """A score whose weights are w(s_l), not divided, w never falling; it says w over a range."""

    @abstractmethod
    def table(self, row: RowMoves) -> WeightTable:
        """Of some rows; where numbers are extreme, entries need not be finite."""

    @abstractmethod
    def table_gains(self, scores: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Bool[Tensor, " w"]:
        """True where a bound by `table` may be less than what other bounds say, with moves without their q."""


def even_nodes(moves: Float[Tensor, "w n"]) -> Float[Tensor, "w n nodes"]:
    places = torch.linspace(-1, 1, CELLS + 1, dtype=moves.dtype, device=moves.device)
    return moves.unsqueeze(-1) * places


def relu_table(row: RowMoves) -> WeightTable:
    """Of relu(s_l)."""
    tau = _nodes_about(-row.scores, row.moves)
    here, turns = row.scores.unsqueeze(-1) + tau, row.turns.unsqueeze(-1)
    low, high = (torch.relu(here + sign * turns) for sign in (-1, 1))
    # A chord over the kink is above it by before (width - before)/width, `before` being the part of the cell before it.
    width = tau[..., 1:] - tau[..., :-1]
    before = torch.minimum((turns - here[..., :-1]).clamp(min=0), width)
    below = before * (width - before) / torch.where(width > 0, width, torch.ones_like(width))
    return WeightTable(
        before=torch.relu(row.scores),
        tau=tau,
        low=low,
        high=high,
        below=below,
        above=torch.zeros_like(below),
        size=row.scores.abs() + row.moves + row.turns,
        off=2 * row.scores.shape[1] * row.error.squeeze(1),
    )


def _nodes_about(kink: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Float[Tensor, "w n nodes"]:
    """From -moves to moves, one of those that `STRIDE` leaves at the kink where it is between them."""
    reach = torch.where(moves > 0, moves, torch.ones_like(moves))
    place = torch.where(kink.abs() < moves, kink / reach, torch.zeros_like(kink)).unsqueeze(-1)
    groups = CELLS // STRIDE
    left = ((0.5 * (place + 1) * groups).round().clamp(1, groups - 1)) * STRIDE
    index = torch.arange(CELLS + 1, dtype=moves.dtype, device=moves.device)
    nodes = torch.where(
        index <= left, -1 + (place + 1) * (index / left), place + (1 - place) * ((index - left) / (CELLS - left))
    )
    return moves.unsqueeze(-1) * nodes
