"""Gordon's comparison for one word of an attention layer: the scalar problem in place of the
largest over Delta.

The value of word i is a sum over rows j of suprema at (s_j, g_j), s_j the row's score with the
word, g_j what the best Delta of the other rows does to it; its scatter from word to word is a
prediction. docs/proofs.md derives both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from wordsens.theory.rows import (
    Direction,
    Others,
    Rows,
    ScoredRows,
    gaussian_nodes,
)

# Log y is looked for between these, to a secant's step from this far.
_LOG_PRICES, _OFF = (-16.0, 9.0), 0.003
# Of SciPy's L-BFGS-B, for the shares, in units of what attention retains of all rows.
_OPTIONS = {"ftol": 2e-6, "gtol": 1e-4}
# Of c: at 1 nothing is left to pay with.
_MOST = 0.999
# Of `lowered`: no score is left beyond.
_LOWEST = 8.0
# The best starts are climbed from: there are maxima with much and with little of what rows share.
_CLIMBS = 2
_STEPS, _ITERATIONS = 48, 300
# Of polynomials in s and g; fewer where there are fewer nodes.
_DEGREE = 20

# The numbers of a `Direction`.
Shares = tuple[float, ...]


@dataclass(frozen=True)
class Solution:
    """The value of the scalar problem and where it is taken.

    Attributes:
        value: of S² ‖phi(X)‖² / d, the mean over words.
        variance, third: its second and third cumulants over words.
        direction: the best shares.
    """

    value: float
    variance: float
    third: float
    direction: Shares


@dataclass(frozen=True)
class ScalarProblem:
    """max over directions of min over y > 0 of budget y + n E sup_t [psi(t) - (t - z)² y / (1 -
    f²)] + row i.

    The budget is d rest free, less what row i takes to lower its other scores.

    psi(t) = p² + (p - a)² apart + 2 p (p - a) (c unshared - pull t / d), z Gaussian around b f
    sqrt(d) + (c + w) s. docs/proofs.md#independent-rows derives it. The directions are climbed to
    from `starts`.
    """

    rows: Rows
    others: Others
    self_row: Callable[[Direction], ScoredRows] | None
    starts: tuple[Shares, ...] = ()

    def least(
        self,
        shares: Shares | Float[Tensor, " 5"],
        near: float = 0.1,
    ) -> tuple[Float[Tensor, ""], float]:
        """The minimum over y and where, looked for near a guess; minus infinity where the shares
        are more than there is.

        A line plus means of suprema of lines is convex in y, and its derivative is the budget less
        what is paid. The value can be differentiated in the shares: y and every t stay (envelope
        theorem).
        """
        at = Direction(*torch.as_tensor(shares, dtype=torch.float64))
        scored = self.scored(at)
        free = self.rows.d * at.rest * at.free(self.rows.spread)
        budget = free - sum(rows.lowering for rows in scored)
        if not budget > 0:
            return torch.tensor(-math.inf), near
        y = price(lambda y: sum(rows.paid(y) for rows in scored) / budget.item(), near)
        suprema = [(rows.weights * rows.suprema(y)).sum() for rows in scored]
        return y * budget + sum(suprema), y

    def scored(self, at: Direction) -> list[ScoredRows]:
        """The rows j != i, and row i."""
        others = self.others.scored(self.rows, at)
        return [others] if self.self_row is None else [others, self.self_row(at)]

    def solve(self) -> Solution:
        """The best direction by quasi-Newton ascents from the best starts, and the scatter over
        words."""
        valued = [(*self.least(start), start) for start in self.starts]
        valued.sort(key=lambda each: -float(each[0]))
        climbs = [self.climbed(start, near) for _, near, start in valued[:_CLIMBS]]
        return self.scattered(max(climbs)[1])

    def climbed(self, start: Shares, near: float) -> tuple[float, Shares]:
        """A local maximum and its direction. Where shares are more than there is the value counts
        0."""
        scale = self.rows.n * self.rows.retained

        def loss(shares: Float[np.ndarray, " 5"]) -> tuple[float, Float[np.ndarray, " 5"]]:
            at = torch.tensor(shares, requires_grad=True)
            value, _ = self.least(at, near)
            if not value > 0:
                return 0.0, np.zeros(len(shares))
            (slope,) = torch.autograd.grad(value, at)
            return -value.item() / scale, -slope.numpy() / scale

        # Orthogonal rows are drawn one by one, with nothing along W^T W x_i.
        spread = float(self.rows.spread > 0)
        limits = [
            (-_MOST, _MOST),
            (-1.0, 1.0),
            (-spread, spread),
            (1 - spread, 1 + spread),
            (0.0, _LOWEST),
        ]
        found = minimize(loss, start, jac=True, bounds=limits, options=_OPTIONS)
        return -found.fun, tuple(found.x.tolist())

    def scattered(self, direction: Shares) -> Solution:
        """Cumulants over words at this direction: of the sum over other rows, of row i, of the
        word's shift."""
        value, y = self.least(direction)
        at = Direction(*torch.tensor(direction, dtype=torch.float64))
        others, *itself = self.scored(at)
        layout, n, suprema = self.others.layout, self.rows.n, others.suprema(y)
        # A row's kind and its state are the same for all words: only its score with the word
        # scatters.
        chances = others.weights.sum(dim=1)
        means = (suprema * others.weights).sum(dim=1) / chances
        summed = cumulants(means.reshape(layout), chances.reshape(layout))
        for row in itself:
            summed = summed + cumulants(row.suprema(y).unsqueeze(2), row.weights.unsqueeze(2))
        second, third = summed.tolist()
        slopes = 2 * y * (others.best(y) - others.z) / others.ease.sqrt()
        drawn = float(at.noise(self.rows.spread)) ** 2
        force = float((others.weights * slopes**2).sum()) / n * drawn
        law = chances.reshape(layout).sum(dim=1) / n
        apart, together = overlapping_variance(suprema.reshape(*layout, -1), law, force)
        # With more variance, as skew as before.
        variance = second + n * max(0.0, together - apart)
        return Solution(
            value=float(value),
            variance=variance,
            third=third * (variance / second) ** 1.5,
            direction=direction,
        )


