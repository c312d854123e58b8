"""Bounds of attention's change by quadratic forms in the perturbation: exact to first order as the radius goes to zero.

In units of the radius (Delta = radius y, ‖y‖ <= 1) row j != i changes by p y + rho (u_j . y) r_j, rho = g/t between two
numbers; row i by J y plus a remainder. The squares of both are at most quadratic forms in y, apart from
small constants; the bound is the largest eigenvalue of the sum of the forms, verified
(docs/theory/certificates-attention.md).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.coordinates import Coordinates, coordinates_of
from wordsens.certificates.attention.own_expansion import Form, OwnExpansion, OwnRows
from wordsens.certificates.attention.own_row import twists
from wordsens.certificates.attention.relaxation import Pairs
from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.text import AttentionText, apart_from
from wordsens.certificates.verified import rounding
from wordsens.maps.attention.scores import Expanded, offered
from wordsens.maps.attention.scores.bounds import Curve

_TIGHT = 0.3  # of the form's excess: the bound is then at most 15 % above first order
_BATCH_NUMBERS = 1 << 22  # of the forms that are in memory at a time: 32 MiB an array


@dataclass(frozen=True)
class QuadraticBounds:
    """In units of the radius: of the whole change, except rounding of the other rows, and of row i.

    `tight` where the first bound is so close to the first-order change that no other is computed.
    """

    whole: Float[Tensor, " w"]
    own: Float[Tensor, " w"]
    tight: Bool[Tensor, " w"]


class QuadraticBound:
    """The bounds for one text, computed on the first radius that is small enough to gain from them."""

    def __init__(self, text: AttentionText, errors: RoundingErrors):
        self._text, self._errors = text, errors
        self._score = offered(text.score, Expanded)
        self._prepared: tuple[Coordinates, Tensor] | None = None

    def bounds(self, pairs: Pairs, radius: Float[Tensor, " w"], own: Float[Tensor, " w"]) -> QuadraticBounds:
        """Infinite where the score has no expansion, and where they cannot improve on `own`, a bound of row i."""
        whole, mine = torch.full_like(own, torch.inf), torch.full_like(own, torch.inf)
        tight = torch.zeros_like(own, dtype=torch.bool)
        if self._score is not None:
            chosen = self._promising(self._score, pairs.words, radius, own).nonzero().squeeze(1)
            if len(chosen):
                coordinates, twist = self._prepare()
                for part in chosen.split(max(1, _BATCH_NUMBERS // coordinates.queries.shape[2] ** 2)):
                    found = self._batch(self._score, coordinates, twist, pairs.of(part), radius[part])
                    whole[part], mine[part], tight[part] = found
        # Where a slope has no bound the forms hold infinities, and their products are no numbers.
        whole, mine = whole.nan_to_num(torch.inf), mine.nan_to_num(torch.inf)
        return QuadraticBounds(whole, mine, tight & whole.isfinite())

    def _promising(
        self, score: Expanded, words: Int[Tensor, " w"], radius: Float[Tensor, " w"], own: Float[Tensor, " w"]
    ) -> Tensor:
        """True where no term of the remainder of row i exceeds its known bound. Keys are not centred."""
        text, n = self._text, len(self._text.rows)
        least = torch.zeros_like(own)
        for head in range(text.heads):
            rows = words + n * head
            speeds = torch.linalg.vector_norm(text.keys[n * head : n * (head + 1)], dim=1)
            moves = radius.unsqueeze(1) * speeds
            together = torch.linalg.vector_norm(moves, dim=1)
            row = score.expansion(text.scores[rows], moves, together, self._errors.score[rows].unsqueeze(1))
            terms = (row.bend * moves + row.spread) * text.distances[rows] * speeds
            least = torch.maximum(
                least, torch.maximum(terms.amax(dim=1), row.rise.gather(1, words[:, None]).squeeze(1))
            )
        return least.nan_to_num(torch.inf) < own

    @property
    def twist(self) -> Float[Tensor, " heads"]:
        """A bound of |Delta^T W Delta| / (scale radius²) for each head."""
        return self._prepare()[1]

    def _prepare(self) -> tuple[Coordinates, Float[Tensor, " heads"]]:
        """The coordinates, and a bound of |Delta^T W Delta| / (scale radius²) for each head."""
        if self._prepared is None:
            self._prepared = coordinates_of(self._text), twists(self._text)
        return self._prepared

    def _batch(
        self,
        score: Expanded,
        coordinates: Coordinates,
        twist: Float[Tensor, " heads"],
        pairs: Pairs,
        radius: Float[Tensor, " w"],
    ) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"], Bool[Tensor, " w"]]:
        _, n, m = coordinates.queries.shape
        roundings = rounding(8 * (self._text.heads * n + m) + 400) + 16 * coordinates.error
        heads = [
            OwnExpansion(OwnRows(self._text, score, pairs.words, head), coordinates, self._errors, twist, radius)
            for head in range(self._text.heads)
        ]
        others = _Others(self._text, coordinates, pairs, radius)
        unit = torch.stack([others.unit, *(head.unit for head in heads)]).amax(dim=0)
        unit = torch.where((unit > 0) & unit.isfinite(), unit, 1.0)
        own, *more = [head.form(unit) for head in heads]
        for form in more:
            own = own.plus(form)
        whole = own.plus(others.form(unit))
        tight = whole.excess < _TIGHT
        mine = torch.stack([head.hull() for head in heads]).square().sum(dim=0).sqrt()
        if not score.sums_to_one:
            mine = torch.full_like(mine, torch.inf)
        if not bool(tight.all()):
            mine = torch.minimum(mine, own.bound(roundings) * unit)
        return whole.bound(roundings) * unit, mine, tight


class _Others:
    """All rows but i. For low <= rho <= high and any p', the square of p y + rho (u . y) r is at most

    (1 + eps) p'² ‖V^T y‖² + 2 p' high (u . y) (r . y) + high² ‖r‖² (u . y)²,     1 + eps = 2 high / (high + low),

    but for (p - p') y, which goes to the constant.
    """

    def __init__(self, text: AttentionText, coordinates: Coordinates, pairs: Pairs, radius: Float[Tensor, " w"]):
        self._text, self._pairs, self._coordinates = text, pairs, coordinates
        words, counted = pairs.words, pairs.counted
        speeds = text.geometry.query_gram.diagonal().clamp(min=0).sqrt() * text.geometry.speed * (1 + 1e-12)
        curve = text.score.curve(text.scores[:, words].T, text.others[:, words].T, radius.unsqueeze(1) * speeds)
        low, high = secants(curve, kinked=text.score.kinked)
        least, most = curve.p[..., 0], curve.p[..., -1]
        # |p - p'|: half of the range about its middle, or |p - a| <= (high / factor) |t| about a.
        halves = torch.linalg.vector_norm(0.5 * (most - least) * counted, dim=1)
        steepest = (high / curve.factor * counted).amax(dim=1)
        tilted = steepest * radius * text.geometry.fastest * (1 + 1e-12)
        self._constant = torch.minimum(halves, tilted)
        self._p = torch.where((halves <= tilted).unsqueeze(1), 0.5 * (most + least), curve.before) * counted
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
            toward = toward - plain.unsqueeze(2) * coordinates.lifted(coordinates.outputs).reshape(-1, m)
        own = coordinates.lifted(coordinates.values[words])
        half = queries.T @ toward + (plain @ queries).unsqueeze(2) * own.unsqueeze(1)
        if self._text.score.normalized:
            pair, row = self._dominated.nonzero(as_tuple=True)
            if len(pair):
                apart = coordinates.lifted(apart_from(self._text, coordinates.values, words[pair], row))
                apart = apart * cross[pair, row].unsqueeze(1)
                half.index_add_(0, pair, queries[row].unsqueeze(2) * apart.unsqueeze(1))
        level = (self._share * p.square()).sum(dim=1)
        longest = 2 * self._text.longest
        size = 2 * (p.abs() * self._text.lift_size + high * (self._lengths + longest) * self._speeds).square().sum(
            dim=1
        )
        return Form(
            half + half.mT + level[:, None, None] * (coordinates.seen.mT @ coordinates.seen),
            self._constant / unit,
            size,
            self._excess,
        )


def secants(curve: Curve, *, kinked: bool) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
    """Bounds of g(t)/t, from below and from above, over 0 < |t| <= reach; 0 where the reach is 0.

    Affine on every cell: g/t is monotone there, so its extrema are at nodes. Smooth: |d(g/t)/dt| <= sup |g''|/2 between
    0 and t, so on a cell of width s, g/t is within (s/4) sup |g''| of the mean of its end values. With kinks: at most
    the largest slope between 0 and t, and on a cell at most the larger |g| over the smaller |t|; at least 0.
    """
    t, g, factor = curve.t, curve.g, curve.factor.unsqueeze(-1)
    nonzero, widths = t != 0, t[..., 1:] - t[..., :-1]
    value = torch.where(nonzero, g / torch.where(nonzero, t, torch.ones_like(t)), torch.nan)
    if curve.affine:
        low, high = value.nan_to_num(torch.inf).amin(dim=-1), value.nan_to_num(-torch.inf).amax(dim=-1)
    elif kinked:
        sizes, reaches = g.abs(), t.abs()
        crude = torch.maximum(sizes[..., 1:], sizes[..., :-1]) / torch.minimum(reaches[..., 1:], reaches[..., :-1])
        crossing = t[..., 1:] * t[..., :-1] <= 0
        crude = torch.where(crossing, torch.inf, crude)
        high = torch.minimum(crude, factor * _outward(_per(curve.rise, widths), t)).amax(dim=-1)
        low = torch.zeros_like(high)
    else:
        # A node at 0 takes the mean of its neighbours, and its two cells count as wide as both: they are one cell.
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


def _per(bounds: Float[Tensor, "w N cells"], widths: Float[Tensor, "w N cells"]) -> Float[Tensor, "w N cells"]:
    """Bounds of a derivative; 0 on empty cells, and where the square of a width underflows: what it would add is
    smaller still beside g/t, far below the outward rounding."""
    return torch.where(widths > 0, bounds / torch.where(widths > 0, widths, torch.ones_like(widths)), 0.0)


def _outward(cells: Float[Tensor, "w N cells"], t: Float[Tensor, "w N K"]) -> Float[Tensor, "w N cells"]:
    """The largest value between the cell that holds 0 and each cell."""
    above = torch.where(t[..., 1:] >= 0, cells, 0.0).cummax(dim=-1).values
    below = torch.where(t[..., :-1] <= 0, cells, 0.0).flip(-1).cummax(dim=-1).values.flip(-1)
    return torch.maximum(torch.where(t[..., 1:] >= 0, above, 0.0), torch.where(t[..., :-1] <= 0, below, 0.0))
