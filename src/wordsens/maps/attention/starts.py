"""Points from which a search of attention starts."""

from collections.abc import Sequence
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.word_change import replacements
from wordsens.search.ball import unit

_EIGENVECTORS = 6
"""Of W + W^T: 6 attained more than 1 or 3, and as much as 12 (n = 250, d = 768)."""


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
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "count w d"]:
    """Every head's `directions`, -x_i and the mean of the rows less x_i, in units of each word's radius."""
    everywhere = torch.cat([head.directions for head in heads]).unsqueeze(1).expand(-1, len(words), -1)
    return torch.cat([everywhere, replacements(heads[0].rows, words.unsqueeze(1), radius).squeeze(2)])
