"""Bounds of attention's change by quadratic forms in the perturbation: exact to first order as the
radius goes to zero.

In units of the radius (Delta = radius y, ‖y‖ <= 1) row j != i changes by p y + rho (u_j . y) r_j,
rho = g/t between two numbers; row i by J y plus a remainder. The squares of both are at most
quadratic forms in y, apart from small constants; the bound is the largest eigenvalue of the sum of
the forms, verified ("Small radii" of docs/theory/certificates-attention.md).
"""

from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.relaxation import Pairs
from wordsens.certificates.attention.text import AttentionText, RoundingErrors, apart_from
from wordsens.certificates.base import UNIT_ROUNDOFF, rounding
from wordsens.gaussian.vectors import lanczos
from wordsens.maps.attention.scores.base import Curve, Expanded, Expansion

_TIGHT = 0.3  # of the form's excess: the bound is then at most 15 % above first order
_BATCH_NUMBERS = 1 << 22  # of the forms that are in memory at a time: 32 MiB an array
_KRYLOV_STEPS = 12
"""Estimates are slightly low: Cholesky's factorisation fails once or twice before one suffices."""


@dataclass(frozen=True)
class FirstOrderBounds:
    """In units of the radius: of the whole change, except rounding of the other rows, and of row i.

    `tight` where the first bound is so close to the first-order change that no other is computed.
    """

    whole: Float[Tensor, " w"]
    row: Float[Tensor, " w"]
    tight: Bool[Tensor, " w"]


@dataclass(frozen=True)
class Form:
    """change / radius <= sqrt(y^T matrix y) + constant.

    `size` bounds the norms of the terms that make up the matrix; `excess` is about the share by
    which the form exceeds the first-order one.
    """

    matrix: Float[Tensor, "w m m"]
    constant: Float[Tensor, " w"]
    size: Float[Tensor, " w"]
    excess: Float[Tensor, " w"]

    def plus(self, other: "Form") -> "Form":
        """Of two sets of rows together."""
        constant = torch.hypot(self.constant, other.constant)
        excess = torch.maximum(self.excess, other.excess)
        return Form(self.matrix + other.matrix, constant, self.size + other.size, excess)

    def bound(self, roundings: float) -> Float[Tensor, " w"]:
        """Verified, for all ‖y‖ <= 1."""
        return (largest_eigenvalues(self.matrix, roundings * self.size).sqrt() + self.constant) * (
            1 + 1e-12
        )


@dataclass(frozen=True)
class Coordinates:
    """Queries u_j and keys of every head; values and outputs; V^T, `lift`, through which
    perturbations enter values.

    Without a value matrix `lift` is None, and the values are the rows in the same basis. `error`
    bounds how far each vector is off, relative to its length.
    """

    queries: Float[Tensor, "heads n k"]
    keys: Float[Tensor, "heads n k"]
    values: Float[Tensor, "n p"]
    outputs: Float[Tensor, "heads n p"]
    lift: Float[Tensor, "p k"] | None
    error: float

    def lifted(self, vectors: Float[Tensor, "*batch p"]) -> Float[Tensor, "*batch k"]:
        """V r."""
        return vectors if self.lift is None else vectors @ self.lift

    @property
    def through(self) -> Float[Tensor, "p k"]:
        """V^T."""
        k = self.queries.shape[-1]
        return (
            torch.eye(k, dtype=self.queries.dtype, device=self.queries.device)
            if self.lift is None
            else self.lift
        )


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
    if text.lift is not None:
        error += rounding(text.weights[0].norms.terms + 16)
    first, queries, keys = stacked.split([len(first), n * text.heads, n * text.heads])
    values = first if text.lift is None else text.values
    outputs = text.score.attention(text.scores) @ values
    shape = (text.heads, n, -1)
    return Coordinates(
        queries=queries.reshape(shape),
        keys=keys.reshape(shape),
        values=values,
        outputs=outputs.reshape(shape),
        lift=None if text.lift is None else first,
        error=error,
    )


