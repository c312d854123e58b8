"""The change of an attention layer when several words move at once, or under a score that has no
closed form.

The scores of a row outside the group change only at the group's words, by u_j . Delta_i, so X W is
never formed again: one (group, Delta) costs O(n² d + g d²) and n² numbers, against O(n² d + n d²)
for mapping the perturbed text, and the change is computed from the change of the attention, so that
small ones keep their digits. Gradients by autograd.
"""

from collections.abc import Sequence
from copy import copy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.change import attention_stages
from wordsens.maps.attention.head import HeadWeights, ScoredHead, starting_points
from wordsens.maps.attention.scores import Score
from wordsens.maps.base import WordChange, plain_stages
from wordsens.maps.mapping import TextMap, require_repeatable
from wordsens.search.objective import Deltas, Evaluated, Words


class GroupHead(ScoredHead):
    """The part that does not depend on Delta, for one head and every group."""

    def __init__(
        self, rows: Tensor, groups: Int[Tensor, "m g"], weights: HeadWeights, score: Score
    ):
        self.rows, self.groups, self.weights, self.score = rows, groups, weights, score
        self.queries, self.keys, self.symmetric = (
            weights.queries(rows),
            weights.keys(rows),
            weights.symmetric,
        )
        self.scores, self.values = weights.scores(rows), weights.values(rows)
        self.attention = score.attention(self.scores)
        self.outputs = self.attention @ self.values
        # The part of a row's scores that does not depend on the row.
        apart = (
            rows.new_zeros(len(rows))
            if weights.query_offset is None
            else rows @ weights.query_offset
        )
        self._apart = (apart + weights.constant) / weights.scale

    def change(
        self, delta: Float[Tensor, "b g d"], which: Int[Tensor, " b"]
    ) -> Float[Tensor, "b n m"]:
        """phi(X^G(Delta)) - phi(X) of this head."""
        members = self.groups[which]
        moved_rows, value_delta = self.rows[members] + delta, self.weights.value_change(delta)

        # Rows outside the group: only their scores with its members move.
        member_scores = self.scores.T[members] + delta @ self.queries.T
        rest = self.scores.unsqueeze(0).expand(len(which), -1, -1)
        new = rest.scatter(2, members.unsqueeze(1).expand(-1, rest.shape[1], -1), member_scores.mT)
        attention = self.score.attention(new)
        gained = attention.gather(2, members.unsqueeze(1).expand(-1, rest.shape[1], -1))
        change = (attention - self.attention) @ self.values + gained @ value_delta

        # Rows of the group: query, keys and values all move.
        # From the row as it is, not from its old scores: of those only rounding is left where it is
        # nearly zero.
        row_scores = moved_rows @ self.keys.T + self._apart
        if self.weights.bias is not None:
            row_scores = row_scores + self.weights.bias[members] / self.weights.scale
        among = self.weights.scores_between(moved_rows, moved_rows)
        if self.weights.bias is not None:
            among = (
                among
                + self.weights.bias[members.unsqueeze(2), members.unsqueeze(1)] / self.weights.scale
            )
        row_scores = row_scores.scatter(
            2, members.unsqueeze(1).expand(-1, members.shape[1], -1), among
        )
        row_weights = self.score.attention(row_scores)
        to_members = row_weights.gather(2, members.unsqueeze(1).expand(-1, members.shape[1], -1))
        row_change = row_weights @ self.values + to_members @ value_delta - self.outputs[members]
        return change.scatter(1, members.unsqueeze(2).expand_as(row_change), row_change)


class AttentionGroupChange(WordChange):
    """‖phi(X^G(Delta)) - phi(X)‖² for groups G of g words, (m, g); Delta has shape (g, d). Exact,
    for every score."""

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        weights: Sequence[HeadWeights],
        score: Score,
        memory_budget: int,
        *,
        summed: bool = False,
    ):
        super().__init__(rows, memory_budget, (groups.shape[1], rows.shape[1]))
        self._groups, self._weights, self._score, self._summed = (
            groups.to(rows.device),
            weights,
            score,
            summed,
        )
        self.heads = self._of_rows()
        self.stages, self.kinked = attention_stages(*rows.shape), score.kinked
        self._emptied = score.kinked and score.normalized

    def _of_rows(self) -> list[GroupHead]:
        dtype = self.rows.dtype
        return [
            GroupHead(self.rows, self._groups, head.to(dtype), self._score)
            for head in self._weights
        ]

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (12 * n * n + 6 * n * d) * self.rows.element_size()

    def starts(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "count w *shape"]:
        points = starting_points(self.heads, self._groups[words], radius, emptied=self._emptied)
        return points.reshape(len(points), len(words), *self.shape)

    def _evaluate(self, perturbations: Deltas, words: Words, *, gradient: bool) -> Evaluated:
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            moved = delta.view(len(words), self._groups.shape[1], -1)
            changes = [head.change(moved, words) for head in self.heads]
            if self._summed:
                changes = [torch.stack(changes).sum(dim=0)]
            squared = torch.stack([change.square().sum(dim=(1, 2)) for change in changes]).sum(
                dim=0
            )
        return squared.detach(), torch.autograd.grad(squared.sum(), delta)[0] if gradient else None


_LARGEST_COARSE = 1e5
_MOST_SMALL = 1 << 16
"""heads n² d, what a pair costs, up to which a text is searched as widely as with a closed form;
past it as any map."""


class AnyScoreChange(AttentionGroupChange):
    """‖phi(X^i(Delta)) - phi(X)‖² for one word, for every score that autograd can follow; O(n² d +
    n d) a pair."""

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
        require_repeatable(phi, rows)
        n, d = rows.shape
        super().__init__(
            rows, torch.arange(n).unsqueeze(1), weights, score, memory_budget, summed=summed
        )
        self.shape, self._emptied = (d,), False
        if len(weights) * n * n * d > _MOST_SMALL:
            self.stages = plain_stages(rows)

    def coarse(self) -> "AnyScoreChange":
        """In float32, if the score computes in it and it resolves the scores, those beside a huge
        row among them, and what a score may make of small ones: squares, say."""
        sizes = torch.cat([head.score_sizes for head in self.heads])
        uneven = sizes.max() > _LARGEST_COARSE * sizes.median().clamp(max=1)
        if self.rows.dtype == torch.float32 or uneven or sizes.median() < 1 / _LARGEST_COARSE:
            return self
        relative = copy(self)
        relative.dtype, relative.rows = torch.float32, self.rows.float()
        relative.heads = relative._of_rows()
        return relative if relative.heads[0].attention.dtype == torch.float32 else self
