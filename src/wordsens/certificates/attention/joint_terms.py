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
from wordsens.maps.attention.scores.curves import Curve

_INTERVALS = 16
"""Of log Z, to begin with."""


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
        curve = text.score.curve(scores, others, reach.unsqueeze(0))
        parts = {name: getattr(curve, name)[0] for name in ("t", "p", "g", "rise", "turn", "factor", "before")}
        curve = replace(curve, **{**parts, "g": parts["g"] / radius, "factor": parts["factor"] / radius})
        if not text.score.normalized:
            return cls(curve, queries, text.values[word].expand(len(rows), -1))
        apart = text.values[word] - text.outputs[rows]
        most = (curve.before > 0.5).nonzero().squeeze(1)
        if len(most):
            apart = apart.index_copy(0, most, apart_from(text, text.values, torch.full_like(most, word), rows[most]))
        return cls(curve, queries, apart)

    def none(self) -> "OtherRows":
        """None of the rows."""
        parts = {name: getattr(self.curve, name)[:0] for name in ("t", "p", "g", "rise", "turn", "factor", "before")}
        return OtherRows(replace(self.curve, **parts), self.queries[:0], self.apart[:0])

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

    def within(self, least: float, most: float, factor: float) -> "OwnTerms":
        """The terms of factor b . v / Z, v = sum (E_l - c a_l) x~_l + E_i r y, where Z is between these numbers."""
        if not self.rows.divided:
            return OwnTerms(self, 1.0, 1.0, factor, factor * self.rows.table.before[0])
        least, most = least * (1 - 1e-12), most * (1 + 1e-12)
        share = factor / least
        return OwnTerms(self, least, most, share, share * math.sqrt(least * most) * self.rows.table.before[0])


@dataclass(frozen=True)
class OwnTerms:
    """The own row's terms, one a word: share (E_l - c a_l) (x~_l . b), and at the word itself share E_i r (y . b).

    Attributes:
        least, most: of Z.
        share: what multiplies E.
        before: (n,), share c a_l.
    """

    row: MovedOwnRow
    least: float
    most: float
    share: float
    before: Float[Tensor, " n"]

    @property
    def caps(self) -> Float[Tensor, " n"]:
        return self.row.rows.caps[0, 0] / self.row.radius

    @property
    def mine(self) -> Float[Tensor, " n"]:
        return (self.row.rows.mine[0, 0] > 0).to(self.before.dtype)

    def options(self) -> tuple[Float[Tensor, "n options"], Float[Tensor, "n options"]]:
        """tau and E at a table's nodes: lowest and highest by the score with itself, and as far off its chord."""
        table = self.row.rows.table
        below, above = (torch.nn.functional.pad(part[0], (0, 1)) for part in (table.below, table.above))
        weight = torch.cat([table.low[0] - below, table.high[0] + above], dim=1)
        return torch.cat([table.tau[0], table.tau[0]], dim=1), weight

    @property
    def between(self) -> Float[Tensor, " n"]:
        tau = self.row.rows.table.tau[0]
        return (tau[:, 1:] - tau[:, :-1]).amax(dim=1).square() / 4

    def suprema(self, pairs: JointPairs, by: JointMultipliers) -> Float[Tensor, " n"]:
        """Of the terms, `pairs` and multipliers being theirs. Convex in E for each s; E is near its chord."""
        table, share = self.row.rows.table, self.share
        tau, below, above = table.tau[0], table.below[0], table.above[0]
        squared = by.hold.unsqueeze(1) * (tau[:, 1:] - tau[:, :-1]).square()
        pin, caps, mine = (part.unsqueeze(1) for part in (by.pin, pairs.caps, pairs.mine))
        tilted = 2 * by.cross.unsqueeze(1) * tau
        base = (self.before + 2 * by.gamma).unsqueeze(1)
        counted = by.total if pairs.summed else torch.zeros_like(by.total)
        found = []
        for weight in (table.low[0], table.high[0]):
            here = replace(
                pairs,
                t=tau,
                linear=share * weight - self.before.unsqueeze(1),
                constant=torch.zeros_like(tau),
                weight=weight,
            )
            value = at_options(here, by)[0]
            # The slope in E, over all E and tau of a cell.
            least = share * (weight[:, :-1] - below) - base - torch.maximum(tilted[:, 1:], tilted[:, :-1])
            most = share * (weight[:, 1:] + above) - base - torch.minimum(tilted[:, 1:], tilted[:, :-1])
            flattest, steepest = (
                share * torch.maximum(torch.minimum(end / (2 * pin), caps), -caps) + counted + sign * share * mine
                for end, sign in ((least, -1), (most, 1))
            )
            cells = _risen(value[:, :-1], value[:, 1:], squared)
            found.append(cells + (-flattest).clamp(min=0) * below + steepest.clamp(min=0) * above)
        return torch.maximum(*found).amax(dim=1)


def joint_pairs(others: OtherRows, own: OwnTerms, basis: Float[Tensor, "d size"] | None = None) -> JointPairs:
    """Those of both, in coordinates of an orthonormal basis where one is given."""
    vectors = (others.queries, others.apart, own.row.kappa, own.row.apart)
    queries, apart, kappa, beside = vectors if basis is None else tuple(part @ basis for part in vectors)

    def of_y(part: Tensor) -> Tensor:
        return torch.cat([part, torch.zeros_like(part)], dim=1)

    tau, weight = own.options()
    width = max(tau.shape[1], others.curve.t.shape[1])
    tau, weight, t, linear, constant = (
        _padded(part, width) for part in (tau, weight, others.curve.t, others.linear, others.constant)
    )
    nothing = others.lengths.new_zeros(len(others))
    return JointPairs(
        first=torch.cat([of_y(queries), of_y(kappa)]),
        second=torch.cat([of_y(apart), of_y(beside).roll(beside.shape[1], 1)]),
        t=torch.cat([t, tau]),
        linear=torch.cat([linear, own.share * weight - own.before.unsqueeze(1)]),
        constant=torch.cat([constant, torch.zeros_like(tau)]),
        weight=torch.cat([torch.zeros_like(constant), weight]),
        summed=own.row.rows.divided,
        caps=torch.cat([others.lengths, own.caps]),
        mine=torch.cat([nothing, own.mine]),
        reach=own.share,
        between=torch.cat([nothing, own.between]),
        least=own.least,
        most=own.most,
    )


def _risen(left: Tensor, right: Tensor, squared: Tensor) -> Tensor:
    """The maximum of the chord from left to right, plus `squared` x (1 - x), x from 0 to 1."""
    room = (squared - (left - right).abs()).clamp(min=0).square()
    return torch.maximum(left, right) + room / (4 * torch.where(squared > 0, squared, torch.ones_like(squared)))


def _padded(part: Float[Tensor, "k nodes"], width: int) -> Float[Tensor, "k width"]:
    """The last node repeated."""
    return torch.cat([part, part[:, -1:].expand(-1, width - part.shape[1])], dim=1)