class FirstOrder:
    """The bounds of one text under a score that has an expansion."""

    def __init__(self, text: AttentionText, score: Expanded, errors: RoundingErrors):
        self._text, self._score, self._errors = text, score, errors
        self._coordinates = coordinates_of(text)

    def bounds(self, pairs: Pairs, radius: Float[Tensor, " w"]) -> FirstOrderBounds:
        """The bounds of the words of the pairs; infinite where numbers are."""
        size = max(1, _BATCH_NUMBERS // self._coordinates.queries.shape[2] ** 2)
        chunks = torch.arange(len(radius), device=radius.device).split(size)
        parts = [self._batch(pairs.of(chunk), radius[chunk]) for chunk in chunks]
        whole, row, tight = (torch.cat(part) for part in zip(*parts, strict=True))
        # Where a slope has no bound the forms hold infinities, and their products are no numbers.
        whole, row = whole.nan_to_num(torch.inf), row.nan_to_num(torch.inf)
        return FirstOrderBounds(whole, row, tight & whole.isfinite())

    def _batch(
        self, pairs: Pairs, radius: Float[Tensor, " w"]
    ) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"], Bool[Tensor, " w"]]:
        text, coordinates = self._text, self._coordinates
        _, n, m = coordinates.queries.shape
        roundings = rounding(8 * (text.heads * n + m) + 400) + 16 * coordinates.error
        heads = [
            SelfExpansion(text, self._score, coordinates, self._errors, pairs.words, radius, head)
            for head in range(text.heads)
        ]
        others = _Others(text, coordinates, pairs, radius)
        unit = torch.stack([others.unit, *(head.unit for head in heads)]).amax(dim=0)
        unit = torch.where((unit > 0) & unit.isfinite(), unit, 1.0)
        form = reduce(Form.plus, [head.form(unit) for head in heads])
        whole = form.plus(others.form(unit))
        tight = whole.excess < _TIGHT
        row = (
            torch.full_like(unit, torch.inf) if bool(tight.all()) else form.bound(roundings) * unit
        )
        return whole.bound(roundings) * unit, row, tight


class SelfExpansion:
    """The expansion of row i for some words i under one head, in the given coordinates.

    In units of the radius r, with kappa_l = k_l - sum_m mean_m k_m (k_i + u_i for the word itself),
    the score moves by tau_l = r kappa_l . y + away_l q, |q| <= twist r² being its quadratic part.
    The row's change is at most sqrt(y^T matrix y) + constant, matrix = (1 + eps) scale² J^T J + (1
    + 1/eps) F, F from `bend` and `spread`, and J = sum_l slope_l x~_l kappa_l^T + a_i V^T
    (docs/theory/certificates-attention.md).
    """

    def __init__(
        self,
        text: AttentionText,
        score: Expanded,
        coordinates: Coordinates,
        errors: RoundingErrors,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        head: int,
    ):
        n = len(text.rows)
        row, word = words + n * head, words.unsqueeze(1)
        scores = text.scores[row]
        weights = score.attention(scores)
        self._itself = torch.zeros_like(scores).scatter(1, word, 1.0)
        self._mean = weights if score.shift_invariant else torch.zeros_like(weights)
        self._away = (self._itself - self._mean).abs()
        self._twist = (text.twist[head] * radius).unsqueeze(1)  # of q, in units of the radius
        self._weight, self._radius = (weights * self._itself).sum(dim=1), radius
        self._lift_size, self._lift = text.lift_size, coordinates.through
        self._slack = rounding(8 * sum(text.rows.shape) + 64) + 4 * coordinates.error

        keys, queries = coordinates.keys[head], coordinates.queries[head][words]
        kappa = keys.expand(len(words), -1, -1).clone()
        kappa[torch.arange(len(words), device=words.device), words] += queries
        lengths = torch.linalg.vector_norm(keys, dim=1).expand_as(scores)
        lengths = lengths.scatter_add(
            1, word, torch.linalg.vector_norm(queries, dim=1, keepdim=True)
        )
        self._kappa = kappa - (self._mean.unsqueeze(1) @ kappa)
        self._lengths = lengths + (self._mean * lengths).sum(dim=1, keepdim=True)
        self._key_error = (
            4 * errors.key[head * n : (head + 1) * n].amax() + self._slack * self._lengths
        )
        self._speeds = (torch.linalg.vector_norm(self._kappa, dim=2) + self._key_error) * (
            1 + 1e-12
        )

        values = coordinates.values.expand(len(words), -1, -1)
        off = torch.zeros_like(scores[:, :1])
        if score.normalized:
            values, off = (
                values - coordinates.outputs[head][words].unsqueeze(1),
                errors.output[row].unsqueeze(1),
            )
        self._apart = values
        self._output_error = off + self._slack * text.longest + 2 * text.value_error
        self._distances = torch.linalg.vector_norm(values, dim=2) + self._output_error
        self._crude = self._distances + 2 * text.longest

        moves = radius.unsqueeze(1) * (self._speeds + self._away * self._twist)
        gram = self._kappa @ self._kappa.mT
        speed = largest_eigenvalues(gram, self._slack * self._lengths.square().sum(dim=1)).sqrt()
        together = radius * (
            speed + torch.linalg.vector_norm(self._key_error + self._away * self._twist, dim=1)
        )
        self._row: Expansion = score.expansion(
            scores, moves, together * (1 + 1e-12), errors.score[row].unsqueeze(1)
        )

    @property
    def unit(self) -> Float[Tensor, " w"]:
        """An estimate of the size of the change."""
        return (self._row.slope.abs() * self._distances * self._speeds).amax(
            dim=1
        ) + self._weight.abs()

    def form(self, unit: Float[Tensor, " w"]) -> Form:
        """Of the change divided by `unit`."""
        row, per = self._row, unit.unsqueeze(1)
        slope = row.slope / per
        jacobian = (self._apart * slope.unsqueeze(2)).mT @ self._kappa
        jacobian = (jacobian + (self._weight / unit)[:, None, None] * self._lift) * row.scale[
            :, None, None
        ]
        square = jacobian.mT @ jacobian
        length = row.scale * (
            (slope.abs() * self._crude * self._lengths).sum(dim=1)
            + self._lift_size * self._weight.abs() / unit
        )
        factors = self._remainder(per)
        rest = (self._kappa * factors.unsqueeze(2)).mT @ self._kappa
        curved = factors.amax(dim=1) > 0
        largest = (factors * self._speeds.square()).amax(dim=1)
        share = (
            (largest / estimated_eigenvalues(square, steps=6))
            .sqrt()
            .nan_to_num(1.0)
            .clamp(1e-9, 1e9)
        )
        more, most = torch.where(curved, 1 + share, 1.0), torch.where(curved, 1 + 1 / share, 0.0)
        size = more * length.square() + most * (factors * self._lengths.square()).sum(dim=1)
        matrix, constant = (
            more[:, None, None] * square + most[:, None, None] * rest,
            self._constant(per),
        )
        return Form(matrix, constant, size, torch.maximum(more - 1, constant / length))

    def _remainder(self, per: Float[Tensor, "w 1"]) -> Float[Tensor, "w n"]:
        """f with ‖remainder‖² <= sum_l f_l (kappa_l . y)².

        ‖sum_l bend_l tau_l² x~_l‖ <= y^T V y, whose square is at most ‖V‖ y^T V y;
        ‖sum_l b_l x~_l‖² <= nu sum_l b_l² ‖x~_l‖², nu the largest eigenvalue of the Gram matrix of
        the normalised x~_l.
        """
        bend = self._row.bend * self._distances * self._radius.unsqueeze(1) / per
        bent = bend.sqrt().unsqueeze(2) * self._kappa
        size = (bend * self._lengths.square()).sum(dim=1)
        factors = largest_eigenvalues(bent @ bent.mT, self._slack * size).unsqueeze(1) * bend
        spread = self._row.spread * self._distances / per
        if not bool((spread != 0).any()):
            return factors
        unit = self._apart / self._distances.unsqueeze(2)
        nu = largest_eigenvalues(
            unit @ unit.mT, self._slack * 4 * unit.square().sum(dim=2).sum(dim=1) + self._slack
        )
        spread = nu.unsqueeze(1) * spread.square()
        both = (bend.amax(dim=1, keepdim=True) > 0) & (spread.amax(dim=1, keepdim=True) > 0)
        return torch.where(both, 2.0, 1.0) * (factors + spread)

    def _constant(self, per: Float[Tensor, "w 1"]) -> Float[Tensor, " w"]:
        """The quadratic part of the scores, the new weight of word i, and rounding."""
        row, radius, twisted = self._row, self._radius.unsqueeze(1), self._away * self._twist
        along = row.slope * (self._itself - (self._mean * self._itself).sum(dim=1, keepdim=True))
        pushed = torch.linalg.vector_norm((along.unsqueeze(1) @ self._apart).squeeze(1), dim=1)
        pushed = (
            row.scale
            * (pushed + (row.slope.abs() * self._output_error).sum(dim=1))
            * self._twist.squeeze(1)
        )
        if not bool((self._mean != 0).any()):
            pushed = (row.scale.unsqueeze(1) * row.slope.abs() * self._distances * twisted).sum(
                dim=1
            )
        rest = (
            (row.bend * radius * (2 * self._speeds + twisted) + row.spread)
            * twisted
            * self._distances
        )
        moved = self._speeds + twisted
        answer = (
            row.scale.unsqueeze(1) * row.slope.abs() + 2 * row.bend * radius * moved + row.spread
        )
        off = row.scale.unsqueeze(1) * row.slope_error * moved * self._distances
        off = off + answer * (self._key_error * self._distances + moved * self._output_error)
        rise = (row.rise * self._itself).sum(dim=1)
        return (pushed + (rest + off).sum(dim=1) + rise) / per.squeeze(1)


class _Others:
    """All rows but i. For low <= rho <= high and any p', the square of p y + rho (u . y) r is at
    most

    (1 + eps) p'² ‖V^T y‖² + 2 p' high (u . y) (r . y) + high² ‖r‖² (u . y)²,     1 + eps = 2 high / (high + low),

    but for (p - p') y, which goes to the constant.
    """  # noqa: E501

    def __init__(
        self,
        text: AttentionText,
        coordinates: Coordinates,
        pairs: Pairs,
        radius: Float[Tensor, " w"],
    ):
        self._text, self._pairs, self._coordinates = text, pairs, coordinates
        words, counted = pairs.words, pairs.counted
        speeds = (
            text.geometry.query_gram.diagonal().clamp(min=0).sqrt()
            * text.geometry.speed
            * (1 + 1e-12)
        )
        curve = text.score.curve(
            text.scores[:, words].T, text.others[:, words].T, radius.unsqueeze(1) * speeds
        )
        low, high = secants(curve, kinked=text.score.kinked)
        least, most = curve.p[..., 0], curve.p[..., -1]
        # |p - p'|: half of the range about its middle, or |p - a| <= (high / factor) |t| about a.
        halves = torch.linalg.vector_norm(0.5 * (most - least) * counted, dim=1)
        steepest = (high / curve.factor * counted).amax(dim=1)
        tilted = steepest * radius * text.geometry.fastest * (1 + 1e-12)
        self._constant = torch.minimum(halves, tilted)
        self._p = (
            torch.where((halves <= tilted).unsqueeze(1), 0.5 * (most + least), curve.before)
            * counted
        )
        self._high, self._dominated = high * counted, curve.mostly & (counted > 0)
        self._share = torch.where(high > 0, 2 * high / (high + low), 1.0)
        self._excess = (torch.where(counted > 0, self._share, 1.0) - 1).amax(dim=1)
        self._lengths = pairs.lengths.sqrt() * (1 + 1e-12)
        self._speeds = speeds
        self.unit = (self._p.abs() + self._high * self._lengths * speeds).amax(dim=1)

    def form(self, unit: Float[Tensor, " w"]) -> Form:
        """Of the change divided by `unit`."""
        words, coordinates = self._pairs.words, self._coordinates
        m = coordinates.queries.shape[2]
        per = unit.unsqueeze(1)
        p, high = self._p / per, self._high / per
        cross, stretch = p * high, 0.5 * (high * self._lengths).square()
        plain = torch.where(self._dominated, 0.0, cross) if self._text.score.normalized else cross
        queries = coordinates.queries.reshape(-1, m)
        toward = stretch.unsqueeze(2) * queries
        if self._text.score.normalized:
            toward = toward - plain.unsqueeze(2) * coordinates.lifted(coordinates.outputs).reshape(
                -1, m
            )
        word = coordinates.lifted(coordinates.values[words])
        half = queries.T @ toward + (plain @ queries).unsqueeze(2) * word.unsqueeze(1)
        if self._text.score.normalized:
            pair, row = self._dominated.nonzero(as_tuple=True)
            if len(pair):
                apart = coordinates.lifted(
                    apart_from(self._text, coordinates.values, words[pair], row)
                )
                apart = apart * cross[pair, row].unsqueeze(1)
                half.index_add_(0, pair, queries[row].unsqueeze(2) * apart.unsqueeze(1))
        level = (self._share * p.square()).sum(dim=1)
        longest = 2 * self._text.longest
        size = 2 * (
            p.abs() * self._text.lift_size + high * (self._lengths + longest) * self._speeds
        ).square().sum(dim=1)
        return Form(
            half + half.mT + level[:, None, None] * (coordinates.through.mT @ coordinates.through),
            self._constant / unit,
            size,
            self._excess,
        )


def secants(curve: Curve, *, kinked: bool) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
    """Bounds of g(t)/t, from below and from above, over 0 < |t| <= reach; 0 where the reach is 0.

    Affine on every cell: g/t is monotone there, so its extrema are at nodes. Smooth: |d(g/t)/dt| <=
    sup |g''|/2 between 0 and t, so on a cell of width s, g/t is within (s/4) sup |g''| of the mean
    of its end values. With kinks: at most the largest slope between 0 and t, and on a cell at most
    the larger |g| over the smaller |t|; at least 0.
    """
    t, g, factor = curve.t, curve.g, curve.factor.unsqueeze(-1)
    nonzero, widths = t != 0, t[..., 1:] - t[..., :-1]
    value = torch.where(nonzero, g / torch.where(nonzero, t, torch.ones_like(t)), torch.nan)
    if curve.affine:
        low, high = (
            value.nan_to_num(torch.inf).amin(dim=-1),
            value.nan_to_num(-torch.inf).amax(dim=-1),
        )
    elif kinked:
        sizes, reaches = g.abs(), t.abs()
        crude = torch.maximum(sizes[..., 1:], sizes[..., :-1]) / torch.minimum(
            reaches[..., 1:], reaches[..., :-1]
        )
        crossing = t[..., 1:] * t[..., :-1] <= 0
        crude = torch.where(crossing, torch.inf, crude)
        high = torch.minimum(crude, factor * _outward(_per(curve.rise, widths), t)).amax(dim=-1)
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
        low, high = torch.minimum(low, value.amin(dim=-1)), torch.maximum(high, value.amax(dim=-1))
    moves = t[..., -1] > 0
    low, high = torch.where(moves, low, 0.0), torch.where(moves, high, 0.0)
    return (low * (1 - 1e-12)).clamp(min=0), high * (1 + 1e-12)


def _per(
    bounds: Float[Tensor, "w N cells"], widths: Float[Tensor, "w N cells"]
) -> Float[Tensor, "w N cells"]:
    """Bounds of a derivative; 0 on empty cells, and where the square of a width underflows: what it
    would add is smaller still beside g/t, far below the outward rounding."""
    return torch.where(
        widths > 0, bounds / torch.where(widths > 0, widths, torch.ones_like(widths)), 0.0
    )


def _outward(
    cells: Float[Tensor, "w N cells"], t: Float[Tensor, "w N K"]
) -> Float[Tensor, "w N cells"]:
    """The largest value between the cell that holds 0 and each cell."""
    above = torch.where(t[..., 1:] >= 0, cells, 0.0).cummax(dim=-1).values
    below = torch.where(t[..., :-1] <= 0, cells, 0.0).flip(-1).cummax(dim=-1).values.flip(-1)
    return torch.maximum(
        torch.where(t[..., 1:] >= 0, above, 0.0), torch.where(t[..., :-1] <= 0, below, 0.0)
    )


def largest_eigenvalues(
    matrices: Float[Tensor, "w m m"], error: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """Upper bounds of the largest eigenvalues of symmetric matrices, each given to within `error`
    in operator norm.

    As `gram_norm_bound` verifies its estimate, for many matrices at once. Infinite where numbers
    are not finite.
    """
    size = matrices.shape[-1]
    finite = matrices.isfinite().all(dim=2).all(dim=1) & error.isfinite()
    matrices = torch.where(finite[:, None, None], 0.5 * (matrices + matrices.mT), 0.0)
    trace = matrices.diagonal(dim1=1, dim2=2).abs().sum(dim=1)
    least = torch.maximum(estimated_eigenvalues(matrices), trace / size)
    identity = torch.eye(size, dtype=matrices.dtype, device=matrices.device)
    bounds = torch.where(trace > 0, torch.inf, 0.0).to(matrices.dtype)
    enlargement = 1e-3
    while (
        bool((left := (bounds == torch.inf).nonzero().squeeze(1)).numel())
        and enlargement < 3 * size
    ):
        bound = least[left] * (1 + enlargement)
        shift = 2 * rounding(size + 4) * (size * bound + trace[left])
        failed = torch.linalg.cholesky_ex(
            (bound - shift)[:, None, None] * identity - matrices[left]
        ).info
        bounds[left] = torch.where(failed == 0, bound, torch.inf)
        enlargement *= 3
    # The eigenvalues of a matrix without a trace are bounded by its error only where it is positive
    # semidefinite.
    bounds = torch.where((trace == 0) & (matrices != 0).any(dim=2).any(dim=1), torch.inf, bounds)
    return torch.where(finite, (bounds + error) * (1 + 4 * UNIT_ROUNDOFF), torch.inf)


def estimated_eigenvalues(
    matrices: Float[Tensor, "w m m"], steps: int = _KRYLOV_STEPS
) -> Float[Tensor, " w"]:
    """About the largest eigenvalue of positive semidefinite matrices, from below; infinite where
    one is not finite."""
    finite = matrices.isfinite().all(dim=2).all(dim=1)
    matrices = torch.where(finite[:, None, None], matrices, 0.0)
    start = torch.linspace(
        1, 2, matrices.shape[-1], dtype=matrices.dtype, device=matrices.device
    ).cos()
    start = start.expand(len(matrices), -1)
    ritz = lanczos(lambda y: (matrices @ y.unsqueeze(2)).squeeze(2), start, steps)[2][:, 0]
    largest = torch.maximum(ritz, matrices.diagonal(dim1=1, dim2=2).amax(dim=1)).clamp(min=0)
    return torch.where(finite, largest, torch.inf)
