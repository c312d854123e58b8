"""The word's own row and all other rows bounded together, where neither is most of the change: at medium radii.

Bounded apart, each row does its worst by a y of its own; a single y that moves the own row's scores to one word draws
few other rows (docs/theory/certificates-attention.md, "Own row and others together").
"""

import math
from dataclasses import dataclass, replace

import torch

from wordsens.certificates.attention.joint_dual import Found, JointDual
from wordsens.certificates.attention.joint_lagrangian import JointMultipliers, JointPairs, form
from wordsens.certificates.attention.joint_terms import MovedOwnRow, OtherRows, OwnTerms, joint_pairs
from wordsens.certificates.attention.own_weights import OwnProblem
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding

MOST_WORDS = 24
"""Of a text: a step costs O(n³ + d³), and a word takes some thousand steps, 5 to 25 s at n = 20, d = 64."""

_SOLVED, _NARROW, _FINE = 40, 1.03, 1.1
"""Intervals of Z that are solved, at most; the quotient of an interval's ends up to which it is not split, and up to
which the own row is also bounded alone."""

_CLEAR = 1e-5
"""The share of the quadratic multipliers that is given up to be clear of the domain's edge."""

_STRICT = 1e-7
"""tau of Q >= tau I, relative to lam and mu."""


def may_be_joint(text: AttentionText) -> bool:
    """True for one head without values of its own, on a text that is short enough."""
    return text.heads == 1 and text.lift is None and text.value_error == 0 and len(text.rows) <= MOST_WORDS


def joint_bound(text: AttentionText, problem: OwnProblem, word: int, radius: float, own: float, others: float) -> float:
    """Of the change of all rows when the word moves, in units of the radius; rounding of rows but its own left out.

    Z's range is split where the bound is largest, until its intervals are narrow. O(n³ + d³) some hundred times an
    interval, of which there are 1 to 40.

    Args:
        problem: of the word's own row alone.
        own, others: bounds of the own row's change and of the others', in units of the radius.
    """
    row = MovedOwnRow(problem.rows, problem.kappa[0], problem.apart[0] / radius, radius)
    rows = _Rows(row, OtherRows.of(text, word, radius), others)
    intervals = [_Interval.unsolved(ends, min(own, cap), others) for ends, cap in row.intervals()]
    last = None
    for _ in range(_SOLVED):
        top = max(intervals, key=lambda one: one.bound)
        if top.solved and not top.divisible:
            break
        intervals.remove(top)
        for one in top.halves() if top.solved else [top]:
            last = rows.solved(one, last)
            intervals.append(last)
    return (max(one.bound for one in intervals) + float(problem.error[0]) / radius) * (1 + 1e-12)


@dataclass(frozen=True)
class _Interval:
    """An interval of Z, what is known there, and the multipliers of the own row alone and of both.

    Attributes:
        cap: of the own row's change, in radii: negative where no y has such a Z.
        bound: of the change of all rows, in radii.
    """

    ends: tuple[float, float]
    cap: float
    bound: float
    alone: Found | None = None
    both: Found | None = None

    @classmethod
    def unsolved(cls, ends: tuple[float, float], cap: float, others: float) -> "_Interval":
        return cls(ends, cap, _apart(cap, others))

    @property
    def solved(self) -> bool:
        return self.both is not None or not self.cap > 0

    @property
    def divisible(self) -> bool:
        return self.bound > 0 and self.ends[1] > _NARROW * self.ends[0]

    def halves(self) -> "list[_Interval]":
        middle = math.sqrt(self.ends[0] * self.ends[1])
        return [replace(self, ends=ends) for ends in ((self.ends[0], middle), (middle, self.ends[1]))]


