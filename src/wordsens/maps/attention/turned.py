"""Points at which steep scores turn several rows at once: the least Delta for each of many sets of rows.

At a low temperature a score acts by its sign, or by being the largest of its row. Each such turn is a plane in Delta,
the change is nearly constant between planes, and a climb stops at the first plane that costs more than it brings. What
a search finds is then which planes it has crossed. Sets are grown plane by plane as long as a point of the ball is
past all of them; the nearest such point is a quadratic programme. Words were at .89 to .91 of an attack's value with
one turned row fewer, or with three rows at the ball's edge in place of three others nearer by.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.maps.attention.spread import ScoredHead
from wordsens.search.ball import into_ball, unit

_MOST_PLANES = 16
"""Planes of a word, those nearest to Delta = 0; each begins two sets."""

_SWEEPS, _LAST_SWEEPS = 8, 60
"""Of the programme's multipliers when a plane is added, and at the end."""

PAST = 20.0
"""How far past its plane a score is led, in scores: sigmoid and softmax are then 2e-9 from their ends."""

LEAST_PAST, MOST_PAST = 1e-9, 0.02
"""The same in radii: more than scores are rounded by in float64, and little of the ball."""

_CLOSE = 1e-4
"""Radii by which a point may miss a plane while its set is grown; planes nearer to each other than this, relative,
count once: parallel rows have the same."""


def turned(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], radius: Float[Tensor, " w"], *, largest: bool
) -> Float[Tensor, "c w d"]:
    """Points of the ball, in radii, past as many planes as go together; zeros where no plane is in reach.

    `largest`: whether a score turns a row by being the largest of it, as under softmax; else by its sign.
    """
    rows = heads[0].rows
    parts = [plane for head in heads for plane in _planes(head, words, radius.double(), largest=largest)]
    normals, ways, past = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
    # The side of the plane on which Delta = 0 does not lie.
    sides = torch.where(ways > 0, -1.0, 1.0).to(ways)
    normals, away = normals * sides.unsqueeze(2), ways.abs() + past
    gram = normals @ normals.mT
    alike = (gram > 1 - _CLOSE**2) & ((away.unsqueeze(2) - away.unsqueeze(1)).abs() < _CLOSE**2)
    away = away.masked_fill(alike.tril(diagonal=-1).any(dim=2), torch.inf)
    away, nearest = away.topk(min(_MOST_PLANES, away.shape[1]), dim=1, largest=False)
    normals = normals.gather(1, nearest.unsqueeze(2).expand(-1, -1, normals.shape[2]))
    points = into_ball(_grown(normals, away))
    # Led on to the sphere a point is still past its planes.
    return torch.cat([points, unit(points)]).to(rows.dtype)


def _planes(
    head: ScoredHead, words: Int[Tensor, " w"], radius: Float[Tensor, " w"], *, largest: bool
) -> list[tuple[Float[Tensor, "w n d"], Float[Tensor, "w n"], Float[Tensor, "w n"]]]:
    """Unit normals, the ways from Delta = 0, and how far beyond a point is to lie, in radii: of the other rows' scores
    with the word, and of its own row's with other words; at infinity what is no plane."""
    scores, n = head.scores.double(), len(head.rows)
    itself = torch.arange(n, device=words.device) == words.unsqueeze(1)
    to_word, from_word = scores.T[words], scores[words]
    keys = head.keys.double().expand(len(words), -1, -1)
    if largest:
        top = scores.topk(min(2, n), dim=1)
        others = torch.where(top.indices[:, 0] == words.unsqueeze(1), top.values[:, -1], top.values[:, 0])
        to_word = to_word - others
        winner = from_word.argmax(dim=1)
        keys = keys - head.keys.double()[winner].unsqueeze(1)
        from_word = from_word - from_word.gather(1, winner.unsqueeze(1))
        # The word's score with itself is a quadratic form: its row's turns from and to it are no planes.
        no_plane = itself | (winner == words).unsqueeze(1) | (from_word == 0)
    else:
        no_plane = itself
    found = []
    for vectors, ways, none in (
        (head.queries.double().expand(len(words), -1, -1), to_word, itself),
        (keys, from_word, no_plane),
    ):
        length = torch.linalg.vector_norm(vectors, dim=2) * radius.unsqueeze(1)
        reached = ~none & ways.isfinite() & (ways.abs() < length)
        length = length.where(reached, torch.ones_like(length))
        ways = (ways / length).where(reached, torch.full_like(ways, torch.inf))
        found.append((unit(vectors), ways, (PAST / length).clamp(LEAST_PAST, MOST_PAST)))
    return found


def _grown(normals: Float[Tensor, "w m d"], away: Float[Tensor, "w m"]) -> Float[Tensor, "c w d"]:
    """The nearest points past the planes of sets that begin at each plane and take in the others while one point is
    past all of them: in the order of their distances, and in its reverse."""
    w, m = away.shape
    gram = normals @ normals.mT
    forth = list(range(m))
    orders = torch.tensor([_first(at, way) for way in (forth, forth[::-1]) for at in forth], device=away.device)
    reached = away < 1
    wanted = away.where(reached, torch.zeros_like(away))
    kept = torch.zeros(len(orders), w, m, dtype=torch.bool, device=away.device)
    multipliers = wanted.new_zeros(kept.shape)
    for added in torch.nn.functional.one_hot(orders.T, m).bool().unsqueeze(2):
        tried = kept | added & reached
        found, missed = _swept(gram, wanted, tried, multipliers, _SWEEPS)
        square = torch.einsum("cwm,wmk,cwk->cw", found, gram, found)
        fits = (missed.masked_fill(~tried, -1.0).amax(dim=2) < _CLOSE) & (square <= 1)
        kept = torch.where(fits.unsqueeze(2), tried, kept)
        multipliers = torch.where(fits.unsqueeze(2), found, multipliers)
    multipliers = _swept(gram, wanted, kept, multipliers, _LAST_SWEEPS)[0]
    return torch.einsum("cwm,wmd->cwd", multipliers, normals)


def _first(plane: int, order: list[int]) -> list[int]:
    """The order with that plane taken first."""
    return [plane, *(at for at in order if at != plane)]


def _swept(
    gram: Float[Tensor, "w m m"],
    wanted: Float[Tensor, "w m"],
    kept: Bool[Tensor, "c w m"],
    multipliers: Float[Tensor, "c w m"],
    sweeps: int,
) -> tuple[Float[Tensor, "c w m"], Float[Tensor, "c w m"]]:
    """Multipliers y >= 0 of the kept planes after so many sweeps of Hildreth's method, each plane in turn, and by how
    much the point y N misses each plane."""
    found = multipliers.clone()
    left = wanted - torch.einsum("cwm,wmk->cwk", found, gram)
    for _ in range(sweeps):
        for at in range(gram.shape[1]):
            step = torch.maximum(left[..., at], -found[..., at]) * kept[..., at]
            found[..., at] += step
            left -= step.unsqueeze(2) * gram[:, at]
    return found, left
