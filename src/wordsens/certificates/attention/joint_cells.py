"""Cells of branch and bound over what a perturbation does to the word's own row: its sum of weights, its change, and
its weights (docs/theory/certificates-attention.md, "Branch and bound")."""

import math
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.joint_dual import Centre

COARSE, FINE = range(2)
"""How a cell is solved, one after the other."""

_GAINS = 0.04, 0.015
"""Of the bound's square: a cell is not split that gains less."""

_OF_MIXED = 0.5
"""Of what the dual gains by mixing a weight: about what is gained by splitting its range."""


@dataclass(frozen=True)
class Cell:
    """An interval of Z, one of the own row's change and one of each of its weights, and what is known there.

    Attributes:
        ends: of Z.
        low, high: of the own row's change, in radii.
        bound: of the change of all rows, in radii; 0 where no y is left.
        weights: the least and the most that each weight of the own row may be.
        itself: where Z begins at 0, whether the own row changes by no more than the moved word's distance.
        solved: the last of `COARSE`, `FINE` that was done here; -1 before.
        level: what a cell it is a part of had reached.
        centre: the dual's end; of its whole where it is a part.
    """

    ends: tuple[float, float]
    low: float
    high: float
    bound: float
    weights: Float[Tensor, "2 n"]
    itself: bool = False
    solved: int = -1
    level: int = COARSE
    centre: Centre | None = None

    @property
    def following(self) -> int:
        """What is done next."""
        return max(self.solved + 1, self.level)

    @property
    def _gains(self) -> tuple[float, float, float]:
        """About what the bound's square falls by where the own row's change, Z or a weight is split."""
        if self.centre is None or self.solved < 0 or self.ends[0] == 0 or self.high == 0:
            return 0.0, 0.0, 0.0
        worst, first, (by_change, by_sum) = self.centre.worst, self.ends[0], self._middles
        low, high = self.low, self.high
        total = min(max(worst.total, first), self.ends[1])
        change = min(max(worst.drawn * first / ((low + high) * total), low), high)

        def lost(low: float, high: float, first: float) -> float:
            """(change - low) (high - change + (low + high) (Z / first - 1)): the price of the two widths."""
            return (change - low) * (high - change + (low + high) * (total / first - 1))

        now = lost(low, high, first)
        half = (by_change, high) if change > by_change else (low, by_change)
        return (
            now - lost(*half, first),
            now - lost(low, high, by_sum if total > by_sum else first),
            _OF_MIXED * worst.mixed,
        )

    @property
    def _middles(self) -> tuple[float, float]:
        """Of the own row's change, and of Z."""
        return 0.5 * (self.low + self.high), math.sqrt(self.ends[0] * self.ends[1])

    @property
    def divisible(self) -> bool:
        return self.solved >= 0 and max(self._gains) > _GAINS[self.solved] * self.bound**2

    @property
    def by_weight(self) -> bool:
        """True where splitting a weight gains most."""
        return self._gains[2] == max(self._gains)

    def halves(self, others: float) -> "list[Cell]":
        """Split where more is gained. Of two parts by the own row's change the lower is also bounded apart."""
        by_change, by_sum, _ = self._gains
        middle, middle_sum = self._middles
        if by_sum > by_change:
            return [self.part(ends=ends) for ends in ((self.ends[0], middle_sum), (middle_sum, self.ends[1]))]
        below = self.part(high=middle, bound=min(self.bound, math.hypot(middle, others)))
        return [below, self.part(low=middle)]

    def part(self, **known: object) -> "Cell":
        """With less of Z, of the own row's change or of a weight."""
        return replace(self, solved=-1, level=max(self.solved, self.level), **known)

    def away(self, other: "Cell") -> float:
        """The distance of another cell's Z, in logarithms."""
        return abs(math.log(sum(self.ends) / sum(other.ends)))
