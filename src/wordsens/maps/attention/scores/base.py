"""Attention scores: the contract, and the answer of a weight to its own score in closed form."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import isabstract
from typing import TypeVar

from jaxtyping import Float, Int
from torch import Tensor

Ability = TypeVar("Ability", bound="Score")
Rows = Float[Tensor, "*batch n"]
"""Scores, or weights, of rows."""
Batch = Float[Tensor, "b n"]
"""Of a batch of rows, or of all rows to each of a batch of moved words."""
Square = Float[Tensor, "n n"]


class Score(ABC):
    """A rule that turns the scores (..., n) of a row into its attention weights.

    A subclass needs `name`, `normalized` and `attention`. What it offers beside them are types: a `ClosedForm` is
    searched by the closed form of the change, and not by autograd; a `Certified` one has upper bounds. See `offered`.

    Attributes:
        name: what tables and records call the score; the map's name is made of it.
        normalized: whether the weights are nonnegative and divided by their sum, so that they sum to one, or are all 0.
        sums_to_one: whether every row of weights sums to one, whatever the scores.
        kinked: whether the weights have kinks in the scores, which a quasi-Newton search stumbles over.

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

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        """The weights of r rows after one word of each is taken out. Only asked of normalized scores."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its weights are without a word")


def offered(score: Score, ability: type[Ability]) -> Ability | None:
    """The score as a `ClosedForm` or a `Certified`, where it is one; None elsewhere.

    What a finished score offers is not inherited: a subclass may change the weights, and what its parent knows of them
    would no longer be true. A subclass that keeps it says so: `class Mine(Softmax, ClosedForm, Certified)`. Nor does an
    instance offer anything whose `attention` was replaced.

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
    """The effect of a moved score of row j with word i on row j, whose output changes by p Delta + gain r.

    r is x_i - o_j for weights divided by their sum, and x_i for others. Arrays are [pair, row].

    Attributes:
        p: the attention after the move.
        gain: (p - a)/(1 - a) for weights divided by their sum, p - a for others. Keeps its relative precision where
            p and a are close. For divided weights with a > 1/2 it is finite, and wrong: see `Response.dominant_gain`.
        p_slope, gain_slope: their derivatives in the score.
    """

    p: Batch
    gain: Batch
    p_slope: Batch
    gain_slope: Batch


class Response(ABC):
    """The answer of the attention a_ji of row j to word i when its score moves by t, all other scores fixed.

    Built from the scores s (row first); O(n²) once, and one or two arrays of n² numbers, kept word first.
    """

    @abstractmethod
    def move(self, moved: Batch, words: Int[Tensor, " b"]) -> Moved:
        """The answer of every row to t = moved."""

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        """p - a for single pairs of a word and a row with a > 1/2. Only for normalized scores."""
        raise AssertionError(f"{type(self).__name__} is not of scores divided by their sum")


class ClosedForm(Score):
    """A score with derivatives, and an answer to one moved score, in closed form.

    Attributes:
        homogeneous: whether the weights of c s are those of s times a power of c, for every c > 0: the temperature is
            then a unit of measurement.
    """

    homogeneous: bool = False

    @abstractmethod
    def pull_back(self, scores: Batch, attention: Batch, slopes: Batch) -> Batch:
        """The gradient in the scores of a function whose gradient in the weights is `slopes`."""

    def push_forward(self, scores: Batch, attention: Batch, changes: Batch) -> Batch:
        """The change of the weights, to first order, when the scores change by `changes`.

        The transpose of `pull_back`; the same, where the derivative of the weights is a symmetric matrix.
        """
        return self.pull_back(scores, attention, changes)

    @abstractmethod
    def response(self, scores: Square) -> Response:
        """The answer of the weight of one word to its own score."""

    @abstractmethod
    def gain_slopes(self, scores: Square, attention: Square) -> Square:
        """The derivative of every `Moved.gain` in its score, where nothing has moved yet."""


def row_blocks(n: int, columns: int) -> list[slice]:
    """Blocks of the n rows to work on in turn, so that no temporary array is large beside the arrays that are kept."""
    size = max(1, _BLOCK_NUMBERS // columns)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


_BLOCK_NUMBERS = 1 << 21
