"""Points from which a search of attention starts."""

from collections.abc import Sequence
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.base import replacements
from wordsens.search.ball import into_ball, unit

_EIGENVECTORS = 6
"""Of W + W^T: 6 attained more than 1 or 3, and as much as 12 (n = 250, d = 768)."""


_RAISED, _FARTHEST, _BISECTIONS = (0.25, 0.5, 0.8), 2.0, 7
"""How far the word's score with itself is raised, in radii; the farthest point along x_i that is tried; halvings."""

_FIRST, _NEXT, _MARGIN = 400, 100, 3e-4
"""Steps to a point where a row's scores are negative, the first time and later; how far below zero they are led."""


class ScoredHead:
    """One attention head on one text, as far as a search's starts need it.

    Attributes:
        rows: X, (n, d).
        queries, keys: rows u_j = W^T x_j / scale and W x_l / scale, (n, d), with what biases add to them.
        symmetric: a positive multiple of W + W^T, (d, d).
        scores: (n, n), row first; -inf where a mask hides a word from a row.
    """

    rows: Tensor
    queries: Tensor
    keys: Tensor
    symmetric: Tensor
    scores: Tensor

    @property
    def score_sizes(self) -> Float[Tensor, " m"]:
        """|s_jl| of all scores but those that a mask hides."""
        return self.scores[self.scores != -torch.inf].abs()

    @cached_property
    def directions(self) -> Float[Tensor, "m d"]:
        """sum_j u_j, along which Theorem 3's witness lies, mixed with ± the top eigenvectors of W + W^T; both alone.

        The eigenvectors raise the changed word's score with itself fastest, which is what moves its own row.
        """
        top = torch.linalg.eigh(self.symmetric)[1].T.flip(0)[:_EIGENVECTORS]
        drawn, away = unit(self.queries.sum(dim=0)), unit(-self.keys.sum(dim=0))
        mixed = torch.stack([drawn + top, drawn - top], dim=1).flatten(end_dim=1)
        return unit(torch.cat([mixed, torch.stack([drawn, -drawn, top[0] + away, away - top[0]])]))


def starting_points(
    heads: Sequence[ScoredHead], groups: Int[Tensor, "w g"], radius: Float[Tensor, " w"], *, emptied: bool = False
) -> Float[Tensor, "count w g d"]:
    """Every head's `directions`, -x_i and the mean of the other rows less x_i, in units of the group's radius.

    A group's words take the same kind of point together. `emptied`: also points of `self_only_starts`, or of
    `focused_starts` where several words move, for scores under which a row can be left to one word.
    """
    everywhere = torch.cat([head.directions for head in heads])[:, None, None].expand(-1, *groups.shape, -1)
    points = [everywhere, replacements(heads[0].rows, groups, radius)]
    if emptied and groups.shape[1] == 1:
        points += [self_only_starts(head, groups.squeeze(1), radius).unsqueeze(2) for head in heads]
    elif emptied:
        points += [focused_starts(head, groups, target, radius) for head in heads for target in groups.T]
    return torch.cat(points)


def self_only_starts(
    head: ScoredHead, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "count w d"]:
    """Points, in units of radii, far along x_i, at which no score of the word's own row with another word is positive.

    The farthest such point is the nearest in the polyhedron {s_il + k_l . Delta <= 0, l != i} to r + zeta x_i for the
    zeta that brings it to the sphere, found by bisection; r raises the word's score with itself.
    """
    polyhedron = _Polyhedron.of_rows(head, words, words, radius)
    raised = unit(head.queries + head.keys)[words] * head.rows.new_tensor(_RAISED).view(-1, 1, 1)
    row_units = unit(head.rows)[words]
    low, high = torch.zeros_like(raised[..., :1]), torch.full_like(raised[..., :1], _FARTHEST)
    zeta, best, multipliers = low, raised, torch.zeros_like(raised @ head.keys.T)
    for at in range(_BISECTIONS):
        nearest, multipliers = polyhedron.nearest(raised + zeta * row_units, multipliers, _FIRST if at == 0 else _NEXT)
        inside = torch.linalg.vector_norm(nearest, dim=2, keepdim=True) <= 1
        best = torch.where(inside | (at == 0), nearest, best)
        low, high = torch.where(inside, zeta, low), torch.where(inside, high, zeta)
        zeta = (low + high) / 2
    return into_ball(best)


def focused_starts(
    head: ScoredHead, groups: Int[Tensor, "w g"], target: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "count w g d"]:
    """Points, in units of radii, at which all rows of a group attend to its `target`, whose own row is longest.

    The target moves along its row, Delta = x_t / ‖x_t‖. The others move to the points nearest to c k_t at which no
    score of their rows with any other word is positive.
    """
    words, aim = groups.flatten(), target.repeat_interleave(groups.shape[1])
    polyhedron = _Polyhedron.of_rows(head, words, aim, radius.repeat_interleave(groups.shape[1]))
    raised = unit(head.keys)[aim] * head.rows.new_tensor(_RAISED).view(-1, 1, 1)
    nearest, _ = polyhedron.nearest(raised, torch.zeros_like(raised @ head.keys.T), _FIRST)
    return into_ball(torch.where((words == aim).unsqueeze(1), unit(head.rows)[words], nearest)).unflatten(
        1, groups.shape
    )


class _Polyhedron:
    """All Delta with scores + K Delta <= 0; the rows of K have length 1, -inf stands where nothing is required."""

    @classmethod
    def of_rows(
        cls, head: ScoredHead, words: Int[Tensor, " w"], spared: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> "_Polyhedron":
        """Where no score of each word's row is positive but that with its spared word, Delta in units of the radius."""
        length = torch.linalg.vector_norm(head.keys, dim=1).clamp(min=torch.finfo(head.keys.dtype).tiny)
        scores = head.scores[words] / length / radius.to(head.rows).unsqueeze(1) + _MARGIN
        return cls(head.keys / length.unsqueeze(1), scores.scatter(1, spared.unsqueeze(1), -torch.inf))

    def __init__(self, keys: Float[Tensor, "m d"], scores: Float[Tensor, "w m"]):
        self._keys, self._scores, self._gram = keys, scores, keys @ keys.T
        self._step = 1 / torch.linalg.matrix_norm(keys, ord=2).square()

    def nearest(
        self, given: Float[Tensor, "c w d"], multipliers: Float[Tensor, "c w m"], steps: int
    ) -> tuple[Float[Tensor, "c w d"], Float[Tensor, "c w m"]]:
        """The points nearest to those given, z - K^T y, and their multipliers y >= 0, from those given on.

        y minimises y . K K^T y / 2 - y . (scores at z), by accelerated gradient steps that restart where they turn back
        (O'Donoghue and Candès 2015), O(c w m²) each; they end where no score is above half the margin.
        """
        wanted, ahead = self._scores + given @ self._keys.T, multipliers
        pace = torch.ones_like(wanted[..., :1])
        for at in range(steps):
            if at % 20 == 19 and bool((wanted - multipliers @ self._gram).amax() <= _MARGIN / 2):
                break
            moved = (ahead - self._step * (ahead @ self._gram - wanted)).clamp(min=0)
            back = ((ahead - moved) * (moved - multipliers)).sum(dim=-1, keepdim=True) > 0
            pace = pace.masked_fill(back, 1.0)
            faster = (1 + (1 + 4 * pace.square()).sqrt()) / 2
            ahead = moved + ((pace - 1) / faster).masked_fill(back, 0.0) * (moved - multipliers)
            multipliers, pace = moved, faster
        return given - multipliers @ self._keys, multipliers
