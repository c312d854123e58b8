"""The contract of an attention score."""

from abc import ABC, abstractmethod
from inspect import isabstract
from typing import TypeVar

from jaxtyping import Float, Int
from torch import Tensor

Ability = TypeVar("Ability", bound="Score")


class Score(ABC):
    """How the scores (..., n) of a row become its attention weights.

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
    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
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
    own, *parents = type(score).__mro__
    finished = any(issubclass(parent, ability) and not isabstract(parent) for parent in parents)
    said = any(issubclass(base, ability) and isabstract(base) for base in own.__bases__)
    return None if finished and not said else score
