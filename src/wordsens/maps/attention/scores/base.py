"""Attention scores: the contract, and what a score may offer beside it, as types.

A `ClosedForm` has the answer of a weight to its own score in closed form. A `Certified` score has
what an upper bound needs (docs/theory/certificates.md#attention). A `Curve` is the growth of the
attention p of a row to the changed word with the row's score gain t, on a grid of t over the whole
range |t| <= ‖u_j‖ radius: p and the gain g at the nodes, and on each cell between two nodes bounds
of p' and p'', times the cell's width and its square. p never falls in t, which is all that the
widest cells rely on. An `Expansion` answers for a whole row to first order, for small radii.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from inspect import isabstract
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Ability = TypeVar("Ability", bound="Score")
# Scores, or weights, of rows.
Rows = Float[Tensor, "*batch n"]
# Of a batch of rows, or of all rows to each of a batch of moved words.
Batch = Float[Tensor, "b n"]
Square = Float[Tensor, "n n"]
Pairs = Float[Tensor, "..."]
# Of single pairs of a word and a row.
PairIndices = Int[Tensor, "..."]
# Of the rows of all heads, each with all words.
AllRows = Float[Tensor, "N n"]
RowErrors = Float[Tensor, "N 1"]
PerWord = Float[Tensor, " w"]
WordErrors = Float[Tensor, "w 1"]


class Score(ABC):
    """A rule that turns the scores (..., n) of a row into its attention weights.

    A subclass needs `name`, `normalized` and `attention`. Two further base classes add to it: a
    `ClosedForm` score is searched by the closed form of the change instead of by autograd; a
    `Certified` score has upper bounds. See `offered`.

    Attributes:
        name: what tables and records call the score; the map's name is made of it.
        normalized: whether the weights are nonnegative and divided by their sum, so that they sum
            to one, or are all 0.
        sums_to_one: whether every row of weights sums to one, whatever the scores.
        kinked: whether the weights have kinks as functions of the scores, which stop a quasi-Newton
            search early.

    >>> import torch
    >>> class Squares(Score):
    ...     name, normalized = "squares", False
    ...
    ...     def attention(self, scores):
    ...         return scores.square()
    >>> Squares().attention(torch.tensor([1.0, -2.0]))
    tensor([1., 4.])
    """

    name: str
    normalized: bool
    sums_to_one: bool = False
    kinked: bool = False

    @abstractmethod
    def attention(self, scores: Rows) -> Rows:
        """The weights, by torch operations that autograd can follow."""

    def attention_without(
        self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]
    ) -> Float[Tensor, "r n"]:
        """The weights of r rows after one word of each is deleted. Called for normalized scores
        only."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say what its weights are without a word"
        )


def offered(score: Score, ability: type[Ability]) -> Ability | None:
    """The score as a `ClosedForm` or a `Certified`, where it is one; None elsewhere.

    What a finished score offers is not inherited: a subclass may change the weights, and what its
    parent knows of them would no longer be true. A subclass that keeps it says so:
    `class Mine(Softmax, ClosedForm, Certified)`. Nor does an instance offer anything whose
    `attention` was replaced.

    >>> from wordsens.maps.attention.scores import Certified, Softmax
    >>> offered(type("Mine", (Softmax,), {})(), Certified) is None
    True
    """
    if not isinstance(score, ability) or "attention" in vars(score):
        return None
    cls, *parents = type(score).__mro__
    finished = any(issubclass(parent, ability) and not isabstract(parent) for parent in parents)
    said = any(issubclass(base, ability) and isabstract(base) for base in cls.__bases__)
    return None if finished and not said else score


@dataclass(frozen=True)
class Moved:
    """The effect of a moved score of row j with word i on row j, whose output changes by p Delta +
    gain r.

    r is x_i - o_j for weights divided by their sum, and x_i for others. Arrays are [pair, row].

    Attributes:
        p: the attention after the move.
        gain: (p - a)/(1 - a) for weights divided by their sum, p - a for others. Keeps its relative
            precision where p and a are close. For divided weights with a > 1/2 it is finite, and
            wrong: see `Response.owned_gain`.
        p_slope, gain_slope: their derivatives in the score.
    """

    p: Batch
    gain: Batch
    p_slope: Batch
    gain_slope: Batch


