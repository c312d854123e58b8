"""Gordon's comparison for one word of an attention layer: the scalar problem in place of the
largest over Delta.

The value of word i is a sum over rows j of suprema at (s_j, g_j), s_j the row's score with the
word, g_j what the best Delta of the other rows does to it; its scatter from word to word is a
prediction. docs/theory/sharp.md derives both.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from wordsens.theory.rows import Direction, Others, Rows, ScoredRows, gaussian_nodes

# Log y is looked for between these; and what a better y may still be worth, in shares of what is
# paid.
_PRICES, _PRICED = (-16.0, 9.0), 1e-5
# Of SciPy's L-BFGS-B, for the shares, in units of the value at the start.
_OPTIONS = {"ftol": 2e-6, "gtol": 1e-4}
# Of c: at 1 nothing is left to pay with.
_MOST = 0.999
# Of `lowered`: no score is left beyond.
_LOWEST = 8.0
# Starts, of what rows share and of how far the other scores of row i are lowered.
_COMMON, _LOWERED = (0.1, 0.4, 0.7, 0.9), (0.0, 0.7, 1.5, 3.0)
# Of the starts: there are maxima with much and with little of what rows share.
_CLIMBS = 2
_STEPS, _ITERATIONS = 48, 300
# Of polynomials in s and g; fewer where there are fewer nodes.
_DEGREES = (16, 20)


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
    sqrt(d) + (c + w) s. docs/theory/sharp.md derives it.
    """

    rows: Rows
    others: Others
    self_row: Callable[[Direction], ScoredRows] | None
    lowers: bool = False

    def least(
        self, shares: Shares | Float[Tensor, " 5"], near: float = 0.1
    ) -> tuple[Float[Tensor, ""], float]:
        """The minimum over y and where, looked for near a guess; minus infinity where the shares
        are more than there is.

        A line plus means of suprema of lines is convex in y, and its derivative is the budget less
        what is paid. The value can be differentiated in the shares: y and every t stay (envelope
        theorem).
        """
        at = Direction(*torch.as_tensor(shares, dtype=torch.float64))
        scored = self.scored(at)
        lowering = sum(rows.lowering for rows in scored)
        budget = self.rows.d * at.rest * at.free(self.rows.spread) - lowering
        if at.free(self.rows.spread) <= 0 or budget <= 0:
            return torch.tensor(-math.inf), near
        curves = [rows.curve() for rows in scored]
        low, high, log, fall = *_PRICES, math.log(near), -1.5
        last: tuple[float, float] | None = None
        while True:
            best = [
                rows.best(math.exp(log), *curve) for rows, curve in zip(scored, curves, strict=True)
            ]
            paid = sum(rows.paid(t) for rows, t in zip(scored, best, strict=True))
            # It falls with log y, nearly on a line: secants.
            excess = math.log(paid / budget.item())
            low, high = (log, high) if excess > 0 else (low, log)
            if last is not None:
                fall = min(-0.2, (excess - last[1]) / (log - last[0]))
            to = log - excess / fall
            if abs(excess * (to - log)) < _PRICED or high - low < _PRICED:
                break
            last, log = (log, excess), to if low < to < high else (low + high) / 2
        y = math.exp(log)
        sums = [
            (rows.weights * rows.values(y, t)).sum() for rows, t in zip(scored, best, strict=True)
        ]
        return y * budget + sum(sums), y

    def scored(self, at: Direction) -> list[ScoredRows]:
        """The rows j != i, and row i."""
        others = self.others.scored(self.rows, at)
        return [others] if self.self_row is None else [others, self.self_row(at)]

    def solve(self) -> Solution:
        """The best direction by quasi-Newton ascents over the shares that this text has, and the
        scatter over words."""
        common = _COMMON if self.rows.common else (0.0,)
        lowered = _LOWERED if self.lowers else (0.0,)
        starts = [(0.45, b, 0.0, 1.0, by) for b in common for by in lowered]
        if self.lowers:
            starts += [(-0.5, b, 0.0, 1.0, _LOWERED[-1]) for b in common]
        if len(starts) > _CLIMBS:
            starts.sort(key=lambda start: -float(self.least(start)[0]))
        _, direction = max(self.climbed(start) for start in starts[:_CLIMBS])
        return self.scattered(direction)

    def climbed(self, start: Shares) -> tuple[float, Shares]:
        """A local maximum. Where shares are more than there is the value counts 0."""
        scale, near = self.least(start)

        def loss(shares: Float[np.ndarray, " 5"]) -> tuple[float, Float[np.ndarray, " 5"]]:
            at = torch.tensor(shares, requires_grad=True)
            value, _ = self.least(at, near)
            if not value > 0:
                return 0.0, np.zeros(len(shares))
            (slope,) = torch.autograd.grad(value, at)
            return -(value / scale).item(), -(slope / scale).numpy()

        common, spread = float(self.rows.common), float(self.rows.spread > 0)
        limits = [
            (-_MOST if self.lowers else 0.0, _MOST),
            (-common, common),
            (-spread, spread),
            (1 - spread, 1 + spread),
            (0.0, _LOWEST if self.lowers else 0.0),
        ]
        found = minimize(loss, start, jac=True, bounds=limits, options=_OPTIONS)
        return -found.fun * float(scale), tuple(found.x.tolist())

    def scattered(self, direction: Shares) -> Solution:
        """Cumulants over words at this direction: of the sum over other rows, of row i, of the
        word's shift."""
        value, y = self.least(direction)
        at = Direction(*torch.tensor(direction, dtype=torch.float64))
        scored, layout = self.scored(at), self.others.layout
        best = [rows.best(y, *rows.curve()) for rows in scored]
        values = [rows.values(y, t) for rows, t in zip(scored, best, strict=True)]
        # A row's kind and its state are the same for all words: only its score with the word
        # scatters.
        chances = scored[0].weights.sum(dim=1)
        means = (values[0] * scored[0].weights).sum(dim=1) / chances
        second, third = cumulants(means.reshape(layout), chances.reshape(layout))
        for drawn, row in zip(values[1:], scored[1:], strict=True):
            itself = cumulants(drawn.unsqueeze(2), row.weights.unsqueeze(2))
            second, third = second + itself[0], third + itself[1]
        n, others = self.rows.n, scored[0]
        slopes = 2 * y * (best[0] - others.z) / others.ease.sqrt()
        force = (
            float((others.weights * slopes**2).sum()) / n * float(at.noise(self.rows.spread)) ** 2
        )
        apart, together = overlapping_variance(
            values[0].reshape(*layout, -1), chances.reshape(layout).sum(dim=1) / n, force
        )
        # With more variance, as skew as before.
        variance = second + n * max(0.0, together - apart)
        return Solution(float(value), variance, third * (variance / second) ** 1.5, direction)


