"""The word's own row and all other rows bounded together, where neither is most of the change: at medium radii.

Bounded apart, each row does its worst by a y of its own; a single y that moves the own row's scores to one word draws
few other rows (docs/theory/certificates-attention.md, "Own row and others together").
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.joint_dual import Centre, JointDual
from wordsens.certificates.attention.joint_lagrangian import JointMultipliers, JointPairs, form
from wordsens.certificates.attention.joint_terms import MovedOwnRow, OtherRows, OwnTerms, joint_pairs
from wordsens.certificates.attention.own_weights import OwnProblem, may_gain
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding

MOST_WORDS = 100
"""Of a text: a step costs O(n³), and a word takes a few hundred to two thousand."""

_FARTHEST = 0.9
"""In lengths of a row (root mean square): how far a word moves at most under divided scores. Farther, Z has a wide
range, many cells have to be solved, and the two bounds apart are near."""

LEAST_SUM = 0.05
"""Of the sum of the weights that are divided by it, in units of what it was: where it is less, nothing is said of them
but that each is no more than this."""

_PATH = [0.4 * 0.2**at for at in range(4)]
"""Temperatures, in the square of a cell's bound over the pairs."""

_COARSE, _FINE = 2, 3
"""Places in the path: where a cell is solved at first, and what it ends with. Of the bound, 3 and .2 % are left."""

_MOST_CENTRED, _CENTRED_WORDS = 160, 8000
"""Centres, at most; and so many over the number of words. Half where nothing is divided."""

_IDLE, _LITTLE = 40, 0.005
"""Centres that together lower the bound by less than this share are the last."""

_GAINS = 0.04, 0.015
"""Of the bound's square: a cell is not split that gains less, as coarsely and as finely as it is solved."""

_OF_MIXED = 0.5
"""Of what the dual gains by mixing a weight: about what is gained by splitting its range."""

_LOW = 0.6
"""Of a cell's bound: a cell that is found to have less is not solved further."""

_FIRST_SPLIT = 0.8
"""Of the bound of both apart: where the own row changes so little that this much is left, it has a cell of its own."""

_CLEAR = 1e-5
"""The share of the quadratic multipliers that is given up to be clear of the domain's edge."""

_STRICT = 1e-7
"""tau of Q >= tau I, relative to lam and mu."""


