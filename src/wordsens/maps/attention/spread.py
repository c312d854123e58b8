"""The spread of scores, and how far a ball moves them: what a search's smoother relatives are measured by."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.search.ball import unit

_NORMAL_QUARTILE = 0.6745
"""The median of |z| for z ~ N(0, 1)."""


OWN_DIRECTIONS = 6
"""Eigenvectors of W + W^T that starts are made of: 6 found more than 1 or 3, and as much as 12 (n = 250, d = 768)."""


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

    @cached_property
    def finite_scores(self) -> Float[Tensor, "n n"]:
        """The scores, with 0 in place of those that a mask hides."""
        return self.scores.masked_fill(self.scores == -torch.inf, 0.0)

    @property
    def score_sizes(self) -> Float[Tensor, " m"]:
        """|s_jl| of all scores but those that a mask hides."""
        return self.scores[self.scores != -torch.inf].abs()

    @cached_property
    def top_directions(self) -> Float[Tensor, "m d"]:
        """The top eigenvectors of W + W^T: along them the changed word's score with itself rises fastest."""
        return torch.linalg.eigh(self.symmetric)[1].T.flip(0)[:OWN_DIRECTIONS]


@dataclass(frozen=True)
class Spread:
    """In units of the scores.

    Attributes:
        typical: of the scores themselves and of what the ball adds, at a median row.
        now: of the scores themselves.
        moved: how far the ball moves the score of a median row with the word.
        largest: a bound of all scores in texts whose rows have length sqrt(d).
    """

    typical: float
    now: float
    moved: float
    largest: float


def spread(heads: Sequence[ScoredHead], steepest: float, radius: Float[Tensor, " w"]) -> Spread:
    """Of a text within the largest ball; `steepest` bounds W's Frobenius norm over the scale."""
    reach = float(radius.max())
    lengths = torch.stack([head.queries.norm(dim=1).median() for head in heads])
    # Medians: one huge row must not decide how smooth all others are.
    typical = torch.stack([head.finite_scores.abs().median() for head in heads]) / _NORMAL_QUARTILE
    coordinates = heads[0].rows.shape[1]
    return Spread(
        typical=float((typical + reach * lengths).max()),
        now=float(typical.max()),
        moved=reach * float(lengths.max()),
        largest=(reach + math.sqrt(coordinates)) * steepest,
    )


def directions(heads: Sequence[ScoredHead], top: Sequence[Float[Tensor, "m d"]]) -> Float[Tensor, "starts d"]:
    """sum_j u_j mixed with ± the top eigenvectors of W + W^T, of every head; both alone, and -sum_l k_l."""
    per_head = []
    for head, own in zip(heads, top, strict=True):
        drawn = unit(head.queries.sum(dim=0))
        away = unit(-head.keys.sum(dim=0))
        mixed = torch.stack([drawn + own, drawn - own], dim=1).flatten(end_dim=1)
        per_head.append(torch.cat([mixed, torch.stack([drawn, -drawn, own[0] + away, away - own[0]])]))
    # Every head's first direction, then every head's second: few starts serve all heads.
    return torch.stack(per_head, dim=1).flatten(end_dim=1)
