"""The terms of the joint Lagrangian: of the word's own row on an interval of Z, and of the other rows."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.joint_lagrangian import JointMultipliers, JointPairs, at_options
from wordsens.certificates.attention.own_lagrangian import OwnLagrangian, searched
from wordsens.certificates.attention.text import AttentionText, apart_from
from wordsens.certificates.attention.weight_cells import WeightCells
from wordsens.maps.attention.scores.curves import Curve

_INTERVALS = 16
"""Of log Z, to begin with."""

_FINENESS = 2
"""Of the other rows' curves; with 1 the bound is up to 1 % larger."""


@dataclass(frozen=True)
class OtherRows:
    """The rows j != i: p and g over what their scores may do, g in radii. Their changes are squared.

    Attributes:
        curve: of each row; t in scores.
        queries, apart: (k, d), radius u_j and r_j.
    """

    curve: Curve
    queries: Float[Tensor, "k d"]
    apart: Float[Tensor, "k d"]

    @classmethod
    def of(cls, text: AttentionText, word: int, radius: float) -> "OtherRows":
        rows = torch.arange(len(text.rows), device=text.rows.device)
        rows = rows[rows != word]
        queries = radius * text.queries[rows]
        reach = torch.linalg.vector_norm(queries, dim=1) * (1 + 1e-12)
        scores, others = (part[rows, word].unsqueeze(0) for part in (text.scores, text.others))
        curve = text.score.curve(scores, others, reach.unsqueeze(0), _FINENESS)
        parts = {name: getattr(curve, name)[0] for name in ("t", "p", "g", "rise", "turn", "factor", "before")}
        scaled = {"g": parts["g"] / radius, "factor": parts["factor"] / radius, "dominant": curve.mostly[0]}
        curve = replace(curve, **{**parts, **scaled})
        if not text.score.normalized:
            return cls(curve, queries, text.values[word].expand(len(rows), -1))
        apart = text.values[word] - text.outputs[rows]
        most = curve.mostly.nonzero().squeeze(1)
        if len(most):
            apart = apart.index_copy(0, most, apart_from(text, text.values, torch.full_like(most, word), rows[most]))
        return cls(curve, queries, apart)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def lengths(self) -> Float[Tensor, " k"]:
        return torch.linalg.vector_norm(self.apart, dim=1) * (1 + 1e-12)

    @property
    def linear(self) -> Float[Tensor, "k nodes"]:
        """Of 2 p g (r . y), what multiplies r . y."""
        return 2 * self.curve.p * self.curve.g

    @property
    def constant(self) -> Float[Tensor, "k nodes"]:
        return self.curve.p.square() + (self.curve.g * self.lengths.unsqueeze(1)).square()

    @property
    def between(self) -> Float[Tensor, " k"]:
        return _rise(self.curve.t)

    def suprema(self, pairs: JointPairs, by: JointMultipliers) -> Float[Tensor, " k"]:
        """Of the rows' terms, `pairs` and multipliers being theirs. Convex in p for each s; p is near its chord, and
        between its ends."""
        curve, lengths = self.curve, self.lengths.unsqueeze(1)
        linear, constant = self.linear, self.constant
        left, right = slice(None, -1), slice(1, None)

        def at(weight: slice, place: slice) -> Tensor:
            nothing = torch.zeros_like(constant[:, weight])
            here = replace(
                pairs, t=curve.t[:, place], linear=linear[:, weight], constant=constant[:, weight], weight=nothing
            )
            return at_options(here, by)[0]

        squared = by.hold.unsqueeze(1) * (curve.t[:, right] - curve.t[:, left]).square()
        most_p, most_g = (torch.maximum(part[:, right].abs(), part[:, left].abs()) for part in (curve.p, curve.g))
        steep = 2 * (most_p + most_g * lengths) * (1 + curve.factor.unsqueeze(1) * lengths)
        ends = at(left, left), at(right, right)
        near = _risen(*ends, squared) + steep * curve.turn / 8
        fixed = _risen(ends[0], at(left, right), squared), _risen(at(right, left), ends[1], squared)
        return torch.minimum(near.nan_to_num(torch.inf), torch.maximum(*fixed)).amax(dim=1)


