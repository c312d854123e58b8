"""Bounds of attention's change by quadratic forms in the perturbation: exact to first order as the
radius goes to zero.

In units of the radius (Delta = radius y, ‖y‖ <= 1) row j != i changes by p y + rho (u_j . y) r_j,
rho = g/t between two numbers; row i by J y plus a remainder. The squares of both are at most
quadratic forms in y, apart from small constants; the bound is the largest eigenvalue of the sum of
the forms, verified (docs/proofs.md#small-radii).
"""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.relaxation import Pairs, of_words
from wordsens.certificates.attention.text import AttentionText, RoundingErrors, apart_from
from wordsens.certificates.base import estimated_eigenvalues, largest_eigenvalues, rounding
from wordsens.maps.attention.scores.base import Curve, Expanded, Expansion

_BATCH_NUMBERS = 1 << 22  # of the forms that are in memory at a time: 32 MiB an array


class Form(NamedTuple):
    """change / (radius unit) <= sqrt(y^T matrix y) + constant; `size` bounds the norms of the terms
    that make up the matrix."""

    matrix: Float[Tensor, "w m m"]
    constant: Float[Tensor, " w"]
    size: Float[Tensor, " w"]

    def plus(self, other: "Form") -> "Form":
        """Of two sets of rows together."""
        constant = torch.hypot(self.constant, other.constant)
        return Form(self.matrix + other.matrix, constant, self.size + other.size)

    def bound(self, roundings: float) -> Float[Tensor, " w"]:
        """Verified, for all ‖y‖ <= 1. Infinite where a slope has no bound, so that the form holds
        infinities."""
        norm = largest_eigenvalues(self.matrix, roundings * self.size).sqrt()
        return ((norm + self.constant) * (1 + 1e-12)).nan_to_num(torch.inf)


@dataclass(frozen=True)
class Coordinates:
    """Queries u_j and keys of every head; values and outputs; V^T, `lift`, through which
    perturbations enter values.

    Without a value matrix `lift` is the identity, and the values are the rows in the same basis.
    `error` bounds how far each vector is off, relative to its length; `slack` likewise how far sums
    of products of them are.
    """

    queries: Float[Tensor, "heads n k"]
    keys: Float[Tensor, "heads n k"]
    values: Float[Tensor, "n p"]
    outputs: Float[Tensor, "heads n p"]
    lift: Float[Tensor, "p k"]
    error: float
    slack: float


def coordinates_of(text: AttentionText) -> Coordinates:
    """By Householder's QR factorisation where the vectors are fewer than their coordinates; else as
    they are.

    The factor R holds, column by column, the coordinates in an exactly orthonormal basis of vectors
    that differ from those given by at most gamma_(8 d m) of their lengths (Higham 2002, theorem
    19.4, its constant taken as 8).
    """
    n, d = text.rows.shape
    first = text.values if text.lift is None else text.lift.mT
    stacked = torch.cat([first, text.queries, text.keys])
    error = 0.0
    if len(stacked) < d:
        stacked = torch.linalg.qr(stacked.T, mode="r").R.T
        error = rounding(8 * d * len(stacked))
    first, queries, keys = stacked.split([len(first), n * text.heads, n * text.heads])
    values, lift = first, torch.eye(stacked.shape[1]).to(stacked)
    if text.lift is not None:
        values, lift = text.values, first
        error += rounding(text.weights[0].norms.terms + 16)
    outputs = text.score.attention(text.scores) @ values
    shape = (text.heads, n, -1)
    return Coordinates(
        queries=queries.reshape(shape),
        keys=keys.reshape(shape),
        values=values,
        outputs=outputs.reshape(shape),
        lift=lift,
        error=error,
        slack=rounding(8 * (n + d) + 64) + 4 * error,
    )


