"""Points beside which as many other rows turn to a word as it has coordinates, where these are few.

Where scores are steep, or the ball is far, a change is nearly constant on each cell of an arrangement of planes, one a
score; the best cell may be so narrow that no climb enters it. Each cell has vertices, where planes meet. Under three
heads in three coordinates words were at .982 of an attack's value.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.spread import ScoredHead
from wordsens.maps.attention.turned import LEAST_PAST, MOST_PAST, PAST
from wordsens.search.ball import unit
from wordsens.search.objective import Objective

MOST_COORDINATES = 4
"""Of a word, for vertices to be few."""

_MOST_KEPT = 32
"""Points of a word."""

_MOST_SETS, _MOST_NUMBERS = 1000, 2_000_000
"""Sets of planes that are looked at, and scores of all words at their points; a larger text has fewer sets."""


def vertices(
    objective: Objective, heads: Sequence[ScoredHead], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "c w d"]:
    """The best points of the unit sphere, in radii, at which d - 1 scores of other rows with the word are a little
    above zero, of many sets of rows and heads; zeros where that is outside the ball.

    None where d is 1, or more than 4.
    """
    rows = heads[0].rows
    d = rows.shape[1]
    planes = torch.cat([head.queries for head in heads]).double()
    most = min(_MOST_SETS, _MOST_NUMBERS // (len(planes) * len(words)))
    if not 1 < d <= min(MOST_COORDINATES, len(planes) + 1) or most == 0:
        return rows.new_empty(0, len(words), d)
    length = torch.linalg.vector_norm(planes, dim=1).clamp(min=torch.finfo(planes.dtype).tiny) * radius.unsqueeze(1)
    past = (PAST / length).clamp(LEAST_PAST, MOST_PAST)
    ways = past - torch.cat([head.finite_scores.T[words] for head in heads], dim=1) / length
    sets = _sets(len(planes), d - 1, most).to(planes.device)
    meeting = unit(planes)[sets]
    axis = torch.linalg.svd(meeting)[2][:, -1].unsqueeze(1)
    nearest = (torch.linalg.pinv(meeting) @ ways.T[sets]).mT
    room = 1 - nearest.square().sum(dim=2, keepdim=True)
    along = room.clamp(min=0).sqrt() * axis
    points = torch.cat([nearest + along, nearest - along])
    points = points.where(torch.cat([room, room]) > 0, torch.zeros_like(points)).to(rows.dtype)
    moves = (points * radius.to(rows.dtype).unsqueeze(1)).flatten(end_dim=1)
    squared = objective.value(moves, words.repeat(len(points))).view(-1, len(words))
    best = squared.nan_to_num(-1.0).topk(min(_MOST_KEPT, len(points)), dim=0).indices
    return points.gather(0, best.unsqueeze(2).expand(-1, -1, d))


def _sets(planes: int, size: int, most: int) -> Int[Tensor, "c size"]:
    """All sets of so many planes, or so many of them drawn."""
    if math.comb(planes, size) <= most:
        return torch.combinations(torch.arange(planes), size).view(-1, size)
    return torch.randint(planes, (most, size), generator=torch.Generator().manual_seed(planes))
