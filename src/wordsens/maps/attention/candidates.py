"""Points from which a search of attention may start: cheap to name, too many to climb from all.

A word's Delta does its work through the n numbers u_j . Delta, which draw other rows to the word or push them away, and
the n numbers k_l . Delta, which tell its own row where to look. So the candidates are the u_j and the k_l themselves,
other words' places, and corners: the least Delta that gives these numbers chosen signs, all alike in size.
"""

from collections.abc import Sequence
from itertools import combinations, product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.own_row_alone import cleared as cleared_points
from wordsens.maps.attention.spread import ScoredHead
from wordsens.search.ball import into_ball, unit

_CORNERS = 32
"""Random corners of a head: of the other rows alone, of the own row alone, and of both."""

_ALL_SIGNS = 7
"""Scores that a word changes under all heads, up to which every pattern of their signs is a corner. Two words under two
heads of divided ReLU were at .932, at a hill where one head leaves the own row nothing."""

_MIXTURES = 16
"""Of several heads' W + W^T: with none, S was .5 % low for two heads with linear scores in a large ball; and .7 % for
one head, whose last eigenvector was not among the starts."""

_MOST_UNSEEN = 16
"""Rows, at most, whose scores with the word are led to zero together."""

_NEWTON_STEPS = 8
"""Towards a zero of the word's score with itself."""

_SMALLEST_SINGULAR = 1e-3
"""Of what is inverted, relative: a corner that needs less is out of reach."""


def candidates(
    rows: Float[Tensor, "n d"],
    heads: Sequence[ScoredHead],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    *,
    cleared: bool = False,
) -> Float[Tensor, "candidates w d"]:
    """The candidates of each word, in units of its radius; none lies outside the ball.

    `cleared`: whether there are points among them at which the word's own row is left to one word; for scores whose
    weights end at zero.

    The signs are the same for all words and all texts of n words.
    """
    reach = radius.to(rows.dtype).unsqueeze(1)
    own = rows[words] / reach
    others = rows.unsqueeze(1) / reach - own
    parts = [unit(others), into_ball(others), own[None], -own[None], into_ball(-2 * own[None])]
    for head in heads:
        for directions in (head.queries, head.keys):
            both = unit(torch.cat([directions, -directions]))
            parts.append(both.unsqueeze(1).expand(-1, len(words), -1))
        at_word = unit(head.queries + head.keys)[words]
        parts += [torch.stack([at_word, -at_word]), *_corners(head, words, reach)]
    parts.append(_of_all_heads(heads).unsqueeze(1).expand(-1, len(words), -1))
    if len(heads) > 1:
        parts.append(_turned(heads, words, reach))
    if len(heads) * (2 * len(rows) - 1) <= _ALL_SIGNS:
        parts.append(_all_corners(heads, words, reach))
    if cleared:
        parts.append(cleared_points(heads, words, reach))
    return into_ball(torch.cat(parts))


def _of_all_heads(heads: Sequence[ScoredHead]) -> Float[Tensor, "c d"]:
    """± the first and last eigenvectors of mixtures of the heads' W + W^T.

    sum_h (Delta^T W_h Delta)², which the word's own row tends to in a large ball under linear scores, is largest along
    such an eigenvector: it is the square of the largest quadratic form among the mixtures with weights of length 1.
    """
    symmetric = torch.stack([head.symmetric for head in heads]).double()
    stream = torch.Generator().manual_seed(len(heads))
    count = _MIXTURES if len(heads) > 1 else 1
    weights = unit(torch.randn(count, len(heads), generator=stream, dtype=torch.float64)).to(symmetric.device)
    axes = torch.linalg.eigh(torch.einsum("mh,hde->mde", weights, symmetric))[1]
    ends = torch.cat([axes[:, :, 0], axes[:, :, -1]]).to(heads[0].rows.dtype)
    return torch.cat([ends, -ends])


def _turned(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]
) -> Float[Tensor, "c w d"]:
    """Points at which the own row's score with one word has changed its sign under two heads at once, or under all.

    Beside a huge row a word's value is how many heads turn to it: words under a sigmoid were at .71, with one head
    where two were in reach, some of them where the two steps to the planes lead away from each other.
    """
    together = list(combinations(heads, 2)) + ([tuple(heads)] if len(heads) > 2 else [])
    found = []
    for some in together:
        keys, scores = (
            torch.stack([head.keys for head in some], dim=1),
            torch.stack([head.finite_scores[words] for head in some], dim=2),
        )
        for row in range(len(keys)):
            found.append(_least(keys[row], -scores[:, row].sign().unsqueeze(0), scores[:, row], reach))
    return torch.cat(found)


def unseen(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "c w d"]:
    """The least Delta, in radii, at which the scores of some rows with the word vanish: of one, two, ... other rows,
    nearest first, without the word's own row and with it.

    For scores of which nothing is known: squares, say, give a word no weight there and some on either side, and beside
    a huge row that is a narrow place: a word was at .71. Zeros where that lies outside the ball.
    """
    found = []
    for head in heads:
        length = torch.linalg.vector_norm(head.queries, dim=1).clamp(min=torch.finfo(head.queries.dtype).tiny)
        planes, ways = (
            (head.queries / length.unsqueeze(1)).double(),
            (head.finite_scores / length.unsqueeze(1)).double(),
        )
        away = ways[:, words].T.abs().scatter(1, words.unsqueeze(1), torch.inf)
        for count in range(min(len(head.rows), _MOST_UNSEEN + 1)):
            nearest = away.topk(count, dim=1, largest=False).indices
            others = planes[nearest], ways[nearest, words.unsqueeze(1)]
            found += [_at_zero(head, words, *others, own=own) for own in (False, True) if count or own]
    points = (torch.stack(found) / radius.unsqueeze(1)).to(heads[0].rows.dtype)
    return points.where(torch.linalg.vector_norm(points, dim=2, keepdim=True) <= 1, torch.zeros_like(points))