@dataclass(frozen=True)
class MovedOwnRow:
    """The word's own row: its Lagrangian, the vectors radius kappa_l that move it, and the x~_l in radii."""

    rows: OwnLagrangian
    kappa: Float[Tensor, "n d"]
    apart: Float[Tensor, "n d"]
    radius: float

    def intervals(self) -> list[tuple[tuple[float, float], float]]:
        """That cover Z, from 1 to 1 where nothing is divided; and bounds of the own row there, in radii,
        negative where no y has such a Z."""
        if not self.rows.divided:
            return [((1.0, 1.0), math.inf)]
        least, most = float(self.rows.least[0, 0]), float(self.rows.most[0, -1])
        ends = [least * (most / least) ** (at / _INTERVALS) for at in range(_INTERVALS)] + [most]
        lows, highs = self.rows.least.new_tensor([ends[:-1]]), self.rows.most.new_tensor([ends[1:]])
        finer = replace(self.rows, least=lows * (1 - 1e-12), most=highs * (1 + 1e-12))
        caps = finer.bound(searched(finer))[0].nan_to_num(math.inf, math.inf) / self.radius * (1 + 1e-12)
        return list(zip(pairwise(ends), caps.tolist(), strict=True))

    def within(
        self,
        least: float,
        most: float,
        low: float,
        high: float,
        weights: Float[Tensor, "2 n"] | None = None,
        itself: bool = False,
    ) -> "OwnTerms":
        """The terms where Z and the own row's change, in radii, are between these numbers, and weights between the
        rows of `weights`; where `itself` is true the change is at most the moved word's distance in place of `high`."""
        if not self.rows.divided:
            least = most = 1.0
        else:
            least, most = least * (1 - 1e-12), most * (1 + 1e-12)
        if weights is None:
            weights = self.any_weights
        if self.positive:
            # What the other weights have at least is not left for it.
            taken = weights[0].clamp(min=0)
            left = (most - (taken.sum() - taken)) * (1 + 1e-12)
            weights = torch.stack([weights[0], torch.minimum(weights[1], left)])
        return OwnTerms(self, least, most, low, high, weights, WeightCells.of(self.rows.table, weights), itself)

    def farthest(self, length: float) -> float:
        """The most that the row changes, in radii, where the moved word has no weight and the old output is so long:
        to another word, or to zero."""
        others = self.rows.caps[0, 0].masked_fill(self.rows.mine[0, 0] > 0, 0.0)
        return max(float(others.amax()), length) / self.radius * (1 + 1e-12)

    @property
    def positive(self) -> bool:
        """True where no weight is more than their sum: scores are divided and none is negative."""
        return self.rows.divided and not bool((self.rows.table.low[0] < 0).any())

    @property
    def any_weights(self) -> Float[Tensor, "2 n"]:
        """Bounds that every weight obeys."""
        table = self.rows.table
        edges = (
            table.low[0].amin(dim=1) - table.below[0].amax(dim=1),
            table.high[0].amax(dim=1) + table.above[0].amax(dim=1),
        )
        return torch.stack(edges)


