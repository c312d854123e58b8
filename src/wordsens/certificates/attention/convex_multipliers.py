"""Multipliers of the attention bound in the form in which it is convex in all of them."""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.relaxation import Multipliers


@dataclass(frozen=True)
class Point:
    """l, m, k, lam and g (there eta) of (4) in docs/theory/certificates-attention.md; one row a word.

    Attributes:
        linear: l_j = 2 lam (alpha_j - a_j t'_j).
        hold: m_j = lam a_j; 0 for row i.
        outputs: k_j = 2 lam (beta_j - b e'_j).
        lam: lam > 0.
        push: g = 2 lam gamma.
    """

    linear: Float[Tensor, "w N"]
    hold: Float[Tensor, "w N"]
    outputs: Float[Tensor, "w N"]
    lam: Float[Tensor, " w"]
    push: Float[Tensor, " w"]

    def of(self, chosen: Int[Tensor, " c"]) -> "Point":
        """The multipliers of some of the words."""
        return Point(*(getattr(self, field.name)[chosen] for field in fields(self)))


def joined(points: list[Point]) -> Point:
    """The multipliers of several sets of words."""
    return Point(*(torch.cat([getattr(point, field.name) for point in points]) for field in fields(Point)))


def halfway(one: Point, other: Point) -> Point:
    """The mean of two points: inside, as they are."""
    return Point(*(0.5 * (getattr(one, field.name) + getattr(other, field.name)) for field in fields(Point)))


@dataclass(frozen=True)
class Ray:
    """Multipliers that are linear in z and have one lam and one set of weights."""

    at: Float[Tensor, " w"]
    start: Multipliers
    alpha: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]
    gamma: Float[Tensor, " w"]

    def place(self, z: Float[Tensor, " w"]) -> Multipliers:
        """The multipliers whose centre has y' . e = z."""
        along = z - self.at
        return replace(
            self.start,
            alpha=self.start.alpha + along.unsqueeze(1) * self.alpha,
            beta=self.start.beta + along.unsqueeze(1) * self.beta,
            gamma=self.start.gamma + along * self.gamma,
        )


def moved(point: Point, towards: Point, share: Float[Tensor, " w"]) -> Point:
    """The point, moved by a share of a step."""
    parts = ((getattr(point, field.name), getattr(towards, field.name)) for field in fields(point))
    return Point(*(at + (share if at.ndim == 1 else share.unsqueeze(1)) * step for at, step in parts))