class Response(ABC):
    """The answer of the attention a_ji of row j to word i when its score moves by t, all other
    scores fixed.

    Built from the scores s (row first); O(n²) once, and one or two arrays of n² numbers, kept word
    first.
    """

    @classmethod
    def joined(cls, responses: "Sequence[Response]") -> "Response":
        """One for several texts of one shape, whose words are numbered through: the arrays, one
        after the other."""
        if len(responses) == 1:
            return responses[0]
        joined = copy(responses[0])
        for name, part in vars(joined).items():
            if isinstance(part, Tensor):
                setattr(
                    joined, name, torch.cat([getattr(response, name) for response in responses])
                )
        return joined

    @abstractmethod
    def move(self, moved: Batch, words: Int[Tensor, " b"]) -> Moved:
        """The answer of every row to t = moved."""

    def owned_gain(self, moved: Pairs, words: PairIndices, rows: PairIndices) -> Pairs:
        """p - a for single pairs of a word and a row with a > 1/2; shapes broadcast. Only for
        normalized scores."""
        raise AssertionError(f"{type(self).__name__} is not of scores divided by their sum")


class ClosedForm(Score):
    """A score with derivatives, and an answer to one moved score, in closed form.

    Attributes:
        homogeneous: whether the weights of c s are those of s times a power of c, for every c > 0:
            the temperature is then a unit of measurement.
    """

    homogeneous: bool = False

    @abstractmethod
    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        """The gradient in the scores of a function whose gradient in the weights is `slopes`."""

    def push_forward(self, scores: Batch, attention: Batch, changes: Batch) -> Batch:
        """The change of the weights, to first order, when the scores change by `changes`.

        The transpose of `pull_back`; the same, where the derivative of the weights is a symmetric
        matrix.
        """
        return self.pull_back(scores, attention, changes)

    @abstractmethod
    def response(self, scores: Square) -> Response:
        """The answer of the weight of one word to its own score."""

    @abstractmethod
    def gain_slopes(self, scores: Square, attention: Square) -> Square:
        """The derivative of every `Moved.gain` in its score, where nothing has moved yet."""


