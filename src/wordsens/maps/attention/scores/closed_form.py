"""A score's part in the closed form of attention's change: how a moved word's weight answers, and derivatives."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.contract import Score


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

    p: Float[Tensor, "b n"]
    gain: Float[Tensor, "b n"]
    p_slope: Float[Tensor, "b n"]
    gain_slope: Float[Tensor, "b n"]


class Response(ABC):
    """The answer of the attention a_ji of row j to word i when its score moves by t, all other scores fixed.

    Built from the scores s (row first); O(n²) once, and one or two arrays of n² numbers, kept word first.
    """

    @abstractmethod
    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
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
    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        """The gradient in the scores of a function whose gradient in the weights is `slopes`."""

    def push_forward(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], changes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        """The change of the weights, to first order, when the scores change by `changes`.

        The transpose of `pull_back`; the same, where the derivative of the weights is a symmetric matrix.
        """
        return self.pull_back(scores, attention, changes)

    @abstractmethod
    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        """The answer of the weight of one word to its own score."""

    @abstractmethod
    def gain_slopes(self, scores: Float[Tensor, "n n"], attention: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        """The derivative of every `Moved.gain` in its score, where nothing has moved yet."""


def row_blocks(n: int, columns: int) -> list[slice]:
    """Blocks of the n rows to work on in turn, so that no temporary array is large beside the arrays that are kept."""
    size = max(1, _BLOCK_NUMBERS // columns)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


_BLOCK_NUMBERS = 1 << 21
