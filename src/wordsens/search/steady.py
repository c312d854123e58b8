"""Points whose values a last digit does not turn: at the edge of a jump the highest value may be rounding's.

Under divided ReLU a row with one positive score goes to that word whole, however small the score, so a climb is drawn
to a score of zero, on whose other side rounding may put it: a word was at 5e-5 of the text, found at .5. Where all
scores of a row vanish, every value is rounding's: under squared scores .535 was seen, and .093 is there. A point is
worth what its nearest neighbours attain as well.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.search.ascents import FALSE_EXCESS, Ascents
from wordsens.search.ball import unit
from wordsens.search.climb import Climb
from wordsens.seeds import generator

_DISTANCES, _EACH = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4), 16
"""Distances at which points are tried, in radii, and directions at each: a half lead back from one edge, a quarter from
two."""

_NEIGHBOURS, _APART, _NEAR = 3, 8.0, 1e-6
"""Neighbours that a point is compared with; their distance in each coordinate, in roundings of a row's length; and what
it is at most in all, in radii: farther off a steep slope looks like a jump."""


def steadied(
    ascents: Ascents, best: Climb, converged: Bool[Tensor, " b"], candidates: Float[Tensor, "c w size"]
) -> tuple[Climb, Bool[Tensor, " b"]]:
    """The points at what their neighbours attain; for words that this costs much also the steadiest of their
    candidates and of the points around their best one.

    Args:
        ascents: of the search.
        best, converged: its points, in the map's own precision, and which of them converged.
        candidates: on the ground.
    """
    before = best.squared[ascents.winners(best)]
    best.squared = _least(ascents, best)
    winners = ascents.winners(best)
    top = best.select(winners)
    lost = (top.squared < (1 - FALSE_EXCESS) * before).nonzero().squeeze(1)
    if not len(lost):
        return best, converged
    some = candidates[:, lost].flatten(end_dim=1)
    if ascents.fewer is not None:
        some = ascents.fewer.raised(some, top.words[lost].repeat(len(candidates)))
    some = torch.cat([some.to(top.x.dtype), _around(top.x[lost])])
    ranks = len(some) // len(lost)
    words, radius = top.words[lost].repeat(ranks), top.radius[lost].repeat(ranks)
    looked = Climb(ascents.objective, words, radius, some, ascents.blocks)
    ascents.spend(words)
    looked.squared = _least(ascents, looked)
    chosen = _highest(looked, len(lost), ascents.plan.finalists)
    climbed = chosen.select(torch.arange(len(chosen), device=lost.device))
    ascents.polish(climbed, replace(ascents.plan, steps=ascents.plan.climb_steps))
    climbed.squared = _least(ascents, climbed)
    found = _highest(chosen.joined(climbed), len(lost), 1)
    better = (found.squared > top.squared[lost]).nonzero().squeeze(1)
    top.store(lost[better], found.select(better))
    converged = converged.clone()
    converged[winners[lost]] = False
    return best.joined(top), torch.cat([converged, converged[winners]])


def _around(x: Float[Tensor, "w size"]) -> Float[Tensor, "ranks_w size"]:
    """Points at every distance from each of w, rank by rank; the same directions for all."""
    ways = torch.randn(len(_DISTANCES) * _EACH, x.shape[1], generator=generator(0, "edges"), dtype=torch.float64)
    steps = unit(ways).to(x) * x.new_tensor(_DISTANCES).repeat_interleave(_EACH)[:, None]
    return (x + steps.unsqueeze(1)).flatten(end_dim=1)


def _highest(climb: Climb, w: int, count: int) -> Climb:
    """The `count` highest of each of w words."""
    ranks = climb.squared.view(-1, w).topk(min(count, len(climb) // w), dim=0).indices
    return climb.select((ranks * w + torch.arange(w, device=ranks.device)).flatten())


def _least(ascents: Ascents, climb: Climb) -> Float[Tensor, " b"]:
    """The points' values; where a neighbour in the ball has much less, that.

    Of a ball so small that a neighbour's distance is no trifle in it nothing is asked.
    """
    scale = climb.radius.to(climb.x).unsqueeze(1)
    apart = _APART * torch.finfo(climb.x.dtype).eps * (1 + climb.objective.typical_length / scale)
    signs = torch.ones(_NEIGHBOURS, climb.x.shape[1]).to(climb.x)
    signs[1, ::2], signs[2, ::3] = -1, -1
    least = climb.squared
    for way in signs:
        beside = (climb.into_ball(climb.x + apart * way) * scale).unflatten(1, climb.objective.shape)
        least = torch.minimum(least, climb.objective.value(beside, climb.words).nan_to_num(torch.inf))
    ascents.spend(climb.words, _NEIGHBOURS)
    near = apart.squeeze(1) * climb.x.shape[1] ** 0.5 < _NEAR
    return torch.where(near & (least < (1 - FALSE_EXCESS) * climb.squared), least, climb.squared)
