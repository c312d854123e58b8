"""The joint Lagrangian of the word's own row and all other rows: what is summed, its multipliers, its quadratic form.

What a perturbation y does is told by pairs of numbers, one pair a row or word: a score's move and how far y, or the
direction b of the own row's change, goes along a vector. Each pair has terms of its own; how pairs hang together is one
quadratic form (docs/theory/certificates-attention.md, "Own row and others together").
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LAM, MU, SHARED, SUM = range(4)
GLOBALS = 4  # multipliers before those of the pairs


@dataclass(frozen=True)
class JointPairs:
    """k pairs of numbers (t, s) = (first . z, second . z), z = (y, b): what is to be bounded is a sum over them of

        constant + linear s + (where `mine`) reach weight (y . b),

    each a function of t tabulated at nodes (options), for |t| in the nodes' range and |s| <= caps.

    Attributes:
        first, second: (k, 2 d).
        t, linear, constant: (k, options).
        weight: (k, options), of a sum that is known to lie in [least, most], and of y . b; else 0.
        possible: (k, options), False where a weight would be more than their sum.
        summed: whether that sum counts.
        caps: (k,).
        mine: (k,), 1 at the pair with the term in y . b.
        reach: its factor.
        between: (k,), what -t² may rise above its chord between nodes.
        least, most: of the sum of the weights.
        relief: what the whole is less by where that sum is `most`, linear in between.
    """

    first: Float[Tensor, "k size"]
    second: Float[Tensor, "k size"]
    t: Float[Tensor, "k options"]
    linear: Float[Tensor, "k options"]
    constant: Float[Tensor, "k options"]
    weight: Float[Tensor, "k options"]
    possible: Bool[Tensor, "k options"]
    summed: bool
    caps: Float[Tensor, " k"]
    mine: Float[Tensor, " k"]
    reach: float
    between: Float[Tensor, " k"]
    least: float
    most: float
    relief: float

    @property
    def count(self) -> int:
        return len(self.caps)

    def some(self, chosen: slice) -> "JointPairs":
        """Some of the pairs."""
        names = ("first", "second", "t", "linear", "constant", "weight", "possible", "caps", "mine", "between")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def of_sum(self, total: Tensor) -> Float[Tensor, " 2"]:
        """The term of the sum's multiplier at the ends of its interval; 0 where it does not count."""
        if not self.summed:
            return torch.zeros_like(total).expand(2)
        return torch.stack([-total * self.least, -total * self.most - self.relief])

    @property
    def counted(self) -> Float[Tensor, "k options"]:
        """The weights, where their sum counts; else zeros."""
        return self.weight if self.summed else torch.zeros_like(self.weight)


@dataclass(frozen=True)
class JointMultipliers:
    """lam, mu > 0 of ‖y‖ <= 1 and ‖b‖ <= 1; shared, of y . b; total, of the sum of the weights; and of each pair.

    alpha and gamma are linear in t and s; hold, pin > 0 and cross multiply t², s² and 2 t s.
    """

    flat: Float[Tensor, " m"]

    def _part(self, at: int) -> Float[Tensor, " k"]:
        k = (len(self.flat) - GLOBALS) // 5
        return self.flat[GLOBALS + at * k : GLOBALS + (at + 1) * k]

    @property
    def lam(self) -> Tensor:
        return self.flat[LAM]

    @property
    def mu(self) -> Tensor:
        return self.flat[MU]

    @property
    def shared(self) -> Tensor:
        return self.flat[SHARED]

    @property
    def total(self) -> Tensor:
        return self.flat[SUM]

    @property
    def alpha(self) -> Float[Tensor, " k"]:
        return self._part(0)

    @property
    def gamma(self) -> Float[Tensor, " k"]:
        return self._part(1)

    @property
    def hold(self) -> Float[Tensor, " k"]:
        return self._part(2)

    @property
    def pin(self) -> Float[Tensor, " k"]:
        return self._part(3)

    @property
    def cross(self) -> Float[Tensor, " k"]:
        return self._part(4)

    def some(self, chosen: slice) -> "JointMultipliers":
        """Of some pairs."""
        parts = (self.alpha, self.gamma, self.hold, self.pin, self.cross)
        return JointMultipliers(torch.cat([self.flat[:GLOBALS], *(part[chosen] for part in parts)]))

    @property
    def positive(self) -> bool:
        return bool(self.lam > 0) and bool(self.mu > 0) and bool((torch.cat([self.hold, self.pin]) > 0).all())


def form(pairs: JointPairs, by: JointMultipliers) -> Float[Tensor, "size size"]:
    """Q(z) = lam ‖y‖² + mu ‖b‖² - 2 shared y . b - sum (hold t² + pin s² + 2 cross t s), as a matrix."""
    first, second = pairs.first, pairs.second
    half = first.shape[1] // 2
    turned = by.hold.unsqueeze(1) * first + by.cross.unsqueeze(1) * second
    bent = by.cross.unsqueeze(1) * first + by.pin.unsqueeze(1) * second
    result = -(first.T @ turned + second.T @ bent)
    diagonal = torch.cat([by.lam.expand(half), by.mu.expand(half)])
    result = result + torch.diag(diagonal)
    corner = torch.diag(by.shared.expand(half))
    result[:half, half:] -= corner
    result[half:, :half] -= corner
    return 0.5 * (result + result.T)


def at_options(pairs: JointPairs, by: JointMultipliers) -> tuple[Tensor, Tensor, Tensor]:
    """Each pair's term at its options, the best s taken; that s; and the sign of the term in y . b."""
    slope = pairs.linear - 2 * (by.gamma.unsqueeze(1) + by.cross.unsqueeze(1) * pairs.t)
    pin, caps = by.pin.unsqueeze(1), pairs.caps.unsqueeze(1)
    s = torch.maximum(torch.minimum(slope / (2 * pin), caps), -caps)
    along = pairs.mine.unsqueeze(1) * (pairs.reach * pairs.weight - 2 * by.shared)
    value = slope * s - pin * s.square() + pairs.constant + along.abs() + by.total * pairs.counted
    value = value - (2 * by.alpha.unsqueeze(1) + by.hold.unsqueeze(1) * pairs.t) * pairs.t
    return value, s, along.sign()