def price(paid: Callable[[float], float], near: float) -> float:
    """Where paid(y) is 1. Its logarithm falls with log y, nearly on a line: secants, in a bracket
    since it may jump."""
    low, high, log, slope = *_LOG_PRICES, math.log(near), -1.5
    excess = math.log(paid(near))
    while abs(excess / slope) > _OFF:
        low, high = (log, high) if excess > 0 else (low, log)
        if high - low <= _OFF:
            break
        last, log = log, log - excess / slope
        if not low < log < high:
            log = (low + high) / 2
        before, excess = excess, math.log(paid(math.exp(log)))
        slope = min(-0.2, (excess - before) / (log - last))
    return math.exp(min(max(log - excess / slope, low), high))


def cumulants(
    values: Float[Tensor, "c s r"],
    weights: Float[Tensor, "c s r"],
) -> Float[Tensor, "2"]:
    """The second and third over s, summed over c and r."""
    total = (weights * values).sum(dim=1, keepdim=True)
    away = values - total / weights.sum(dim=1, keepdim=True)
    return torch.stack([(weights * away**2).sum(), (weights * away**3).sum()])


def overlapping_variance(
    values: Float[Tensor, "c s r g"],
    weights: Float[Tensor, "c r"],
    force: float,
) -> tuple[float, float]:
    """The variance over words of a row's value, per row, as though Delta were chosen again for
    every word; and in truth.

    The first is Var_s E_g F. For the second let words have scores of correlation rho with the rows,
    and their best Deltas the overlap q(rho): it is the integral over rho of E [F_s(s, g) F_s(s',
    g')], s, s' of correlation rho and g, g' of correlation q; and q = E [F_g(s, g) F_g(s', g')] / E
    F_g², since Delta is made of what rows are pulled by. With b_kl the coefficients of F in the
    orthonormal polynomials of s and g these are sum b_kl² k rho^(k-1) q^l and q = sum b_kl² l rho^k
    q^(l-1) / E F_g², the least solution.

    Args:
        values: F at the nodes of s and g (`gaussian_nodes`), for kinds c and states r of rows that
            do not depend on the word.
        weights: of kinds and states, summing to one.
        force: E F_g².
    """
    of_word, of_delta = (_polynomials(values.shape[dim]) for dim in (1, 3))
    coefficients = torch.einsum("sk,csrg,gl->crkl", of_word, values, of_delta)
    squares = torch.einsum("cr,crkl->kl", weights, coefficients**2)
    degree, power = (torch.arange(size, dtype=torch.float64) for size in squares.shape)
    rho = ((torch.arange(_STEPS, dtype=torch.float64) + 0.5) / _STEPS).unsqueeze(1)
    turned = rho**degree @ (squares * power)[:, 1:] / max(force, torch.finfo(torch.float64).tiny)
    overlap = torch.zeros_like(rho)
    for _ in range(_ITERATIONS):
        overlap = (turned * overlap ** power[:-1]).sum(dim=1, keepdim=True).clamp(max=1)
    answer = rho ** degree[:-1] @ (squares[1:] * degree[1:].unsqueeze(1)) * overlap**power
    return float(squares[1:, 0].sum()), float(answer.sum()) / _STEPS


def _polynomials(count: int) -> Float[Tensor, "nodes degree"]:
    """w p_k at the nodes, p_k the orthonormal polynomials of the nodes' weights w, k = 0, 1, ...,
    up to signs."""
    nodes, weights = gaussian_nodes(count)
    powers = nodes.unsqueeze(1) ** torch.arange(min(_DEGREE, count - 3) + 1)
    root = weights.sqrt().unsqueeze(1)
    basis, _ = torch.linalg.qr(powers * root)
    return basis * root
