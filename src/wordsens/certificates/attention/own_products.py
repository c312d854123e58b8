"""The word's own row under divided ReLU: a semidefinite relaxation with the products of its constraints.

New weights w = E/Z, E_l the positive part of new score l and Z their sum, obey quadratic constraints in z = (eta, y',
w, u), eta = 1/Z, y' = eta y and u = w_i y. Any multipliers of them give a bound over all y at once
(docs/theory/certificates-attention.md, "Products of constraints").
"""

import math
from dataclasses import dataclass
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

_TOLERANCE, _STEPS = 5e-4, 4000
"""Of the solver."""


def own_products_bound(text: AttentionText, problem: OwnProblem, word: int, radius: float) -> float:
    """Of the word's own row, in units of the radius, where Z is at least the problem's floor; rounding but that of the
    symmetric part of W left out. Infinite for scores other than divided ReLU and where there are many numbers."""
    score, before = offered(text.score, Tabulated), text.scores[word]
    unit = float(torch.relu(before).sum())
    if score is None or not score.rectified or not unit > 0 or text.heads > 1 or text.lift is not None:
        return math.inf
    head, norms = text.weights[0], text.weights[0].norms
    row = ReluRow(
        word=word,
        scores=before.cpu() / unit,
        keys=problem.kappa[0].cpu() / unit,
        form=(0.5 * radius**2 / unit) * head.symmetric.cpu(),
        twist=float(problem.turn[0]) / unit * (1 + 1e-9),
        apart=problem.apart[0].cpu() / radius,
        least=float(problem.rows.least.amin()) * (1 - 1e-9),
    )
    farthest = float(torch.linalg.vector_norm(row.apart, dim=1).amax()) + 1
    if row.size > MOST_SIZE or not farthest < _FARTHEST:
        return math.inf
    off = radius**2 * rounding(norms.terms + 16) * norms.matrix / head.scale / unit
    off = off + rounding(16) * (float(row.scores.abs().amax()) + float(torch.linalg.vector_norm(row.keys)) + row.twist)
    return row.bound() + 4 * len(before) * off / row.least * farthest


@dataclass(frozen=True)
class ReluRow:
    """A row of new scores scores_l + keys_l . y + [l = word] y . form y, ‖y‖ <= 1.

    The sum of their positive parts is at least `least`, and the row changes by sum_l w_l apart_l + w_word y.

    Attributes:
        twist: at least |y . form y|.
    """

    word: int
    scores: Float[Tensor, " n"]
    keys: Float[Tensor, "n d"]
    form: Float[Tensor, "d d"]
    twist: float
    apart: Float[Tensor, "n d"]
    least: float

    @property
    def size(self) -> int:
        """Of z."""
        n, d = self.keys.shape
        return 1 + n + 2 * d

    def bound(self) -> float:
        """Of the change's length, rounded outward. O(size³) some thousand times."""
        constraints = _constraints(self)
        by = _searched(constraints, self._objective())
        return math.inf if by is None else self.verified(constraints, by)

    def verified(self, constraints: "Constraints", by: Float[Tensor, " c"]) -> float:
        """From any multipliers, those of inequalities made no less than 0.

        With -P = the objective plus the sum of multiplier times form, ‖change‖² <= last multiplier + c ‖D z‖² where
        P + c D² >= 0, and ‖D z‖² <= 4, D = least at eta and y' and 1 elsewhere.
        """
        by = torch.where(constraints.equal, by, by.clamp(min=0))
        n, d = self.keys.shape
        scale = torch.cat([self.scores.new_full((1 + d,), 1 / self.least), self.scores.new_ones(n + d)])
        objective, size = self._objective(), len(scale)
        P = -(constraints.form(by) + objective) * scale * scale.unsqueeze(1)
        absolute = constraints.form(by, absolute=True) + self._objective(absolute=True)
        most = float(torch.linalg.matrix_norm(absolute * scale * scale.unsqueeze(1)))
        room = rounding(4 * (n + d) * (n + d) + 64) * most + 2 * rounding(size + 4) * (size + 1) * most
        if not math.isfinite(room):
            return math.inf
        identity = torch.eye(size, dtype=P.dtype)
        c = max(-float(torch.linalg.eigvalsh(P)[0]), 0.0) + room
        while int(torch.linalg.cholesky_ex(P + c * identity).info):
            c = 2 * c + 1e-12 * most
        return math.sqrt(max(float(by[-1]) + 4 * ((1 + 1e-9) * c + room), 0.0) * (1 + 1e-12))

    def _objective(self, absolute: bool = False) -> Float[Tensor, "size size"]:
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
    terms.add((w.repeat_interleave(n).unsqueeze(0), w.repeat(n).unsqueeze(0), -1.0), equal=True)
    return terms.constraints(row.size)


def _searched(constraints: Constraints, objective: Float[Tensor, "size size"]) -> Float[Tensor, " c"] | None:
    """Good multipliers, the duals of the largest mean of the objective over second moments of z; any are valid."""
    import scs
    from scipy import sparse

    count, size = len(constraints.equal), constraints.size
    first, second, which = (part.numpy() for part in (constraints.first, constraints.second, constraints.which))
    equal, weights = constraints.equal.numpy(), objective.numpy()
    # Equations first; of matrices the lower triangle by columns, the rest times 2^(1/2).
    order = np.argsort(~equal, kind="stable")
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    row, column = np.maximum(first, second), np.minimum(first, second)
    entry = column * size - column * (column - 1) // 2 + row - column
    value = -constraints.coefficient.numpy() * np.where(row == column, 1.0, math.sqrt(0.5))
    moments = size * (size + 1) // 2
    forms = sparse.csc_matrix((value, (place[which], entry)), (count, moments))
    column, row = np.triu_indices(size)
    limits = np.zeros(count + moments)
    limits[place[-1]] = 1.0
    solver = scs.SCS(
        {
            "A": sparse.vstack([forms, -sparse.identity(moments)], format="csc"),
            "b": limits,
            "c": -weights[row, column] * np.where(row == column, 1.0, math.sqrt(2)),
        },
        {"z": int(equal.sum()), "l": int((~equal).sum()), "s": [size]},
        verbose=False,
        max_iters=_STEPS,
        eps_abs=_TOLERANCE,
        eps_rel=_TOLERANCE,
    )
    found = solver.solve()["y"][place]
    return torch.from_numpy(found) if np.isfinite(found).all() else None