def _at_zero(
    head: ScoredHead,
    words: Int[Tensor, " w"],
    planes: Float[Tensor, "w k d"],
    ways: Float[Tensor, "w k"],
    *,
    own: bool,
) -> Float[Tensor, "w d"]:
    """The Delta nearest to 0 with planes Delta = -ways; `own`: about, and at which the word's score with itself, a
    quadratic form, is zero, by Newton steps that each start over from 0."""
    delta = torch.zeros(len(words), planes.shape[2], dtype=planes.dtype, device=planes.device)
    along = (head.queries + head.keys)[words].double()
    score = head.finite_scores[words, words].double()
    for _ in range(_NEWTON_STEPS if own else 1):
        rows, left = planes, -ways
        if own:
            bent = delta @ head.symmetric.double()
            slope = along + bent
            size = torch.linalg.vector_norm(slope, dim=1, keepdim=True).clamp(min=torch.finfo(slope.dtype).tiny)
            # s + along . Delta + Delta . bent / 2 = 0, on its tangent at this Delta.
            tangent = 0.5 * (delta * bent).sum(dim=1) - score
            rows = torch.cat([rows, (slope / size).unsqueeze(1)], dim=1)
            left = torch.cat([left, (tangent / size.squeeze(1)).unsqueeze(1)], dim=1)
        delta = (torch.linalg.pinv(rows, rtol=_SMALLEST_SINGULAR) @ left.unsqueeze(2)).squeeze(2)
    return delta


def _corners(head: ScoredHead, words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]) -> list[Float[Tensor, "c w d"]]:
    n = len(head.rows)
    stream = torch.Generator().manual_seed(n)
    like = {"dtype": head.rows.dtype, "device": head.rows.device}
    drawn, looked = (_signs(_CORNERS, n, stream).to(**like) for _ in range(2))
    at_one = (2 * torch.eye(n) - torch.ones(n, n)).to(**like)
    to_word, from_word = head.finite_scores.T[words], head.finite_scores[words]
    return [
        _least(head.queries, drawn, to_word, reach),
        _least(head.keys, torch.cat([at_one, -torch.ones_like(at_one[:1]), looked]), from_word, reach),
        _least(
            torch.cat([head.queries, head.keys]),
            torch.cat([drawn, looked], dim=1),
            torch.cat([to_word, from_word], dim=1),
            reach,
        ),
    ]


def _all_corners(
    heads: Sequence[ScoredHead], words: Int[Tensor, " w"], reach: Float[Tensor, "w 1"]
) -> Float[Tensor, "c w d"]:
    """One for each pattern of signs of the scores that a word changes; that with itself by its slope."""
    found = []
    for at, word in enumerate(words.tolist()):
        others = [row for row in range(len(heads[0].rows)) if row != word]
        slopes, scores = [], []
        for head in heads:
            slopes += [head.queries[others], head.keys[others], (head.queries + head.keys)[[word]]]
            pairs = head.finite_scores
            scores += [pairs[others, word], pairs[word, others], pairs[[word], word]]
        signs = torch.tensor(list(product((1.0, -1.0), repeat=len(torch.cat(scores)))))
        found.append(_least(torch.cat(slopes), signs.to(reach), torch.cat(scores)[None], reach[[at]]))
    return torch.cat(found, dim=1)


def _signs(count: int, n: int, stream: torch.Generator) -> Float[Tensor, "count n"]:
    """Rows of ±1 whose shares of + are spread over (0, 1)."""
    share = (torch.arange(count, dtype=torch.float64).unsqueeze(1) + 0.5) / count
    return torch.where(torch.rand(count, n, generator=stream, dtype=torch.float64) < share, 1.0, -1.0)


def _least(
    matrix: Float[Tensor, "m d"],
    signs: Float[Tensor, "c m"] | Float[Tensor, "c w m"],
    scores: Float[Tensor, "w m"],
    reach: Float[Tensor, "w 1"],
) -> Float[Tensor, "c w d"]:
    """The least Delta with scores + matrix Delta = height signs lengths, in radii, for the height that brings it to the
    sphere; lengths are those of the matrix's rows. Signs are each word's own, or the same for all.

    Where no height does, the direction for a large one.
    """
    # In units of each row's own reach: beside a huge row the others would count as nothing.
    length = torch.linalg.vector_norm(matrix, dim=1).clamp(min=torch.finfo(matrix.dtype).tiny)
    matrix, scores = matrix / length.unsqueeze(1), scores / length
    inverse = torch.linalg.pinv(matrix.double(), rtol=_SMALLEST_SINGULAR).to(matrix.dtype).T
    signs = signs.unsqueeze(1) if signs.ndim == 2 else signs
    towards, home = unit(signs @ inverse), (scores @ inverse) / reach
    along = (towards * home).sum(dim=2, keepdim=True)
    room = along.square() - home.square().sum(dim=1, keepdim=True) + 1
    height = along + room.clamp(min=0).sqrt()
    found = (room > 0) & (height > 0)
    return torch.where(found, height * towards - home, towards.expand(-1, len(scores), -1))