def may_be_joint(text: AttentionText, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Bool[Tensor, " w"]:
    """True for one head without values of its own on a text that is small enough, where the word does not move far or
    scores are not divided and tables gain."""
    n = len(text.rows)
    if n > MOST_WORDS or text.heads > 1 or text.lift is not None or text.value_error != 0:
        return torch.zeros_like(radius).bool()
    if not text.score.normalized:
        return may_gain(text, words, radius)
    return radius <= _FARTHEST * torch.linalg.vector_norm(text.rows) / math.sqrt(n)


def joint_bound(
    text: AttentionText, problem: OwnProblem, word: int, radius: float, own: float, others: float, enough: float = 0.0
) -> float:
    """Of the change of all rows when the word moves, in units of the radius; rounding of rows but its own left out.

    Branch and bound over Z and over the change of the own row: the cell with the largest bound is solved, then split,
    until its width costs little or it is no larger than `enough`. O(n³) some thirty times a cell, of which there
    are 1 to 160.

    Args:
        problem: of the word's own row alone, Z at least `LEAST_SUM`.
        own, others: bounds of the own row's change and of the others', in units of the radius.
    """
    error = float(problem.error[0]) / radius
    own, others = own * (1 + 1e-9) + error, others * (1 + 1e-9)
    row = MovedOwnRow(problem.rows, problem.kappa[0], problem.apart[0] / radius, radius)
    whole = [(ends, min(own, cap)) for ends, cap in row.intervals() if cap >= 0]
    most = math.hypot(max((cap for _, cap in whole), default=0.0), others)
    little = math.sqrt(max((_FIRST_SPLIT * most) ** 2 - others**2, 0.0))
    cells = [
        _Cell(ends, low, high, math.hypot(high, others), row.any_weights)
        for ends, cap in whole
        for low, high in ([(0.0, little), (little, cap)] if 0 < little < cap else [(0.0, cap)])
    ]
    if bool(problem.floored[0]):
        far = row.farthest(float(torch.linalg.vector_norm(text.outputs[word])))
        cells += [
            _Cell((0.0, LEAST_SUM), 0.0, high, math.hypot(high, others), row.any_weights, itself=itself)
            for high, itself in ((min(own, far), False), (own, True))
        ]
    if not cells:
        return others + error
    rows = _Rows.of(row, OtherRows.of(text, word, radius))
    solved: list[_Cell] = []
    bounds: list[float] = []
    count = min(_MOST_CENTRED, _CENTRED_WORDS // len(row.kappa))
    for _ in range(count if row.rows.divided else count // 2):
        top = max(cells, key=lambda one: one.bound)
        while top.stage >= _COARSE and top.divisible:
            cells.remove(top)
            cells.extend(rows.parts(top, others))
            top = max(cells, key=lambda one: one.bound)
        bounds.append(top.bound)
        idle = len(bounds) > _IDLE and top.bound > (1 - _LITTLE) * bounds[-1 - _IDLE]
        if top.bound <= enough or top.stage == _FINE or idle:
            break
        cells.remove(top)
        near = min(solved, key=top.away, default=None)
        solved.append(rows.solved(top, near))
        cells.append(solved[-1])
    return (max(one.bound for one in cells) + error) * (1 + 1e-12)


@dataclass(frozen=True)
class _Cell:
    """An interval of Z and one of the own row's change, and what is known there.

    Attributes:
        ends: of Z.
        low, high: of the own row's change, in radii.
        bound: of the change of all rows, in radii; 0 where no y is left.
        stage: place in the path of the last temperature it was solved at; less the path's length where only the cell
            it is a part of was solved there; -1 before.
        centre: there; in a half of a cell, its whole's.
        weights: the least and the most that each weight of the own row may be.
        itself: where Z begins at 0, whether the own row changes by no more than the moved word's distance.
    """

    ends: tuple[float, float]
    low: float
    high: float
    bound: float
    weights: Float[Tensor, "2 n"]
    stage: int = -1
    centre: Centre | None = None
    itself: bool = False

    @property
    def following(self) -> int:
        """The place in the path of its next temperature."""
        if self.stage >= 0:
            return self.stage + 1
        return _COARSE if self.centre is None else self.stage + len(_PATH)

    @property
    def _gains(self) -> tuple[float, float, float]:
        """About what the bound's square falls by where the own row's change, Z or a weight is split."""
        if self.centre is None or self.ends[0] == 0 or self.high == 0:
            return 0.0, 0.0, 0.0
        worst, first, (by_change, by_sum) = self.centre.worst, self.ends[0], self._middles
        total = min(max(worst.total, first), self.ends[1])
        change = worst.drawn * first / ((self.low + self.high) * total)
        change = min(max(change, self.low), self.high)

        def lost(low: float, high: float, first: float) -> float:
            """(change - low) (high - change + (low + high) (Z / first - 1)): the price of the two widths."""
            return (change - low) * (high - change + (low + high) * (total / first - 1))

        now = lost(self.low, self.high, first)
        half = (by_change, self.high) if change > by_change else (self.low, by_change)
        return (
            now - lost(*half, first),
            now - lost(self.low, self.high, by_sum if total > by_sum else first),
            _OF_MIXED * worst.mixed,
        )

    @property
    def _middles(self) -> tuple[float, float]:
        """Of the own row's change, and of Z."""
        return 0.5 * (self.low + self.high), math.sqrt(self.ends[0] * self.ends[1])

    @property
    def divisible(self) -> bool:
        return max(self._gains) > _GAINS[self.stage - _COARSE] * self.bound**2

    @property
    def by_weight(self) -> bool:
        """True where splitting a weight gains most."""
        return self._gains[2] == max(self._gains)

    def halves(self, others: float) -> "list[_Cell]":
        """Split where more is gained. Of two parts by the own row's change the lower is also bounded apart."""
        by_change, by_sum, _ = self._gains
        whole, (middle, middle_sum) = replace(self, stage=self.stage - len(_PATH)), self._middles
        if by_sum > by_change:
            return [replace(whole, ends=ends) for ends in ((self.ends[0], middle_sum), (middle_sum, self.ends[1]))]
        below = replace(whole, high=middle, bound=min(self.bound, math.hypot(middle, others)))
        return [below, replace(whole, low=middle)]

    def away(self, other: "_Cell") -> float:
        """The distance of another cell's Z, in logarithms."""
        return abs(math.log(sum(self.ends) / sum(other.ends)))


@dataclass(frozen=True)
class _Rows:
    """The rows of a word, and a basis of the vectors' span where it is smaller."""

    own: MovedOwnRow
    others: OtherRows
    basis: Float[Tensor, "d size"] | None

    @classmethod
    def of(cls, own: MovedOwnRow, others: OtherRows) -> "_Rows":
        together = torch.cat([others.queries, others.apart, own.kappa, own.apart])
        few = len(together) < together.shape[1]
        return cls(own, others, torch.linalg.qr(together.T).Q if few else None)

    def solved(self, cell: _Cell, near: _Cell | None) -> _Cell:
        """The cell at its next temperature, from its own whole's centre or a near cell's, or from afar where that
        gains nothing."""
        terms = self.own.within(*cell.ends, cell.low, cell.high, cell.weights, cell.itself)
        if terms.empty:
            return replace(cell, bound=0.0, stage=cell.following)
        dual = JointDual(joint_pairs(self.others, terms, self.basis))
        enough = max(_LOW * cell.bound, cell.low) ** 2 * (1 - 1e-6) - terms.fixed
        unit, stage, squared = max(cell.bound**2, 1e-200), cell.following, math.inf
        path = [unit / dual.pairs.count * share for share in _PATH[: stage + 1]]
        centre = near.centre if cell.centre is None and near is not None else cell.centre
        for by in [*([] if centre is None else [centre.by]), dual.start(unit)]:
            centre = dual.down(path, by, enough)
            squared = joint_lagrangian_bound(self.others, terms, centre.best)
            if squared < cell.bound**2:
                break
        # The whole changes by no less than the own row: below `low` no y is left.
        bound = min(cell.bound, math.sqrt(squared) * (1 + 1e-12)) if squared > cell.low**2 else 0.0
        return replace(cell, bound=bound, stage=stage, centre=centre)

    def parts(self, cell: _Cell, others: float) -> list[_Cell]:
        """Two parts of a cell that was solved."""
        return self._by_weight(cell) if cell.by_weight else cell.halves(others)

    def _by_weight(self, cell: _Cell) -> list[_Cell]:
        """Two cells: the weight that is mixed most is small in one and large in the other."""
        assert cell.centre is not None
        word = cell.centre.worst.pair - len(self.others)
        least, most = self.own.within(*cell.ends, cell.low, cell.high, cell.weights).weights[:, word].tolist()
        middle = min(max(cell.centre.worst.mean, 0.75 * least + 0.25 * most), 0.25 * least + 0.75 * most)
        parts = []
        for side in (1, 0):
            weights = cell.weights.clone()
            weights[side, word] = middle
            parts.append(replace(cell, stage=cell.stage - len(_PATH), weights=weights))
        return parts


def joint_lagrangian_bound(others: OtherRows, own: OwnTerms, by: JointMultipliers) -> float:
    """The Lagrangian, rounded outward; infinite where the multipliers are not in its domain."""
    by = _inward(by, 1 - _CLEAR)
    if not by.positive or not bool(by.flat.isfinite().all()):
        return math.inf
    pairs, k = joint_pairs(others, own), len(others)
    total = float(by.lam + by.mu) + _spent(pairs, by)
    for terms, some in ((others, slice(0, k)), (own, slice(k, None))):
        total += float(terms.suprema(pairs.some(some), by.some(some)).sum())
    total += float(pairs.of_sum(by.total).amax()) + own.fixed
    total += rounding(16 * pairs.first.shape[1] + 400) * _size(others, own, pairs, by)
    return total if math.isfinite(total) else math.inf


def _size(others: OtherRows, own: OwnTerms, pairs: JointPairs, by: JointMultipliers) -> float:
    """Bounds the sum of the absolute values of all terms but those of `_spent`."""
    t, caps, weight, linear, constant = (
        part.abs() if part.ndim == 1 else part.abs().amax(dim=1)
        for part in (pairs.t, pairs.caps, pairs.weight, pairs.linear, pairs.constant)
    )
    linear[len(others) :] += own.share * weight[len(others) :] + own.before.abs()
    size = (linear + 2 * by.gamma.abs() + 2 * by.cross.abs() * t) * caps + by.pin * caps.square()
    size = size + constant + (2 * by.alpha.abs() + by.hold * t) * t
    size = size + by.total.abs() * weight + pairs.mine * (pairs.reach * weight + 2 * by.shared.abs())
    fixed = abs(float(by.total)) * pairs.most + pairs.relief + abs(own.fixed)
    return 4 * float(size.sum()) + 2 * float(by.lam + by.mu) + fixed


def _spent(pairs: JointPairs, by: JointMultipliers) -> float:
    """At least sup over z of 2 w . z - z . Q z, with Q >= tau I verified; infinite where it is not.

    For any z it is at most w . z + (w - Q z) . z + ‖w - Q z‖²/tau.
    """
    Q = form(pairs, by)
    size, half = len(Q), len(Q) // 2
    lengths = [torch.linalg.vector_norm(part, dim=1) for part in (pairs.first, pairs.second)]
    parts = by.hold * lengths[0].square() + by.pin * lengths[1].square() + 2 * by.cross.abs() * lengths[0] * lengths[1]
    most = float(parts.sum() + by.lam + by.mu + by.shared.abs())
    tau = _STRICT * float(torch.minimum(by.lam, by.mu))
    room = tau + rounding(2 * pairs.count + 16) * most
    room += 2 * rounding(size + 4) * (size * most + half * float(by.lam + by.mu))
    identity = torch.eye(size, dtype=Q.dtype, device=Q.device)
    factor, failed = torch.linalg.cholesky_ex(Q - room * identity)
    if int(failed) or not math.isfinite(room):
        return math.inf
    w = by.alpha @ pairs.first + by.gamma @ pairs.second
    z = torch.cholesky_solve(w.unsqueeze(1), factor).squeeze(1)
    z = z + torch.cholesky_solve((w - Q @ z).unsqueeze(1), factor).squeeze(1)
    left, length = w - Q @ z, float(torch.linalg.vector_norm(z))
    pushed = float((by.alpha.abs() * lengths[0]).sum() + (by.gamma.abs() * lengths[1]).sum())
    off = rounding(size + 2 * pairs.count + 32) * (pushed + most * length)
    residual = float(torch.linalg.vector_norm(left)) + off
    return float(w @ z + left @ z) + 4 * off * length + residual**2 / tau


def _inward(by: JointMultipliers, share: float) -> JointMultipliers:
    """With a share of what multiplies squares and products: farther inside the domain."""
    return JointMultipliers(
        torch.cat([by.flat[:4], by.alpha, by.gamma, share * by.hold, share * by.pin, share * by.cross])
    )