def first_order_bounds(
    text: AttentionText,
    score: Expanded,
    coordinates: Coordinates,
    errors: RoundingErrors,
    pairs: Pairs,
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """In units of the radius: of the whole change, except rounding of the other rows, and of row i;
    infinite where numbers are."""
    heads, n, m = coordinates.queries.shape
    roundings = rounding(8 * (heads * n + m) + 400) + 16 * coordinates.error
    whole, row = [], []
    for chunk in torch.arange(len(pairs.words)).split(max(1, _BATCH_NUMBERS // m**2)):
        some = of_words(pairs, chunk)
        forms = [self_form(text, score, coordinates, errors, some, head) for head in range(heads)]
        form = reduce(Form.plus, forms)
        row.append(form.bound(roundings) * some.unit)
        form = form.plus(others_form(text, coordinates, some))
        whole.append(form.bound(roundings) * some.unit)
    return torch.cat(whole), torch.cat(row)


class Moves(NamedTuple):
    """The moves of the scores of row i for some words i under one head.

    In units of the radius r, with kappa_l = k_l - sum_m mean_m k_m (k_i + u_i for the word itself),
    the score moves by tau_l = r kappa_l . y + away_l q, |q| <= twist r² being its quadratic part.

    Attributes:
        itself: 1 for the word itself.
        away: away_l = itself_l - mean_i; the mean is zero for scores that are not shift-invariant.
        twist: of q, in units of the radius.
        kappa, lengths: kappa_l and the sum of the lengths that make it up.
        error: of kappa_l.
        speeds: at least ‖kappa_l‖.
        apart: x~_l, the values less the row's output for divided scores.
        distances: at least ‖x~_l‖, and `apart_error` how far it may be off.
    """

    itself: Float[Tensor, "w n"]
    away: Float[Tensor, "w n"]
    twist: Float[Tensor, "w 1"]
    kappa: Float[Tensor, "w n k"]
    lengths: Float[Tensor, "w n"]
    error: Float[Tensor, "w n"]
    speeds: Float[Tensor, "w n"]
    apart: Float[Tensor, "w n p"]
    apart_error: Float[Tensor, "w 1"]
    distances: Float[Tensor, "w n"]

    @property
    def twisted(self) -> Float[Tensor, "w n"]:
        """The largest |away_l q|, in units of the radius."""
        return self.away.abs() * self.twist


def self_moves(
    text: AttentionText,
    score: Expanded,
    coordinates: Coordinates,
    errors: RoundingErrors,
    pairs: Pairs,
    head: int,
) -> Moves:
    words, n = pairs.words, len(text.rows)
    row, word = words + n * head, words.unsqueeze(1)
    slack = coordinates.slack
    weights = score.attention(text.scores[row])
    itself = torch.zeros_like(weights).scatter(1, word, 1.0)
    mean = weights if score.shift_invariant else torch.zeros_like(weights)
    keys, queries = coordinates.keys[head], coordinates.queries[head][words]
    kappa = keys + itself.unsqueeze(2) * queries.unsqueeze(1)
    lengths = torch.linalg.vector_norm(keys, dim=1) + itself * torch.linalg.vector_norm(
        queries, dim=1, keepdim=True
    )
    kappa = kappa - mean.unsqueeze(1) @ kappa
    lengths = lengths + (mean * lengths).sum(dim=1, keepdim=True)
    error = 4 * errors.key[head * n : (head + 1) * n].amax() + slack * lengths
    values = coordinates.values.expand(len(words), -1, -1)
    off = torch.zeros_like(weights[:, :1])
    if score.normalized:
        values = values - coordinates.outputs[head][words].unsqueeze(1)
        off = errors.output[row].unsqueeze(1)
    apart_error = off + slack * text.longest + 2 * text.value_error
    return Moves(
        itself=itself,
        away=itself - (mean * itself).sum(dim=1, keepdim=True),
        twist=(text.twist[head] * pairs.radius).unsqueeze(1),
        kappa=kappa,
        lengths=lengths,
        error=error,
        speeds=(torch.linalg.vector_norm(kappa, dim=2) + error) * (1 + 1e-12),
        apart=values,
        apart_error=apart_error,
        distances=torch.linalg.vector_norm(values, dim=2) + apart_error,
    )


def self_form(
    text: AttentionText,
    score: Expanded,
    coordinates: Coordinates,
    errors: RoundingErrors,
    pairs: Pairs,
    head: int,
) -> Form:
    """Of row i for some words i under one head: with (1 + eps) scale² J^T J + (1 + 1/eps) F for its
    matrix, F from `bend` and `spread`, and J = sum_l slope_l x~_l kappa_l^T + a_i V^T
    (docs/proofs.md#small-radii)."""
    moves = self_moves(text, score, coordinates, errors, pairs, head)
    slack, per = coordinates.slack, pairs.unit.unsqueeze(1)
    scores = text.scores[pairs.words + len(text.rows) * head]
    off = errors.score[pairs.words + len(text.rows) * head].unsqueeze(1)
    radius, turned = pairs.radius.unsqueeze(1), moves.twisted
    gram = moves.kappa @ moves.kappa.mT
    speed = largest_eigenvalues(gram, slack * moves.lengths.square().sum(dim=1)).sqrt()
    together = speed + torch.linalg.vector_norm(moves.error + turned, dim=1)
    row = score.expansion(
        scores,
        radius * (moves.speeds + turned),
        pairs.radius * together * (1 + 1e-12),
        off,
    )
    slope = row.slope / per
    weight = (score.attention(scores) * moves.itself).sum(dim=1) / pairs.unit
    jacobian = (moves.apart * slope.unsqueeze(2)).mT @ moves.kappa
    jacobian = jacobian + weight[:, None, None] * coordinates.lift
    jacobian = jacobian * row.scale[:, None, None]
    square = jacobian.mT @ jacobian
    crude = moves.distances + 2 * text.longest
    length = (slope.abs() * crude * moves.lengths).sum(dim=1) + text.lift_size * weight.abs()
    factors = _remainder(moves, row, radius / per, per, slack)
    rest = (moves.kappa * factors.unsqueeze(2)).mT @ moves.kappa
    largest = (factors * moves.speeds.square()).amax(dim=1)
    share = (largest / estimated_eigenvalues(square, steps=6)).sqrt()
    share = share.nan_to_num(1.0).clamp(1e-9, 1e9)
    curved = factors.amax(dim=1) > 0
    more = torch.where(curved, 1 + share, 1.0)
    most = torch.where(curved, 1 + 1 / share, 0.0)
    size = more * (row.scale * length).square()
    size = size + most * (factors * moves.lengths.square()).sum(dim=1)
    matrix = more[:, None, None] * square + most[:, None, None] * rest
    return Form(matrix, _constant(moves, row, radius) / pairs.unit, size)


def _remainder(
    moves: Moves,
    row: Expansion,
    scale: Float[Tensor, "w 1"],
    per: Float[Tensor, "w 1"],
    slack: float,
) -> Float[Tensor, "w n"]:
    """f with ‖remainder‖² <= sum_l f_l (kappa_l . y)².

    ‖sum_l bend_l tau_l² x~_l‖ <= y^T V y, whose square is at most ‖V‖ y^T V y; ‖sum_l b_l x~_l‖² <=
    nu sum_l b_l² ‖x~_l‖², nu the largest eigenvalue of the Gram matrix of the normalised x~_l.
    """
    bend = row.bend * moves.distances * scale
    bent = bend.sqrt().unsqueeze(2) * moves.kappa
    size = (bend * moves.lengths.square()).sum(dim=1)
    factors = largest_eigenvalues(bent @ bent.mT, slack * size).unsqueeze(1) * bend
    spread = row.spread * moves.distances / per
    if not bool((spread != 0).any()):
        return factors
    unit = moves.apart / moves.distances.unsqueeze(2)
    size = 4 * unit.square().sum(dim=2).sum(dim=1) + 1
    spread = largest_eigenvalues(unit @ unit.mT, slack * size).unsqueeze(1) * spread.square()
    both = (bend.amax(dim=1, keepdim=True) > 0) & (spread.amax(dim=1, keepdim=True) > 0)
    return torch.where(both, 2.0, 1.0) * (factors + spread)


def _constant(moves: Moves, row: Expansion, radius: Float[Tensor, "w 1"]) -> Float[Tensor, " w"]:
    """The quadratic part of the scores, the new weight of word i, and rounding."""
    twisted, slope = moves.twisted, row.scale.unsqueeze(1) * row.slope.abs()
    # To first order q moves the row by q sum_l slope_l away_l x~_l.
    along = (row.slope * moves.away).unsqueeze(1) @ moves.apart
    pushed = row.scale * torch.linalg.vector_norm(along.squeeze(1), dim=1)
    pushed = (pushed + (slope * moves.apart_error).sum(dim=1)) * moves.twist.squeeze(1)
    rest = (row.bend * radius * (2 * moves.speeds + twisted) + row.spread) * twisted
    moved = moves.speeds + twisted
    answer = slope + 2 * row.bend * radius * moved + row.spread
    off = row.scale.unsqueeze(1) * row.slope_error * moved * moves.distances
    off = off + answer * (moves.error * moves.distances + moved * moves.apart_error)
    rise = (row.rise * moves.itself).sum(dim=1)
    return pushed + (rest * moves.distances + off).sum(dim=1) + rise


def others_form(text: AttentionText, coordinates: Coordinates, pairs: Pairs) -> Form:
    """Of all rows but i. For low <= rho <= high and any p', the square of p y + rho (u . y) r is at
    most

    (1 + eps) p'² ‖V^T y‖² + 2 p' high (u . y) (r . y) + high² ‖r‖² (u . y)²,     1 + eps = 2 high / (high + low),

    but for (p - p') y, which goes to the constant.
    """  # noqa: E501
    words, counted, curve = pairs.words, pairs.counted, pairs.curve
    m = coordinates.queries.shape[2]
    low, high = secants(curve, kinked=text.score.kinked)
    # |p - p'|: half of the range about its middle, or |p - a| <= (high / factor) |t| about a.
    least, most = curve.p[..., 0], curve.p[..., -1]
    halves = torch.linalg.vector_norm(0.5 * (most - least) * counted, dim=1)
    steepest = (high / curve.factor * counted).amax(dim=1)
    tilted = steepest * pairs.radius * text.geometry.fastest * (1 + 1e-12)
    middle = torch.where((halves <= tilted).unsqueeze(1), 0.5 * (most + least), curve.before)
    share = torch.where(high > 0, 2 * high / (high + low), 1.0)
    per = pairs.unit.unsqueeze(1)
    p, high = middle * counted / per, high * counted / per
    lengths = pairs.squares.sqrt() * (1 + 1e-12)
    cross = p * high

    queries = coordinates.queries.reshape(-1, m)
    toward = (0.5 * (high * lengths).square()).unsqueeze(2) * queries
    plain, word = cross, coordinates.values[words] @ coordinates.lift
    if text.score.normalized:
        plain = torch.where(curve.mostly, 0.0, cross)
        outputs = coordinates.outputs.flatten(end_dim=1) @ coordinates.lift
        toward = toward - plain.unsqueeze(2) * outputs
    half = queries.T @ toward + (plain @ queries).unsqueeze(2) * word.unsqueeze(1)
    if text.score.normalized:
        pair, row = (curve.mostly & (counted > 0)).nonzero(as_tuple=True)
        apart = apart_from(text, coordinates.values, words[pair], row) @ coordinates.lift
        apart = apart * cross[pair, row].unsqueeze(1)
        half = half.index_add(0, pair, queries[row].unsqueeze(2) * apart.unsqueeze(1))
    level = (share * p.square()).sum(dim=1)
    reach = high * (lengths + 2 * text.longest) * text.speeds
    size = 2 * (p.abs() * text.lift_size + reach).square().sum(dim=1)
    through = coordinates.lift.mT @ coordinates.lift
    matrix = half + half.mT + level[:, None, None] * through
    return Form(matrix, torch.minimum(halves, tilted) / pairs.unit, size)


def secants(curve: Curve, *, kinked: bool) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
    """Bounds of g(t)/t, from below and from above, over 0 < |t| <= reach; 0 where the reach is 0.

    Affine on every cell: g/t is monotone there, so its extrema are at nodes. Smooth: |d(g/t)/dt| <=
    sup |g''|/2 between 0 and t, so on a cell of width s, g/t is within (s/4) sup |g''| of the mean
    of its end values. With kinks: at most the largest slope between 0 and t, and on a cell at most
    the larger |g| over the smaller |t|; at least 0.
    """
    t, g, factor = curve.t, curve.g, curve.factor.unsqueeze(-1)
    nonzero, widths = t != 0, t[..., 1:] - t[..., :-1]
    value = g / torch.where(nonzero, t, torch.nan)
    if not bool(curve.turn.any()):
        low = value.nan_to_num(torch.inf).amin(dim=-1)
        high = value.nan_to_num(-torch.inf).amax(dim=-1)
    elif kinked:
        sizes, reaches = g.abs(), t.abs()
        crude = torch.maximum(sizes[..., 1:], sizes[..., :-1]) / torch.minimum(
            reaches[..., 1:], reaches[..., :-1]
        )
        crude = torch.where(t[..., 1:] * t[..., :-1] <= 0, torch.inf, crude)
        steepest = factor * _outward(_per(curve.rise, widths), t)
        high = torch.minimum(crude, steepest).amax(dim=-1)
        low = torch.zeros_like(high)
    else:
        # A node at 0 takes the mean of its neighbours, and its two cells count as wide as both:
        # they are one cell.
        value = torch.where(nonzero, value, 0.5 * (value.roll(1, -1) + value.roll(-1, -1)))
        right = torch.where(nonzero, t, t.roll(-1, -1))[..., 1:]
        width = right - torch.where(nonzero, t, t.roll(1, -1))[..., :-1]
        middle = 0.5 * (value[..., 1:] + value[..., :-1])
        off = 0.25 * width * factor * _outward(_per(curve.turn, widths.square()), t)
        low, high = (middle - off).amin(dim=-1), (middle + off).amax(dim=-1)
        low = torch.minimum(low, value.amin(dim=-1))
        high = torch.maximum(high, value.amax(dim=-1))
    moves = t[..., -1] > 0
    low, high = torch.where(moves, low, 0.0), torch.where(moves, high, 0.0)
    return (low * (1 - 1e-12)).clamp(min=0), high * (1 + 1e-12)


def _per(
    bounds: Float[Tensor, "w N cells"], widths: Float[Tensor, "w N cells"]
) -> Float[Tensor, "w N cells"]:
    """Bounds of a derivative; 0 on empty cells, and where the square of a width underflows: what it
    would add is smaller still beside g/t, far below the outward rounding."""
    return torch.where(widths > 0, bounds / torch.where(widths > 0, widths, 1.0), 0.0)


def _outward(
    cells: Float[Tensor, "w N cells"], t: Float[Tensor, "w N K"]
) -> Float[Tensor, "w N cells"]:
    """The largest value between the cell that holds 0 and each cell."""
    above = torch.where(t[..., 1:] >= 0, cells, 0.0).cummax(dim=-1).values
    below = torch.where(t[..., :-1] <= 0, cells, 0.0).flip(-1).cummax(dim=-1).values.flip(-1)
    return torch.maximum(
        torch.where(t[..., 1:] >= 0, above, 0.0), torch.where(t[..., :-1] <= 0, below, 0.0)
    )