def cumulants(
    values: Float[Tensor, "c s r"], weights: Float[Tensor, "c s r"]
) -> tuple[float, float]:
    """The second and third over s, summed over c and r."""
    away = values - (weights * values).sum(dim=1, keepdim=True) / weights.sum(dim=1, keepdim=True)
    return float((weights * away**2).sum()), float((weights * away**3).sum())


def overlapping_variance(
    values: Float[Tensor, "c s r g"], weights: Float[Tensor, "c r"], force: float
) -> tuple[float, float]:
    """The variance over words of a row's value, per row, as though Delta were chosen anew for every
    word; and in truth.

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
    of_word, of_delta = (
        _polynomials(values.shape[dim], degree)
        for dim, degree in zip((1, 3), _DEGREES, strict=True)
    )
    coefficients = torch.einsum("sk,csrg,gl->crkl", of_word, values, of_delta)
    squares = torch.einsum("cr,crkl->kl", weights, coefficients**2)
    degree, power = (torch.arange(size, dtype=torch.float64) for size in squares.shape)
    rho = ((torch.arange(_STEPS, dtype=torch.float64) + 0.5) / _STEPS).unsqueeze(1)
    turned = rho**degree @ (squares * power)[:, 1:] / max(force, sys.float_info.min)
    overlap = torch.zeros_like(rho)
    for _ in range(_ITERATIONS):
        overlap = (turned * overlap ** power[:-1]).sum(dim=1, keepdim=True).clamp(max=1)
    answer = rho ** degree[:-1] @ (squares[1:] * degree[1:].unsqueeze(1)) * overlap**power
    return float(squares[1:, 0].sum()), float(answer.sum()) / _STEPS


def _polynomials(count: int, degree: int) -> Float[Tensor, "nodes degree"]:
    """w p_k at the nodes, p_k the orthonormal polynomials of the nodes' weights w, k = 0, 1, ..."""
    nodes, weights = gaussian_nodes(count)
    powers = nodes.unsqueeze(1) ** torch.arange(min(degree, count - 3) + 1)
    basis, upper = torch.linalg.qr(powers * weights.sqrt().unsqueeze(1))
    return basis * torch.sign(upper.diagonal()) * weights.sqrt().unsqueeze(1)
