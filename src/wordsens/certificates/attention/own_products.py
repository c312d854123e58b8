"""The word's own row under divided ReLU: a semidefinite relaxation with the products of its constraints.

New weights w = E/Z, E_l the positive part of new score l and Z their sum, obey quadratic constraints in z = (eta, y',
w, u), eta = 1/Z, y' = eta y and u = w_i y. Any multipliers of them give a bound over all y at once
(docs/theory/certificates-attention.md, "Products of constraints").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.own_weights import OwnProblem
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding
from wordsens.maps.attention.scores import Tabulated, offered

MOST_SIZE, _FARTHEST = 420, 1e6
"""Of z: O(size³) a step; and of a word in radii: no square may overflow."""

_TOLERANCE, _STEPS, _PENALTY = 1e-3, 4000, 10.0
"""Of the solver."""

_MULTIPLES = 1.0, 10.0, 100.0, 1000.0
"""Of multipliers: a large one may show that no z obeys the constraints."""

_WIDEST, _INTERVALS = 2.0, 4
"""Of an interval of Z, the most over the least; and how many are below the last."""


def own_products_bounds(
    text: AttentionText, problem: OwnProblem, word: int, radius: float, intervals: Sequence[tuple[float, float]]
) -> list[float]:
    """Of the word's own row, in units of the radius, where Z is in intervals, one above the other; rounding but that of
    the symmetric part of W left out. Infinite for other scores and where there are many numbers."""
    row, off = _row(text, problem, word, radius)
    bounds: list[float] = []
    off *= len(text.rows)
    for least, most, count in _joined(intervals):
        bound = math.inf
        if row is not None and least > off:
            here = replace(row, least=least - off, most=most + off)
            bound = here.bound() + 4 * off / here.least * here.farthest
        bounds += [bound] * count
    return bounds


def _joined(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """Narrow ones together: the ends, and how many they are."""
    joined: list[tuple[float, float, int]] = []
    for least, most in intervals:
        if joined and (len(joined) > _INTERVALS or most <= _WIDEST * joined[-1][0]):
            joined[-1] = joined[-1][0], most, joined[-1][2] + 1
        else:
            joined.append((least, most, 1))
    return joined


def _row(text: AttentionText, problem: OwnProblem, word: int, radius: float) -> tuple["ReluRow | None", float]:
    """The row, in units of what Z was; and what its scores are off by."""
    score, before = offered(text.score, Tabulated), text.scores[word]
    unit = float(torch.relu(before).sum())
    if score is None or not score.rectified or not unit > 0:
        return None, 0.0
    head, norms = text.weights[0], text.weights[0].norms
    row = ReluRow(
        word=word,
        scores=before.cpu() / unit,
        keys=problem.kappa[0].cpu() / unit,
        form=(0.5 * radius**2 / unit) * head.symmetric.cpu(),
        twist=float(problem.turn[0]) / unit * (1 + 1e-9),
        apart=problem.apart[0].cpu() / radius,
    )
    if row.size > MOST_SIZE or not row.farthest < _FARTHEST:
        return None, 0.0
    off = radius**2 * rounding(norms.terms + 16) * norms.matrix / head.scale / unit
    size = float(row.scores.abs().amax()) + float(torch.linalg.vector_norm(row.keys)) + row.twist
    return row, off + rounding(16) * size


@dataclass(frozen=True)
class ReluRow:
    """A row of new scores scores_l + keys_l . y + [l = word] y . form y, ‖y‖ <= 1.

    Weights w are their positive parts over the sum of these; the row changes by sum_l w_l apart_l + w_word y.

    Attributes:
        twist: at least |y . form y|.
        least, most: of the sum.
    """

    word: int
    scores: Float[Tensor, " n"]
    keys: Float[Tensor, "n d"]
    form: Float[Tensor, "d d"]
    twist: float
    apart: Float[Tensor, "n d"]
    least: float = 0.0
    most: float = math.inf

    @property
    def farthest(self) -> float:
        """The most that the row changes."""
        return float(torch.linalg.vector_norm(self.apart, dim=1).amax()) + 1

    @property
    def size(self) -> int:
        """Of z."""
        n, d = self.keys.shape
        return 1 + n + 2 * d

    def bound(self) -> float:
        """Of the change's length, rounded outward; 0 where the sum cannot be so. O(size³) some hundred times."""
        constraints = _constraints(self)
        by = _searched(self, constraints)
        return math.inf if by is None else min(self.verified(constraints, share * by) for share in _MULTIPLES)

    def verified(self, constraints: "Constraints", by: Float[Tensor, " c"]) -> float:
        """From any multipliers, those of inequalities made no less than 0.

        With -P = the objective plus the sum of multiplier times form, ‖change‖² <= last multiplier + c ‖D z‖² where
        P + c D² >= 0, and ‖D z‖² <= 4, D = least at eta and y' and 1 elsewhere.
        """
        by = torch.where(constraints.equal, by, by.clamp(min=0))
        n, d = self.keys.shape
        scale, objective, size = self.scale, self.objective(), self.size
        P = -(constraints.form(by) + objective) * scale * scale.unsqueeze(1)
        absolute = constraints.form(by, absolute=True) + self.objective(absolute=True)
        most = float(torch.linalg.matrix_norm(absolute * scale * scale.unsqueeze(1)))
        room = rounding(4 * (n + d) * (n + d) + 64) * most + 2 * rounding(size + 4) * (size + 1) * most
        if not math.isfinite(room):
            return math.inf
        identity = torch.eye(size, dtype=P.dtype)
        c = max(-float(torch.linalg.eigvalsh(P)[0]), 0.0) + room
        while int(torch.linalg.cholesky_ex(P + c * identity).info):
            c = 2 * c + 1e-12 * most
        return math.sqrt(max(float(by[-1]) + 4 * ((1 + 1e-9) * c + room), 0.0) * (1 + 1e-12))

    @property
    def scale(self) -> Float[Tensor, " size"]:
        """The most that eta and weights may be; of y' and u their lengths."""
        n, d = self.keys.shape
        return torch.cat([self.scores.new_full((1 + d,), 1 / self.least), self.scores.new_ones(n + d)])

    def objective(self, absolute: bool = False) -> Float[Tensor, "size size"]:
        """Of ‖change‖²."""
        d = self.keys.shape[1]
        zero = self.apart.new_zeros(1 + d, d)
        part = torch.cat([zero, self.apart, torch.eye(d, dtype=zero.dtype)])
        part = part.abs() if absolute else part
        return part @ part.T


