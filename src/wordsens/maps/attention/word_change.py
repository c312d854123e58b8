"""The change of an attention layer when one word moves, for every word at the price of one plain evaluation."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.head import Head, in_cache
from wordsens.maps.attention.scores import ClosedForm
from wordsens.maps.attention.starts import starting_points
from wordsens.maps.attention.weights import HeadWeights
from wordsens.maps.word_change import WordChange
from wordsens.search.plan import Stages

_MOST_SMALL = 8192
"""Coordinates of a text up to which all starts climb to their end: its own evaluations are cheap."""

_LARGEST_COARSE = 1e5
"""Scores past which a search explores in the map's own precision, and below whose inverse: float32 rounds them by .006
there, and steps divide by fourth powers of small ones."""

_MOST_UNEVEN = 1e4
"""Times the median score past which the largest one has a search explore in the map's own precision: beside a huge row
others' weights are differences of numbers near 1."""


class AttentionWordChange(WordChange):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for attention, by the closed form of `Head`.

    Exact: it agrees with mapping X^i(Delta) to rounding, for every score. A batch of b pairs costs
    O(b (n d + d²)) and b n numbers of memory; b = n is all words at the price of one plain evaluation.
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        weights: Sequence[HeadWeights],
        score: ClosedForm,
        base_norm: float,
        memory_budget: int,
    ):
        super().__init__(rows, base_norm, memory_budget)
        self._weights, self._score = weights, score
        self.heads = [Head(rows, head, score) for head in weights]
        self.stages, self.kinked = attention_stages(*rows.shape), score.kinked

    def coarse(self) -> "AttentionWordChange":
        """In float32, unless it loses too much; homogeneous scores in units of the largest: the units do not matter."""
        # A float32 copy holds three n x n arrays; a long text cannot spare them, and its precision is not the limit.
        if self.rows.dtype == torch.float32 or 3 * 4 * len(self.rows) ** 2 > self.memory_budget // 2:
            return self
        sizes = [head.score_sizes for head in self.heads]
        largest, median = (max(float(part.max()) for part in sizes), min(float(part.median()) for part in sizes))
        factor = 1.0
        if largest > _MOST_UNEVEN * median:
            return self
        if self._score.homogeneous:
            factor = _power_of_two(largest)
        elif not 1 / _LARGEST_COARSE <= largest <= _LARGEST_COARSE:
            return self
        weights = [head.at_scale(factor).to(torch.float32) for head in self._weights]
        return AttentionWordChange(self.rows.float(), weights, self._score, self.base_norm, self.memory_budget)

    def narrowed(self) -> "tuple[AttentionWordChange, Float[Tensor, 'k d']] | None":
        """In the span of what W_Q, W_K and V see, where that is smaller: 3 m coordinates for a head of size m."""
        spans = [head.span for head in self._weights]
        if any(span is None for span in spans):
            return None
        together = torch.cat([span for span in spans if span is not None], dim=1)
        if together.shape[1] >= len(together):
            return None
        basis = torch.linalg.qr(together.double()).Q.mT.to(self.rows.dtype)
        weights = [head.within(basis) for head in self._weights]
        change = (self.rows @ basis.mT, weights, self._score, self.base_norm, self.memory_budget)
        return AttentionWordChange(*change), basis

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (20 * n + 8 * d) * self.rows.element_size()

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w d"]:
        emptied = self._score.kinked and self._score.normalized
        return starting_points(self.heads, words, radius, emptied=emptied)

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        return in_cache(self.heads, perturbations, words, gradient, max(self.rows.shape))


def attention_stages(words: int, d: int) -> Stages:
    """The stages of a search of this text: fewer generations for longer texts, whose words share what is attained."""
    small = words * d <= _MOST_SMALL
    return Stages(
        starts=64 if small else 32,
        halvings=() if small else (12,),
        generations=6 if small else min(6, max(3, 600 // words)),
        leaders=6,
        finish=150,
    )


def _power_of_two(number: float) -> float:
    """The power of two below the number: dividing by it rounds nothing; 1 for zero."""
    return math.ldexp(1.0, math.frexp(number)[1] - 1) if number > 0 else 1.0