@dataclass(frozen=True)
class OwnTerms:
    """The own row's terms, one a word: share (E_l - c a_l) (x~_l . b), and at the word itself share E_i r (y . b).

    Of the row's change q, q² <= (low + high) q - low high, and q = b . v / Z at some b, v the sum of E_l x~_l / r and
    E_i y, so that q <= b . v / least - low (Z / least - 1). Where `least` is 0, q² <= high² alone is known of q, or
    q² <= ‖x~_i / r + y‖² <= ‖x~_i / r‖² + 1 + 2 (x~_i / r) . y: then s_i is that product.

    Attributes:
        least, most: of Z.
        low, high: of q, in radii.
        weights: the least and the most that each E may be.
        cells: what E may be there.
        itself: whether the latter is what is known; only where `least` is 0.
    """

    row: MovedOwnRow
    least: float
    most: float
    low: float
    high: float
    weights: Float[Tensor, "2 n"]
    cells: WeightCells
    itself: bool = False

    @property
    def share(self) -> float:
        """The factor of E."""
        return (self.low + self.high) / self.least if self.least > 0 else 0.0

    @property
    def fixed(self) -> float:
        """The part of the bound of q² that depends on no weight."""
        if self.least > 0:
            return -self.low * self.high
        return float((self.caps * self.mine).amax()) ** 2 + 1 if self.itself else self.high**2

    @property
    def pull(self) -> Float[Tensor, " n"]:
        """The part of `linear` that depends on no weight and no old one: 2 at the moved word where `itself` is true."""
        return 2 * self.mine * self.itself

    def linear(self, weight: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """The factor of s: share (E - c a), and `pull`."""
        return self.share * weight + (self.pull - self.before).unsqueeze(1)

    @property
    def before(self) -> Float[Tensor, " n"]:
        """share c a_l, c a Z in the middle; the sum of a_l x~_l is 0."""
        return self.share * math.sqrt(self.least * self.most) * self.row.rows.table.before[0]

    @property
    def relief(self) -> float:
        """The fall of the bound from Z = least to Z = most."""
        return self.share * self.low * (self.most - self.least)

    @property
    def caps(self) -> Float[Tensor, " n"]:
        return self.row.rows.caps[0, 0] / self.row.radius

    @property
    def mine(self) -> Float[Tensor, " n"]:
        return (self.row.rows.mine[0, 0] > 0).to(self.before.dtype)

    @property
    def empty(self) -> bool:
        """True where a weight can have no value."""
        return not bool(self.cells.possible.any(dim=1).all())

    def options(self) -> tuple[Tensor, Tensor, Tensor]:
        """(n, options): tau and E at the nodes, lowest and highest by the score with itself and as far off its chord;
        and whether that may be."""
        cells = self.cells
        before, after = (torch.nn.functional.pad(cells.possible, side) for side in ((1, 0), (0, 1)))
        below, above = (torch.nn.functional.pad(part, (0, 1)) for part in (cells.below, cells.above))
        weights = torch.cat([cells.lowest - below, cells.highest + above], dim=1)
        return torch.cat([cells.tau, cells.tau], dim=1), weights, (before | after).repeat(1, 2)

    @property
    def between(self) -> Float[Tensor, " n"]:
        return _rise(self.row.rows.table.tau[0])

    def suprema(self, pairs: JointPairs, by: JointMultipliers) -> Float[Tensor, " n"]:
        """Of the terms, `pairs` and multipliers being theirs. Convex in E for each s; E is near its chord."""
        cells, share = self.cells, self.share
        tau, below, above = cells.tau, cells.below, cells.above
        squared = by.hold.unsqueeze(1) * (tau[:, 1:] - tau[:, :-1]).square()
        pin, caps, mine = (part.unsqueeze(1) for part in (by.pin, pairs.caps, pairs.mine))
        base = (self.before - self.pull + 2 * by.gamma).unsqueeze(1)
        counted = by.total if pairs.summed else torch.zeros_like(by.total)
        ends = tau[:, :-1], tau[:, 1:]
        found = []
        for edge in (cells.lowest, cells.highest):
            sides = edge[:, :-1], edge[:, 1:]
            left, right = (self._at(pairs, by, *side) for side in ((ends[0], sides[0]), (ends[1], sides[1])))
            # The slope in E, over all E and tau of a cell.
            tilted = [2 * by.cross.unsqueeze(1) * end for end in ends]
            least = share * (sides[0] - below) - base - torch.maximum(*tilted)
            most = share * (sides[1] + above) - base - torch.minimum(*tilted)
            flattest, steepest = (
                share * torch.maximum(torch.minimum(end / (2 * pin), caps), -caps) + counted + sign * share * mine
                for end, sign in ((least, -1), (most, 1))
            )
            found.append(
                _risen(left, right, squared) + (-flattest).clamp(min=0) * below + steepest.clamp(min=0) * above
            )
        return torch.maximum(*found).masked_fill(~cells.possible, -torch.inf).amax(dim=1)

    def _at(
        self, pairs: JointPairs, by: JointMultipliers, tau: Float[Tensor, "n k"], weight: Float[Tensor, "n k"]
    ) -> Float[Tensor, "n k"]:
        here = replace(
            pairs,
            t=tau,
            linear=self.linear(weight),
            constant=torch.zeros_like(tau),
            weight=weight,
        )
        return at_options(here, by)[0]


def joint_pairs(others: OtherRows, own: OwnTerms, basis: Float[Tensor, "d size"] | None = None) -> JointPairs:
    """Those of both, in coordinates of an orthonormal basis where one is given."""
    vectors = (others.queries, others.apart, own.row.kappa, own.row.apart)
    queries, apart, kappa, beside = vectors if basis is None else tuple(part @ basis for part in vectors)

    def of_y(part: Tensor) -> Tensor:
        return torch.cat([part, torch.zeros_like(part)], dim=1)

    tau, weight, possible = own.options()
    width = max(tau.shape[1], others.curve.t.shape[1])
    tau, weight, t, linear, constant = (
        _padded(part, width) for part in (tau, weight, others.curve.t, others.linear, others.constant)
    )
    nothing = others.lengths.new_zeros(len(others))
    drawn = of_y(beside) if own.itself else of_y(beside).roll(beside.shape[1], 1)
    return JointPairs(
        first=torch.cat([of_y(queries), of_y(kappa)]),
        second=torch.cat([of_y(apart), drawn]),
        t=torch.cat([t, tau]),
        linear=torch.cat([linear, own.linear(weight)]),
        constant=torch.cat([constant, torch.zeros_like(tau)]),
        weight=torch.cat([torch.zeros_like(constant), weight]),
        possible=torch.cat([torch.ones_like(t).bool(), _padded(possible, width)]),
        summed=own.row.rows.divided,
        caps=torch.cat([others.lengths, own.caps]),
        mine=torch.cat([nothing, own.mine]),
        reach=own.share,
        between=torch.cat([others.between, own.between]),
        least=own.least,
        most=own.most,
        relief=own.relief,
    )


def _rise(t: Float[Tensor, "k nodes"]) -> Float[Tensor, " k"]:
    """The most that -t² rises above its chord between nodes."""
    return (t[:, 1:] - t[:, :-1]).amax(dim=1).square() / 4


def _risen(left: Tensor, right: Tensor, squared: Tensor) -> Tensor:
    """The maximum of the chord from left to right, plus `squared` x (1 - x), x from 0 to 1."""
    room = (squared - (left - right).abs()).clamp(min=0).square()
    return torch.maximum(left, right) + room / (4 * torch.where(squared > 0, squared, torch.ones_like(squared)))


def _padded(part: Float[Tensor, "k nodes"], width: int) -> Float[Tensor, "k width"]:
    """The last node repeated."""
    return torch.cat([part, part[:, -1:].expand(-1, width - part.shape[1])], dim=1)