@dataclass(frozen=True)
class Constraints:
    """Quadratic forms of z that are at least 0, or 0 where `equal`: each a sum of coefficient z_first z_second.

    The last is -(sum_l w_l)², which is -1 in place of 0.
    """

    size: int
    which: Int[Tensor, " t"]
    first: Int[Tensor, " t"]
    second: Int[Tensor, " t"]
    coefficient: Float[Tensor, " t"]
    equal: Bool[Tensor, " c"]

    def form(self, by: Float[Tensor, " c"], absolute: bool = False) -> Float[Tensor, "size size"]:
        """The sum of the multiplied forms, as a symmetric matrix; `absolute`: of their terms' absolute values."""
        terms = by[self.which] * self.coefficient
        flat = by.new_zeros(self.size**2)
        flat.index_add_(0, self.first * self.size + self.second, terms.abs() if absolute else terms)
        found = flat.view(self.size, self.size)
        return 0.5 * (found + found.T)


_Term: TypeAlias = tuple[Tensor, Tensor, Tensor | float]


class _Terms:
    """Of constraints."""

    def __init__(self) -> None:
        self.parts: list[tuple[Tensor, ...]] = []
        self.equal: list[Tensor] = []
        self.count = 0

    def add(self, *terms: _Term, equal: bool = False) -> None:
        """A term is (first, second, coefficient), arrays that broadcast to (constraints, terms)."""
        count = max(torch.broadcast_shapes(first.shape, second.shape)[0] for first, second, _ in terms)
        which = torch.arange(self.count, self.count + count).unsqueeze(1)
        for first, second, coefficient in terms:
            number = torch.as_tensor(coefficient, dtype=torch.float64)
            self.parts.append(tuple(x.flatten() for x in torch.broadcast_tensors(which, first, second, number)))
        self.equal.append(torch.full((count,), equal))
        self.count += count

    def constraints(self, size: int) -> Constraints:
        which, first, second, coefficient = (torch.cat(part) for part in zip(*self.parts, strict=True))
        return Constraints(size, which, first, second, coefficient, torch.cat(self.equal))


