"""Points at which the word's own row is left to one word, where weights end at zero: it may hold most of a change."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.maps.attention.spread import ScoredHead
from wordsens.search.ball import into_ball, unit

_LOWERING_STEPS, _MARGIN = 40, 0.02
"""Steps that lower the scores of a row, and how far below zero they are led: the distance of Delta, in radii."""

_MOST_STEPS, _CHECKED, _AT_ZERO = (400, 100), 20, 3e-4
"""Steps, at most, to the nearest points where a row's scores are negative, the first time and when more is asked; after
how many they are looked at, and how far below zero scores are led, as above."""

_RAISED, _LARGEST_ZETA, _BISECTIONS = (0.25, 0.5, 0.8), 2.0, 7
"""How far the word's score with itself is raised, in radii along its gradient; the farthest point along x_i that is
looked at, and after how many halvings."""


_SINGLE_WORDS, _CONE_STEPS, _CONE_PRODUCTS = 16, (60, 400), 5e10
"""Other words to which a row is left; steps towards such points, at least and at most; and products on all of them."""


def cleared(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]
) -> Float[Tensor, "c w d"]:
    """Points where the scores of the word's own row are negative, under one head or under all, but for one of them.

    That is the word's own, raised by an eigenvector of W + W^T, or another word's, raised by its k_l.
    """
    found = []
    for some in [[head] for head in heads] + ([list(heads)] if len(heads) > 1 else []):
        n = len(some[0].rows)
        top = torch.cat(
            [head.top_directions for head in some] + [torch.stack([head.top_directions for head in some]).sum(dim=0)]
        )
        raised = torch.stack([unit(head.keys) for head in some]).sum(dim=0)
        starts = unit(torch.cat([top, -top, raised])).unsqueeze(1).expand(-1, len(words), -1)
        kept = torch.zeros(len(starts), len(words), n, dtype=torch.bool, device=starts.device)
        kept[torch.arange(len(starts) - n, len(starts)), :, torch.arange(n)] = True
        kept.scatter_(2, words.view(1, -1, 1).expand(len(starts), -1, -1), True)
        found.append(_lowered(some, starts, kept, words, reach))
    return torch.cat([*found, emptied(heads, words, reach.squeeze(1))])


def emptied(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "c w d"]:
    """Points, in units of the radius, at which one score of the word's own row is positive: its own, under one head or
    under all, or, where rows are more than coordinates, another word's. None where that asks for more than 2 d signs,
    which no Delta but -x_i gives.
    """
    rows = heads[0].rows
    reach = radius.to(rows.dtype).unsqueeze(1)
    together = [[head] for head in heads] + ([list(heads)] if len(heads) > 1 else [])
    found = [_projected(some, words, reach) for some in together if len(some) * len(rows) <= 2 * rows.shape[1]]
    if len(rows) > rows.shape[1]:
        found += [_of_single_words(head, words, reach) for head in heads if len(rows) <= 2 * rows.shape[1]]
    return torch.cat([rows.new_empty(0, len(words), rows.shape[1]), *found])


def _of_single_words(head: ScoredHead, words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]) -> Float[Tensor, "c w d"]:
    """Points of the sphere, far along x_i, where the own row's score with one other word alone is positive.

    Negative scores make a cone of x_i + Delta. Its point nearest to x_i, stretched to the sphere, goes farthest along
    x_i. The words are those whose scores, in the cone of all, hold that point back most.
    """
    keys, scores = _keys_and_scores([head], words, reach)
    scores = (scores + _AT_ZERO).scatter(1, words.unsqueeze(1), -torch.inf)
    start = torch.zeros(1, len(words), keys.shape[1], dtype=keys.dtype, device=keys.device)
    multipliers = _Polyhedron(keys, scores).nearest(start, torch.zeros_like(scores).unsqueeze(0), _MOST_STEPS[0])[1]
    left = multipliers[0].topk(min(_SINGLE_WORDS, len(keys)), dim=1).indices.T.unsqueeze(2)
    cone = _Polyhedron(keys, scores.expand(len(left), -1, -1).scatter(2, left, -torch.inf))
    warm = multipliers.expand(len(left), -1, -1).scatter(2, left, 0.0)
    word = head.rows[words] / reach
    least, most = _CONE_STEPS
    steps = min(most, max(least, int(_CONE_PRODUCTS / (left.numel() * len(keys) ** 2))))
    nearest = word + cone.nearest(start.expand(len(left), -1, -1), warm, steps)[0]
    along, square = (word * nearest).sum(dim=2, keepdim=True), nearest.square().sum(dim=2, keepdim=True)
    room = along.square() - square * (word.square().sum(dim=1, keepdim=True) - 1)
    stretched = (along + room.clamp(min=0).sqrt()) / square.clamp(min=torch.finfo(square.dtype).tiny) * nearest
    return into_ball(stretched - word)


def _projected(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]
) -> Float[Tensor, "c w d"]:
    """Points of the sphere, far along x_i, where no score of the word's own row with another word is positive.

    The farthest such point is the nearest in that polyhedron to zeta x_i, for the zeta that brings it to the sphere:
    bisected. A part that raises the word's score with itself is added. Where n is more than d the polyhedron holds
    little of the ball, and a climb finds none of it: at n = 250, d = 192 words were at .24 where .5 is found.
    """
    keys, scores = _keys_and_scores(heads, words, reach)
    raised = unit(torch.stack([unit(head.queries + head.keys) for head in heads]).sum(dim=0))[words]
    raised = raised * torch.tensor(_RAISED, dtype=keys.dtype, device=keys.device).view(-1, 1, 1)
    own = unit(heads[0].rows)[words]
    itself = torch.zeros(len(words), len(heads[0].rows), dtype=torch.bool, device=keys.device)
    itself = itself.scatter(1, words.unsqueeze(1), True).repeat(1, len(heads))
    scores = (scores + _AT_ZERO).masked_fill(itself, -torch.inf)
    low, high = torch.zeros_like(raised[..., :1]), torch.full_like(raised[..., :1], _LARGEST_ZETA)
    polyhedron, zeta = _Polyhedron(keys, scores), low
    best, multipliers = raised, torch.zeros_like(raised @ keys.T)
    for at in range(_BISECTIONS):
        given = raised + zeta * own
        nearest, multipliers = polyhedron.nearest(given, multipliers, _MOST_STEPS[min(at, 1)])
        inside = torch.linalg.vector_norm(nearest, dim=2, keepdim=True) <= 1
        best = torch.where(inside | (at == 0), nearest, best)
        low, high = torch.where(inside, zeta, low), torch.where(inside, high, zeta)
        zeta = (low + high) / 2
    return into_ball(best)


class _Polyhedron:
    """All Delta with scores + K Delta <= 0; the rows of K have length 1.

    Args:
        keys: K.
        scores: of each word; minus infinity where nothing is asked.
    """

    def __init__(self, keys: Float[Tensor, "m d"], scores: Float[Tensor, "*c w m"]):
        self._keys, self._scores, self._gram = keys, scores, keys @ keys.T
        self._step = 1 / torch.linalg.matrix_norm(keys, ord=2).square()

    def nearest(
        self, given: Float[Tensor, "c w d"], multipliers: Float[Tensor, "c w m"], steps: int
    ) -> tuple[Float[Tensor, "c w d"], Float[Tensor, "c w m"]]:
        """The points nearest to those given, z - K^T y, and their multipliers y >= 0, from those given on.

        y is least in y . K K^T y / 2 - y . (scores at z), by accelerated gradient steps that start over where they turn
        back (O'Donoghue and Candès 2015), O(c w m²) each; they end where no score is above half the margin.
        """
        wanted, ahead = self._scores + given @ self._keys.T, multipliers
        pace = torch.ones_like(wanted[..., :1])
        for at in range(steps):
            if at % _CHECKED == _CHECKED - 1 and bool((wanted - multipliers @ self._gram).amax() <= _AT_ZERO / 2):
                break
            moved = (ahead - self._step * (ahead @ self._gram - wanted)).clamp(min=0)
            back = ((ahead - moved) * (moved - multipliers)).sum(dim=-1, keepdim=True) > 0
            pace = pace.masked_fill(back, 1.0)
            faster = (1 + (1 + 4 * pace.square()).sqrt()) / 2
            ahead = moved + ((pace - 1) / faster).masked_fill(back, 0.0) * (moved - multipliers)
            multipliers, pace = moved, faster
        return given - multipliers @ self._keys, multipliers


def _lowered(
    heads: Sequence[ScoredHead],
    points: Float[Tensor, "c w d"],
    kept: Bool[Tensor, "c w n"],
    words: Int[Tensor, " w"],
    reach: Float[Tensor, "w 1"],
) -> Float[Tensor, "c w d"]:
    """The points after accelerated projected gradient steps on the squares of the own row's positive scores."""
    keys, scores = _keys_and_scores(heads, words, reach)
    scores = scores + _MARGIN
    step = 1 / torch.linalg.matrix_norm(keys, ord=2).square()
    kept = kept.repeat(1, 1, len(heads))
    ahead = points
    for at in range(_LOWERING_STEPS):
        above = (scores + ahead @ keys.T).clamp(min=0).masked_fill_(kept, 0.0)
        moved = into_ball(ahead - step * (above @ keys))
        ahead, points = moved + at / (at + 3) * (moved - points), moved
    return points


def _keys_and_scores(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]
) -> tuple[Float[Tensor, "m d"], Float[Tensor, "w m"]]:
    """The keys of all heads, each of length 1, and what their scores with the words' rows are in radii."""
    keys = torch.cat([head.keys for head in heads])
    scores = torch.cat([head.finite_scores[words] for head in heads], dim=1)
    length = torch.linalg.vector_norm(keys, dim=1).clamp(min=torch.finfo(keys.dtype).tiny)
    return keys / length.unsqueeze(1), scores / length / reach
