"""The change of an attention layer whose score or sum of heads offers no closed form: by autograd, searched alike."""

from collections.abc import Sequence
from copy import copy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.group_change import GroupHead, squared_change
from wordsens.maps.attention.scores import Score
from wordsens.maps.attention.starts import starting_points
from wordsens.maps.attention.weights import HeadWeights
from wordsens.maps.attention.word_change import attention_stages
from wordsens.maps.mapping import TextMap
from wordsens.maps.plain_change import PlainWordChange

_LARGEST_COARSE = 1e5
_MOST_SMALL = 1 << 16
"""heads n² d, what a pair costs, up to which a text is searched as widely as with a closed form; past it as any map."""


class AnyScoreChange(PlainWordChange):
    """‖phi(X^i(Delta)) - phi(X)‖² for one word, for every score that autograd can follow; O(n² d + n d) a pair."""

    def __init__(
        self,
        phi: TextMap,
        rows: Float[Tensor, "n d"],
        weights: Sequence[HeadWeights],
        score: Score,
        memory_budget: int,
        *,
        summed: bool = False,
    ):
        super().__init__(phi, rows, memory_budget=memory_budget)
        self._weights, self._score, self._summed = weights, score, summed
        self.heads, self.kinked = self._heads(), score.kinked
        n, d = self.rows.shape
        if len(weights) * n * n * d <= _MOST_SMALL:
            self.stages = attention_stages(n, d)

    def _heads(self) -> list[GroupHead]:
        return [GroupHead(self.rows, self._groups, head.to(self.rows.dtype), self._score) for head in self._weights]

    def coarse(self) -> "AnyScoreChange":
        """In float32, if the score computes in it and it resolves the scores, those beside a huge row among them, and
        what a score may make of small ones: squares, say."""
        sizes = torch.cat([head.score_sizes for head in self.heads])
        uneven = sizes.max() > _LARGEST_COARSE * sizes.median().clamp(max=1)
        if self.rows.dtype == torch.float32 or uneven or sizes.median() < 1 / _LARGEST_COARSE:
            return self
        relative = copy(self)
        relative.dtype, relative.rows = torch.float32, self.rows.float()
        relative.heads = relative._heads()
        return relative if relative.heads[0].attention.dtype == torch.float32 else self

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (12 * n * n + 6 * n * d) * self.rows.element_size()

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w d"]:
        return starting_points(self.heads, words, radius)

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            squared = squared_change(self.heads, delta.unsqueeze(1), words, self._summed)
        if not gradient:
            return squared, None
        (slope,) = torch.autograd.grad(squared.sum(), delta)
        return squared.detach(), slope