def row_blocks(n: int, columns: int) -> list[slice]:
    """Blocks of the n rows to work on in turn, so that no temporary array is large beside the
    arrays that are kept."""
    size = max(1, _BLOCK_NUMBERS // columns)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


_BLOCK_NUMBERS = 1 << 21


LOW_TAIL, INNER_NODES, HIGH_TAIL = 8, 25, 2
NODES = LOW_TAIL + INNER_NODES + HIGH_TAIL

# Of w words and the N rows of all heads.
PerPair = Float[Tensor, "w N"]
WordRows = Float[Tensor, "w n"]
# The own rows of w words, under one head and under each.
HeadRows = Float[Tensor, "heads w n"]


@dataclass(frozen=True)
class Curve:
    """Word first, then row, then node (K of them) or cell (K - 1). The change of a row is p Delta +
    g r.

    Attributes:
        t: score gains; the first is -reach, the last is reach.
        p: the attention at the nodes.
        g: p - a, times `factor`.
        rise, turn: upper bounds of p' s and |p''| s² on each cell, s its width.
        factor: (w, N), g = factor (p - a).
        before: (w, N), a.
        dominant: (w, N), where `factor` is that of a > 1/2: g goes with x_i less the row's output
            without word i, and elsewhere, if scores are divided, with x_i less the row's output.
            None: where `before` is more than 1/2. To be given where `factor` goes by another
            comparison: rounded, a may be 1/2 on either side of it.
    """

    t: Float[Tensor, "w N K"]
    p: Float[Tensor, "w N K"]
    g: Float[Tensor, "w N K"]
    rise: Float[Tensor, "w N cells"]
    turn: Float[Tensor, "w N cells"]
    factor: PerPair
    before: PerPair
    dominant: Bool[Tensor, "w N"] | None = None

    @property
    def mostly(self) -> Bool[Tensor, "w N"]:
        """`dominant`, or what None stands for."""
        return self.before > 0.5 if self.dominant is None else self.dominant


def between(value: Tensor, reach: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(value, reach), -reach)


def nodes(low: Tensor, high: Tensor, reach: Tensor, *, power: int) -> Tensor:
    """`NODES` of them: tails from -reach to low and from high to reach, dense at low and high;
    between them, for power 2, dense at low."""

    def line(count: int, power: int) -> Tensor:
        return torch.linspace(0, 1, count, dtype=low.dtype, device=low.device) ** power

    left, middle, reach = low.unsqueeze(-1), high.unsqueeze(-1), reach.unsqueeze(-1)
    down, inner, up = (
        line(LOW_TAIL + 1, 2).flip(0)[:-1],
        line(INNER_NODES, power),
        line(HIGH_TAIL + 1, 2)[1:],
    )
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

    before: PerPair
    score: Float[Tensor, "1 N"]
    speed: Float[Tensor, "1 N"]
    fastest: Float[Tensor, "1 N"]
    radius: Float[Tensor, "w 1"]
    most_p: PerPair
    most_g: PerPair
    factor: PerPair
    others: PerPair
    all_scores: Float[Tensor, "N n"]
    words: Int[Tensor, " w"]

    @property
    def kink(self) -> PerPair:
        """Of the error, per radius, of relu(s + t) - relu(s).

        A score that is off puts the kink elsewhere: the difference, whose slope in s is -1, 0 or 1,
        is off by no more than that, and lies between 0 and t. Where the kink is out of reach, it is
        t.
        """
        off = torch.minimum(self.score / self.radius, self.fastest) + self.speed
        clear = self.before - (self.fastest + self.speed) * self.radius > self.score
        return torch.where(clear, self.speed, off)


@dataclass(frozen=True)
class RowSteps:
    """Bounds for a row whose score l moves by at most moves_l: its output changes by at most

        sum_l change_l ‖x_l - c‖ + after_i ‖Delta‖,

    c being its output for divided scores and 0 for others, i the word whose row it is. Arrays are
    (heads, w, n).
    """

    change: HeadRows
    after: HeadRows


class Certified(Score):
    """A score whose weights are w(s_l), or w(s_l) / sum_m w(s_m) where `normalized`, w never
    falling, and w >= 0 there.

    For every method, `error` bounds how far rounding, or a move that nobody controls, may have put
    a score.

    Attributes:
        lipschitz: of w; only asked where the weights are not divided.
        masks: whether scores may be -inf, where a mask hides a word from a row.
    """

    lipschitz: float = torch.inf
    masks: bool = False

    @abstractmethod
    def curve(self, scores: PerPair, others: PerPair, reach: PerPair) -> Curve:
        """The answer of a score's weight to its moving by up to `reach`; `others` of the row
        stand."""

    @abstractmethod
    def curve_errors(self, rounding: Rounding) -> tuple[PerPair, PerPair]:
        """Bounds of the errors of p, and of g / radius, anywhere on the curves."""

    @abstractmethod
    def weight_errors(self, scores: AllRows, attention: AllRows, error: RowErrors) -> AllRows:
        """Bounds of the errors of the weights of rows whose scores are each off by up to
        `error`."""

    def others(self, scores: AllRows, attention: AllRows) -> AllRows:
        """The sum of row j's scores but the i-th, as `curve` wants it. Unused where nothing is
        divided."""
        return scores

    @abstractmethod
    def row_steps(
        self, scores: HeadRows, moves: HeadRows, error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        """The effect of all scores of a row moving at once; infinite if only that rows are means is
        known."""


class CertifiedElementwise(Certified):
    """The part that every score shares whose weights are not divided."""

    def weight_errors(self, scores: AllRows, attention: AllRows, error: RowErrors) -> AllRows:
        return (self.lipschitz * error).expand_as(scores)

    def row_steps(
        self, scores: HeadRows, moves: HeadRows, error: Float[Tensor, "heads w 1"]
    ) -> RowSteps:
        low, here, high = (
            self.attention(place)
            for place in (scores - moves - error, scores, scores + moves + error)
        )
        # The differences are worth more where w is flat, the Lipschitz constant where they cancel.
        change = torch.minimum(torch.maximum(high - here, here - low), self.lipschitz * moves)
        return RowSteps(change, torch.maximum(high.abs(), low.abs()))


@dataclass(frozen=True)
class Expansion:
    """The answer of a row to its scores' moves t_l, tau_l = t_l - sum_m mean_m t_m, the weights'
    mean being subtracted where the score is `shift_invariant`. For some 0 <= zeta <= scale its
    output changes by

        sum_l (zeta slope_l tau_l + rest_l) (x_l - c) + (zeta a_i + rho) Delta,

    with |rest_l| <= bend_l tau_l² + spread_l |tau_l| and |rho| <= rise_i; c is the old output for
    divided scores and 0 for others, a_i the old weight of the word whose row it is. Word first.

    Attributes:
        slope_error: how far rounding may have put each slope from a true one.
    """

    slope: WordRows
    slope_error: WordRows
    bend: WordRows
    spread: WordRows
    rise: WordRows
    scale: Float[Tensor, " w"]


class Expanded(Certified):
    """A certified score that also says how a whole row answers to first order.

    Attributes:
        shift_invariant: whether adding one number to all scores of a row leaves the weights as they
            are.
    """

    shift_invariant: bool = False

    @abstractmethod
    def expansion(
        self, scores: WordRows, moves: WordRows, together: PerWord, error: WordErrors
    ) -> Expansion:
        """For |tau_l| <= moves_l and (sum_l tau_l²)^(1/2) <= together; each score may be off by
        `error`."""


def secant_expansion(
    weights: WordRows, low: WordRows, high: WordRows, moves: WordRows
) -> Expansion:
    """Of weights that are not divided, whose secants (w(s + t) - w(s))/t lie between `low` and
    `high`."""
    zeros, ones = torch.zeros_like(weights), torch.ones_like(weights[:, 0])
    return Expansion(0.5 * (high + low), zeros, zeros, 0.5 * (high - low), high * moves, ones)
