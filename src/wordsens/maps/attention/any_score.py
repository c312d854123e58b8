"""The change of an attention layer whose score or sum of heads offers no closed form: by autograd, searched alike."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.candidates import candidates, unseen
from wordsens.maps.attention.group_change import GroupHead, squared_change
from wordsens.maps.attention.scores import Score
from wordsens.maps.attention.spread import Spread, directions, spread
from wordsens.maps.attention.vanishing import vanishing
from wordsens.maps.attention.weights import HeadWeights
from wordsens.maps.attention.word_change import LARGEST_COARSE, again_if_steep, attention_plan
from wordsens.maps.mapping import TextMap
from wordsens.maps.plain_change import PlainWordChange
from wordsens.search.ball import unit

_MOST_TINY = 512
"""Coordinates of a text up to which it is searched as widely as with a closed form."""

_MOST_SMALL = 1 << 16
"""heads n² d, what a pair costs, up to which it is searched nearly so (23 words in 54 coordinates: 4 s, not 1 s); past
it as any map of which nothing is known."""

_CHOSEN, _MOST_CHOSEN = 12, 1 << 22
"""Candidates that are searched from, and heads n² d up to which they are looked at: some 400 evaluations a word. Of 37
nearly parallel words one under a steep tanh was at .415 of an attack's value without them: its own row's scores all
turn at once, behind a plateau."""


class AnyScoreChange(PlainWordChange):
    """‖phi(X^i(Delta)) - phi(X)‖² for one word, for every score that autograd can follow; O(n² d + n d) a pair.

    Relatives are smoother by their temperature; candidates and starts are those of the closed forms, after the leading
    singular vectors of the Jacobian.
    """

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
        self.heads = self._heads_at(1.0)
        n, d = self.rows.shape
        if len(weights) * n * n * d <= _MOST_SMALL:
            wide = attention_plan(n, d, score, len(weights))
            self.plan = wide if n * d <= _MOST_TINY else replace(wide, children=16, chosen=16, noisy=16)
            found = self._spread(torch.full((1,), d**0.5))
            if not self._is_homogeneous(found.typical):
                self.plan = again_if_steep(self.plan, n, found.largest / 2)
        else:
            more = len(self._of_the_longest_row())
            few = _CHOSEN if len(weights) * n * n * d <= _MOST_CHOSEN else 0
            self.plan = replace(self.plan, starts=self.plan.starts + more, kept=self.plan.starts, chosen=few)

    def _heads_at(self, factor: float) -> list[GroupHead]:
        """The heads at a higher temperature."""
        weights = [head.at_scale(factor).to(self.rows.dtype) for head in self._weights]
        return [GroupHead(self.rows, self._groups, head, self._score) for head in weights]

    def coarse(self) -> "AnyScoreChange":
        """In float32, if the score computes in it and it resolves the scores, those beside a huge row among them, and
        what a score may make of small ones: squares, say."""
        sizes = torch.cat([head.score_sizes for head in self.heads])
        uneven = sizes.max() > LARGEST_COARSE * sizes.median().clamp(max=1)
        if self.rows.dtype == torch.float32 or uneven or sizes.median() < 1 / LARGEST_COARSE:
            return self
        relative = copy(self)
        relative.dtype = torch.float32
        relative.rows = self.rows.float()
        relative.heads = relative._heads_at(1.0)
        return relative if relative.heads[0].attention.dtype == torch.float32 else self

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (12 * n * n + 6 * n * d) * self.rows.element_size()

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[AnyScoreChange]":
        """At higher temperatures, but for scores whose weights the temperature only scales."""
        found = self._spread(radius)
        result = []
        for share in () if self._is_homogeneous(found.typical) else shares:
            factor = max(1.0, share * found.typical)
            if share * found.largest <= 1:
                continue
            relative = copy(self)
            relative.heads = self._heads_at(factor)
            result.append(relative)
        return result

    def _spread(self, radius: Float[Tensor, " w"]) -> Spread:
        return spread(self.heads, max(head.steepest for head in self._weights), radius)

    def _is_homogeneous(self, typical: float) -> bool:
        """True if twice the temperature gives the same weights, but for a common factor, at scores of about 1."""
        head = self.heads[0]
        weights, halved = (self._score.attention(head.scores / (share * typical)) for share in (1, 2))
        size = torch.linalg.vector_norm(halved) / torch.linalg.vector_norm(weights)
        return bool(torch.allclose(halved, size * weights, rtol=1e-5, atol=1e-5 * float(halved.abs().max())))

    def starting_directions(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "starts w d"]:
        """Those of the longest row, the leading singular vectors of the Jacobian, and the layer's own directions."""
        own = directions(self.heads, [head.top_directions for head in self.heads])
        jacobian = super().starting_directions(words, radius)
        everywhere = [part.unsqueeze(1).expand(-1, len(words), -1) for part in (self._of_the_longest_row(), own)]
        return torch.cat([everywhere[0], jacobian, everywhere[1]])

    def _of_the_longest_row(self) -> Float[Tensor, "m d"]:
        """± the directions in which its scores with the word move most: beside a huge row nothing else shows."""
        longest = int(self.rows.norm(dim=1).argmax())
        found = torch.stack([part[longest] for head in self.heads for part in (head.queries, head.keys)])
        return unit(torch.cat([found, -found]))

    def candidates(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w d"]:
        found = torch.cat([candidates(self.rows, self.heads, words, radius), unseen(self.heads, words, radius)])
        if self._score.normalized and self._is_homogeneous(self._spread(radius).typical):
            found = torch.cat([found, vanishing(self, self.rows, self.heads, words, radius)])
        return found

    def kicking_directions(self) -> Float[Tensor, "m d"]:
        return torch.cat([head.queries for head in self.heads])

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