def _constraints(row: ReluRow) -> Constraints:
    """In the order of the docs."""
    n, d = row.keys.shape
    at = torch.arange(row.size)
    eta, y, w, u = at[:1].view(1, 1), at[1 : 1 + d], at[1 + d : 1 + d + n], at[1 + d + n :]
    mine, others = w[row.word].view(1, 1), torch.arange(n) != row.word
    terms = _Terms()
    terms.add((eta, eta, 1.0), (y.view(1, -1), y.view(1, -1), -1.0))
    # Two weights; a weight, or eta, and what a weight is above its score.
    i, j = torch.triu_indices(n, n, 1)
    terms.add((w[i].unsqueeze(1), w[j].unsqueeze(1), 1.0))
    i, j = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    i, j = i[i != j], j[i != j]
    lowest = row.scores - row.twist * ~others

    def above(factor: Tensor, word: Tensor, scores: Tensor, *more: _Term, equal: bool = False) -> None:
        score = (factor, eta, -scores[word].unsqueeze(1))
        moved = (factor, y.unsqueeze(0), -row.keys[word])
        terms.add((factor, w[word].unsqueeze(1), 1.0), score, moved, *more, equal=equal)

    above(w[i].unsqueeze(1), j, lowest)
    rest, own = others.nonzero().squeeze(1), torch.tensor([row.word])
    above(w[rest].unsqueeze(1), rest, row.scores, equal=True)
    form, pairs = row.form.reshape(1, -1), torch.cartesian_prod(torch.arange(d), torch.arange(d)).T
    of_u, of_y = ((part[pairs[0]].unsqueeze(0), y[pairs[1]].unsqueeze(0), -form) for part in (u, y))
    above(mine, own, row.scores, of_u, equal=True)
    above(eta.expand(n - 1, 1), rest, row.scores)
    above(eta, own, row.scores, of_y)
    terms.add((eta, w.unsqueeze(1), 1.0))
    terms.add((eta, u.unsqueeze(1), 1.0), (mine, y.unsqueeze(1), -1.0), equal=True)
    i, j = torch.triu_indices(d, d, 1)
    terms.add((u[i].unsqueeze(1), y[j].unsqueeze(1), 1.0), (u[j].unsqueeze(1), y[i].unsqueeze(1), -1.0), equal=True)
    terms.add((mine, eta, 1.0), (u.unsqueeze(0), y.unsqueeze(0), -1.0))
    terms.add((mine, mine, 1.0), (u.unsqueeze(0), u.unsqueeze(0), -1.0))
    some = torch.cat([w, at[:1]]).unsqueeze(1)
    terms.add((some, w.unsqueeze(0), 1.0), (some, eta, -row.least))
    squared = w.repeat_interleave(n).unsqueeze(0), w.repeat(n).unsqueeze(0)
    few, ratio = 1 / row.most, row.least / row.most
    terms.add((some, eta, 1.0), (some, w.unsqueeze(0), -few))
    terms.add((eta, w.unsqueeze(0), 1 + ratio), (eta, eta, -row.least), (*squared, -few))
    terms.add((*squared, -1.0), equal=True)
    return terms.constraints(row.size)


def _searched(row: ReluRow, constraints: Constraints) -> Float[Tensor, " c"] | None:
    """Good multipliers, the duals of the largest mean of the objective over second moments of z, in units of
    the row's scale; any are valid."""
    import scs
    from scipy import sparse

    count, size = len(constraints.equal), constraints.size
    first, second, which = (part.numpy() for part in (constraints.first, constraints.second, constraints.which))
    equal, unit = constraints.equal.numpy(), row.scale.numpy()
    weights = row.objective().numpy() * unit * unit[:, None]
    # Equations first; of matrices the lower triangle by columns, the rest times 2^(1/2).
    place = np.argsort(np.argsort(~equal, kind="stable"))
    lower, upper = np.maximum(first, second), np.minimum(first, second)
    entry = upper * size - upper * (upper - 1) // 2 + lower - upper
    value = (
        -constraints.coefficient.numpy() * unit[first] * unit[second] * np.where(lower == upper, 1.0, math.sqrt(0.5))
    )
    largest = np.full(count, 1e-200)  # of a constraint
    np.maximum.at(largest, which, np.abs(value))
    moments = size * (size + 1) // 2
    forms = sparse.csc_matrix((value / largest[which], (place[which], entry)), (count, moments))
    upper, lower = np.triu_indices(size)
    limits = np.zeros(count + moments)
    limits[place[-1]] = 1 / largest[-1]
    solver = scs.SCS(
        {
            "A": sparse.vstack([forms, -sparse.identity(moments)], format="csc"),
            "b": limits,
            "c": -weights[lower, upper] * np.where(lower == upper, 1.0, math.sqrt(2)),
        },
        {"z": int(equal.sum()), "l": int((~equal).sum()), "s": [size]},
        verbose=False,
        max_iters=_STEPS,
        eps_abs=_TOLERANCE,
        eps_rel=_TOLERANCE,
        scale=_PENALTY,
    )
    found = solver.solve()["y"][place] / largest
    return torch.from_numpy(found) if np.isfinite(found).all() else None