@dataclass(frozen=True)
class _Rows:
    """The rows of a word; `rest` bounds the change of the others."""

    own: MovedOwnRow
    others: OtherRows
    rest: float

    def solved(self, interval: _Interval, near: _Interval | None) -> _Interval:
        """The interval with good multipliers, its own or a near one's to start from.

        own is the largest b . v / Z over ‖b‖ <= 1, and own² <= cap own, where own is at most `cap`: linear in b, as
        each term is that is summed here.
        """
        start = interval if interval.both is not None else near
        cap, by_alone = interval.cap, None if start is None else start.alone
        if interval.ends[1] <= _FINE * interval.ends[0]:
            alone = _Sum(self.others.none(), self.own.within(*interval.ends, 1.0))
            cap, by_alone = alone.least(by_alone, cap, cap)
        if not cap > 0:
            return replace(interval, cap=cap, bound=min(interval.bound, _apart(cap, self.rest)))
        both = _Sum(self.others, self.own.within(*interval.ends, cap))
        before = min(interval.bound**2, cap**2 + self.rest**2)
        squared, by = both.least(None if start is None else start.both, before, cap**2 + self.rest**2)
        bound = min(interval.bound, math.sqrt(max(squared, 0.0)) * (1 + 1e-12))
        return replace(interval, cap=cap, bound=bound, alone=by_alone, both=by)


def _apart(cap: float, others: float) -> float:
    """The bound of both where each is bounded apart; 0 where no y is left."""
    return math.hypot(cap, others) if cap >= 0 else 0.0


class _Sum:
    """The sum of some rows' squared changes and of a factor times the own row's change."""

    def __init__(self, others: OtherRows, own: OwnTerms):
        self._others, self._own = others, own

    def searched(self, near: Found | None, scale: float) -> Found:
        """Good multipliers, in coordinates of the vectors' span; any that are positive may be tried."""
        row = self._own.row
        together = torch.cat([self._others.queries, self._others.apart, row.kappa, row.apart])
        few = len(together) < together.shape[1]
        dual = JointDual(joint_pairs(self._others, self._own, torch.linalg.qr(together.T).Q if few else None))
        return dual.improved(near, max(scale, 1e-200))

    def least(self, near: Found | None, known: float, scale: float) -> tuple[float, Found]:
        """The least bound known, and the multipliers that gave it or were found; searched again from afar where those
        found from near ones are no better than what was known."""
        found = self.searched(near, scale)
        bound = self.bound(found.best)
        if near is not None and not bound < known:
            found = self.searched(None, scale)
            bound = self.bound(found.best)
        return min(bound, known), found

    def bound(self, by: JointMultipliers) -> float:
        """The Lagrangian, rounded outward; infinite where the multipliers are not in its domain."""
        by = _inward(by, 1 - _CLEAR)
        if not by.positive or not bool(by.flat.isfinite().all()):
            return math.inf
        pairs, k = joint_pairs(self._others, self._own), len(self._others)
        total = float(by.lam + by.mu) + _spent(pairs, by)
        for terms, some in ((self._others, slice(0, k)), (self._own, slice(k, None))):
            total += float(terms.suprema(pairs.some(some), by.some(some)).sum())
        if pairs.summed:
            total += max(-float(by.total) * pairs.least, -float(by.total) * pairs.most)
        total += rounding(16 * pairs.first.shape[1] + 400) * self._size(pairs, by)
        return total if math.isfinite(total) else math.inf

    def _size(self, pairs: JointPairs, by: JointMultipliers) -> float:
        """Bounds the sum of the absolute values of all terms but those of `_spent`."""
        t, caps, weight, linear, constant = (
            part.abs() if part.ndim == 1 else part.abs().amax(dim=1)
            for part in (pairs.t, pairs.caps, pairs.weight, pairs.linear, pairs.constant)
        )
        linear[len(self._others) :] += self._own.share * weight[len(self._others) :] + self._own.before.abs()
        size = (linear + 2 * by.gamma.abs() + 2 * by.cross.abs() * t) * caps + by.pin * caps.square()
        size = size + constant + (2 * by.alpha.abs() + by.hold * t) * t
        size = size + by.total.abs() * weight + pairs.mine * (pairs.reach * weight + 2 * by.shared.abs())
        return 4 * float(size.sum()) + 2 * float(by.lam + by.mu) + abs(float(by.total)) * pairs.most


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
