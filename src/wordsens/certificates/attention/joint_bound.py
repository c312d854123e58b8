"""The word's own row and all other rows bounded together, where neither is most of the change: at medium radii.

Bounded apart, each row does its worst by a y of its own; a single y that moves the own row's scores to one word draws
few other rows (docs/theory/certificates-attention.md, "Own row and others together").
"""

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.joint_cells import COARSE, FINE, Cell
from wordsens.certificates.attention.joint_dual import Centre, JointDual
from wordsens.certificates.attention.joint_lagrangian import JointMultipliers, JointPairs, form
from wordsens.certificates.attention.joint_terms import MovedOwnRow, OtherRows, OwnTerms, joint_pairs
from wordsens.certificates.attention.own_products import own_products_bounds
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

_STEPS_DOWN = {COARSE: 3, FINE: 4}
"""How far down the path: of the bound, 3 and .2 % are left."""

_MOST_CENTRED, _CENTRED_WORDS = 160, 8000
"""Centres for all rows, at most; and so many over the number of words. Half where nothing is divided."""

_IDLE, _LITTLE = 40, 0.005
"""Centres that together lower the bound by less than this share are the last."""

_LOW = 0.6
"""Of a cell's bound: a cell that is found to have less is not solved further."""

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

    Branch and bound over Z, the change of the own row and its weights: the cell with the largest bound is solved, then
    split, until its width costs little or it is no larger than `enough`. O(n³) some thirty times a cell, of which
    there are 1 to 160.

    Args:
        problem: of the word's own row alone, Z at least `LEAST_SUM`.
        own, others: bounds of the own row's change and of the others', in units of the radius.
    """
    error = float(problem.error[0]) / radius
    own, others = own * (1 + 1e-9) + error, others * (1 + 1e-9)
    row = MovedOwnRow(problem.rows, problem.kappa[0], problem.apart[0] / radius, radius)
    found = [(ends, min(own, cap)) for ends, cap in row.intervals() if cap >= 0]
    products = own_products_bounds(text, problem, word, radius, [ends for ends, _ in found])
    whole = [(ends, min(cap, another)) for (ends, cap), another in zip(found, products, strict=True)]
    rows = _Rows.of(row, OtherRows.of(text, word, radius), others)
    cells = [Cell(ends, 0.0, cap, math.hypot(cap, others), row.any_weights) for ends, cap in whole]
    if bool(problem.floored[0]):
        far = row.farthest(float(torch.linalg.vector_norm(text.outputs[word])))
        cells += [
            Cell((0.0, LEAST_SUM), 0.0, high, math.hypot(high, others), row.any_weights, itself=itself)
            for high, itself in ((min(own, far), False), (own, True))
        ]
    if not cells:
        return others + error
    count = min(_MOST_CENTRED, _CENTRED_WORDS // len(row.kappa))
    search = _Search(rows, cells)
    search.run(count if row.rows.divided else count // 2, enough)
    return (max(one.bound for one in search.cells) + error) * (1 + 1e-12)


@dataclass(frozen=True)
class _Rows:
    """The rows of a word.

    Attributes:
        basis: of the vectors' span where it is smaller than the space.
        most_of_others: a bound of the change of the other rows apart, in radii.
    """

    own: MovedOwnRow
    others: OtherRows
    basis: Float[Tensor, "d size"] | None
    most_of_others: float

    @classmethod
    def of(cls, own: MovedOwnRow, others: OtherRows, most_of_others: float) -> "_Rows":
        together = torch.cat([others.queries, others.apart, own.kappa, own.apart])
        few = len(together) < together.shape[1]
        return cls(own, others, torch.linalg.qr(together.T).Q if few else None, most_of_others)

    def solved(self, cell: Cell, near: Cell | None) -> Cell:
        """The cell after its next solution, from its own whole's centre or a near cell's, or from afar where that
        gains nothing."""
        terms = self._terms(cell)
        solved = replace(cell, solved=cell.following)
        if terms.empty:
            return replace(solved, bound=0.0)
        start = near.centre if cell.centre is None and near is not None else cell.centre
        least = max(_LOW * cell.bound, cell.low) ** 2
        centre, squared = self._squared(terms, cell.following, start, cell.bound**2, least)
        # The whole changes by no less than the own row: below `low` no y is left.
        bound = min(cell.bound, math.sqrt(squared) * (1 + 1e-12)) if squared > cell.low**2 else 0.0
        return replace(solved, bound=bound, centre=centre)

    def _terms(self, cell: Cell) -> OwnTerms:
        return self.own.within(*cell.ends, cell.low, cell.high, cell.weights, cell.itself)

    def _squared(
        self, terms: OwnTerms, stage: int, near: Centre | None, unit: float, least: float
    ) -> tuple[Centre, float]:
        """The dual's end, and its bound; not searched further where that is at most `least`."""
        dual = JointDual(joint_pairs(self.others, terms, self.basis))
        path = [max(unit, 1e-200) / dual.pairs.count * share for share in _PATH[: _STEPS_DOWN[stage]]]

        def down(by: JointMultipliers) -> tuple[Centre, float]:
            centre = dual.down(path, by, least * (1 - 1e-6) - terms.fixed)
            return centre, joint_lagrangian_bound(self.others, terms, centre.best)

        found = None if near is None else down(near.by)
        return found if found is not None and found[1] < unit else down(dual.start(unit))

    def parts(self, cell: Cell) -> list[Cell]:
        """Two parts of a cell that was solved."""
        return self._by_weight(cell) if cell.by_weight else cell.halves(self.most_of_others)

    def _by_weight(self, cell: Cell) -> list[Cell]:
        """Two cells: the weight that is mixed most is small in one and large in the other."""
        assert cell.centre is not None
        worst = cell.centre.worst
        word = worst.pair - len(self.others)
        least, most = self._terms(cell).weights[:, word].tolist()
        middle = min(max(worst.mean, 0.75 * least + 0.25 * most), 0.25 * least + 0.75 * most)
        parts = []
        for side in (1, 0):
            weights = cell.weights.clone()
            weights[side, word] = middle
            parts.append(cell.part(weights=weights))
        return parts


@dataclass
class _Search:
    """Branch and bound: the cell with the largest bound is split or solved.

    Attributes:
        solved: the cells that were.
        bounds: the largest one, a centre at a time.
    """

    rows: _Rows
    cells: list[Cell]
    solved: list[Cell] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)

    def run(self, count: int, enough: float) -> None:
        """Until `count` centres are spent, or the bound is `enough`, or little is gained."""
        spent = 0
        while spent < count:
            top = max(self.cells, key=lambda one: one.bound)
            if top.divisible:
                self._replace(top, self.rows.parts(top))
                continue
            if top.bound <= enough or top.solved == FINE or self._idle(top.bound, spent):
                break
            spent += 1
            near = min(self.solved, key=top.away, default=None)
            self.solved.append(self.rows.solved(top, near))
            self._replace(top, self.solved[-1:])

    def _replace(self, cell: Cell, parts: list[Cell]) -> None:
        self.cells = [one for one in self.cells if one is not cell] + parts

    def _idle(self, bound: float, spent: int) -> bool:
        self.bounds += [bound] * (spent + 1 - len(self.bounds))
        return len(self.bounds) > _IDLE and bound > (1 - _LITTLE) * self.bounds[-1 - _IDLE]


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
