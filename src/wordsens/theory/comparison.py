"""Gordon's comparison for one word of an attention layer: the scalar problem in place of the
largest over Delta.

The value of word i is a sum over rows j of suprema at (s_j, g_j), s_j the row's score with the
word, g_j what the best Delta of the other rows does to it; its scatter from word to word is a
prediction. docs/theory/sharp.md derives both.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq, minimize
from torch import Tensor

from wordsens.theory.rows import Direction, Others, Rows, SelfRow, gaussian_nodes

# Nodes of g where all rows are alike, and of several kinds.
_FINE, _COARSE = 33, 17
# Values of t: for the other rows; for row i, whose weight under ReLU may be a step.
_REACHES, _SELF_REACHES = 96, 192
# Of log y: how far from a guess it is looked for, how accurately, and the least.
_PRICES, _PRICED = (-16.0, 9.0), 1e-4
# Of SciPy's L-BFGS-B, for the shares, in units of the value at the start.
_OPTIONS = {"ftol": 1e-5, "gtol": 1e-4, "maxls": 6}
# Of c: at 1 nothing is left to pay with.
_MOST = 0.999
# Starts, of what rows share and of how far the other scores of row i are lowered.
_COMMON, _LOWERED = (0.1, 0.4, 0.7, 0.9), (0.0, 0.7, 1.5, 3.0)
# Of the starts: there are maxima with much and with little of what rows share.
_CLIMBS = 2
_STEPS, _ITERATIONS = 48, 300
# Of polynomials in s and g; fewer where there are fewer nodes.
_DEGREES = (16, 20)


@dataclass(frozen=True)
class Solution:
    """The value of the scalar problem and where it is taken.

    Attributes:
        value: of S² ‖phi(X)‖² / d, the mean over words.
        variance, third: its second and third cumulants over words.
        direction: the best.
    """

    value: float
    variance: float
    third: float
    direction: Direction

    def scattered(self, variance: float) -> "Solution":
        """With more variance over words, as skew as before."""
        if not self.variance > 0:
            return replace(self, variance=self.variance + variance)
        wider = (self.variance + variance) / self.variance
        return replace(self, variance=wider * self.variance, third=wider**1.5 * self.third)


@dataclass(frozen=True)
class ScoredRows:
    """Rows whose scores are z where Delta is not drawn to them, at the nodes of z.

    Attributes:
        weights: of the nodes; they sum to the number of rows.
        z: the scores.
        ease: by how much a score follows Delta, squared.
        change: t (k, m) -> (k, m), the squared change over d of a row whose score is t.
        reach: how far beyond z no t is of use.
    """

    weights: Float[Tensor, "k g"]
    z: Float[Tensor, "k g"]
    ease: Float[Tensor, "k 1"]
    change: Callable[[Float[Tensor, "#k m"]], Float[Tensor, "k m"]]
    reach: float

    def curve(self, count: int) -> tuple[Float[Tensor, " r"], Float[Tensor, "k r"]]:
        """Values of t and the change there."""
        t = torch.linspace(float(self.z.min()), float(self.z.max()) + self.reach, count).double()
        return t, self.change(t.unsqueeze(0))

    def best(
        self, y: float, t: Float[Tensor, " r"], change: Float[Tensor, "k r"]
    ) -> Float[Tensor, "k g"]:
        """Where change(t) - y (t - z)² / ease is largest: a parabola through the three largest
        values on an even grid of t."""
        price = y / self.ease
        bent, pulled = change - price * t**2, 2 * price * self.z
        scores = torch.addcmul(bent.unsqueeze(1), pulled.unsqueeze(2), t)
        # NumPy's argmax is several times as fast as torch's.
        middle = torch.from_numpy(scores.numpy().argmax(axis=-1)).clamp(1, len(t) - 2)
        left, top, right = (bent.gather(1, middle + by) + pulled * t[middle + by] for by in (-1, 0, 1))
        bend = 2 * top - left - right
        off = torch.where(bend > 0, (right - left) / (2 * bend), 0.0).clamp(-1, 1)
        return t[middle] + off * (t[1] - t[0])

    def values(self, y: float, t: Float[Tensor, "k g"]) -> Float[Tensor, "k g"]:
        """change(t) - y (t - z)² / ease."""
        return self.change(t) - y * (t - self.z) ** 2 / self.ease

    def paid(self, t: Float[Tensor, "k g"]) -> float:
        """The mean of (t - z)² / ease, summed over rows."""
        return float((self.weights * (t - self.z) ** 2 / self.ease).sum())


class Minimum(NamedTuple):
    """The inner minimum over prices y of one direction: its value, differentiable in the shares
    with y and every t fixed (envelope theorem), and y, the rows and their t."""

    value: Float[Tensor, ""]
    price: float
    rows: tuple[ScoredRows, ...]
    best: list[Float[Tensor, "k g"]]


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
    self_row: Callable[[Direction], SelfRow] | None
    lowers: bool = False

    def least(self, shares: Sequence[float] | Float[Tensor, " 5"], near: float = 0.1) -> Minimum:
        """The minimum over y; minus infinity where the shares are more than there is.

        A line plus means of suprema of lines is convex in y, and its derivative is the budget less
        what is paid.
        """
        at = Direction(*torch.as_tensor(shares, dtype=torch.float64))
        scored, self_row = [self.scored(at)], self.self_row and self.self_row(at)
        budget = self.rows.d * at.rest * at.free(self.rows.spread)
        if self_row:
            scored.append(self.scored_self_row(at, self_row))
            budget = budget - self_row.paid
        if not float(at.free(self.rows.spread)) > 0 or not float(budget) > 0:
            return Minimum(torch.tensor(-math.inf), 0.0, (), [])
        detached = [replace(rows, z=rows.z.detach(), ease=rows.ease.detach()) for rows in scored]
        with torch.no_grad():
            curves = [
                rows.curve(count)
                for rows, count in zip(detached, (_REACHES, 1000 if self.lowers else _SELF_REACHES), strict=False)
            ]

        @cache
        def best(log: float) -> list[Float[Tensor, "k g"]]:
            return [
                rows.best(math.exp(log), *curve)
                for rows, curve in zip(detached, curves, strict=True)
            ]

        def excess(log: float) -> float:
            paid = sum(rows.paid(t) for rows, t in zip(detached, best(log), strict=True))
            return math.log(paid / float(budget))

        # Secants on the excess, which falls with log y, nearly on a line.
        low, high, log, last = *_PRICES, math.log(near), None
        fall = -1.5
        for _ in range(60):
            now = excess(log)
            low, high = (log, high) if now > 0 else (low, log)
            if last is not None:
                fall = min(-0.2, (now - last[1]) / (log - last[0]))
            last = log, now
            to = log - now / fall
            if abs(now * (to - log)) < _PRICED or high - low < _PRICED:
                break
            log = to if low < to < high else (low + high) / 2
        y, t = math.exp(log), best(log)
        sums = [
            (rows.weights * rows.values(y, at)).sum() for rows, at in zip(scored, t, strict=True)
        ]
        return Minimum(y * budget + sum(sums), y, tuple(scored), t)

    def scored(self, at: Direction) -> ScoredRows:
        """The rows j != i."""
        rows, others = self.rows, self.others
        nodes, weights = gaussian_nodes(_FINE if len(rows.loadings) == 1 else _COARSE)
        alone = 1 - others.loadings.unsqueeze(1) ** 2
        common = (rows.d * at.rest) ** 0.5 * at.b
        word = at.c + at.rest**0.5 * at.w
        free = at.free(rows.spread).clamp(min=0)
        noise = (at.rest * (at.alpha**2 + rows.spread * free)) ** 0.5

        def change(t: Float[Tensor, "#k m"]) -> Float[Tensor, "k m"]:
            after = others.drawn(t)
            gained = after - others.before
            turned = at.c * rows.unshared - others.pull * t / rows.d
            return after**2 + gained**2 * others.apart + 2 * after * gained * turned

        around = common * others.loadings + word * others.along
        return ScoredRows(
            rows.n * torch.outer(others.weights, weights),
            around.unsqueeze(1) + noise * alone.sqrt() * nodes,
            alone,
            change,
            others.reach,
        )

    def scored_self_row(self, at: Direction, row: SelfRow) -> ScoredRows:
        """Row i, at the nodes of its score with itself."""
        nodes, weights = gaussian_nodes(_FINE)
        around = (self.rows.d * at.rest) ** 0.5 * at.b * self.rows.word
        return ScoredRows(
            weights.unsqueeze(0),
            (around + row.scatter * nodes).unsqueeze(0),
            row.ease.reshape(1, 1),
            row.change,
            row.reach,
        )

    def solve(self) -> Solution:
        """The best direction by quasi-Newton ascents over the shares that this text has, and the
        scatter over words."""
        common = _COMMON if self.rows.common else (0.0,)
        lowered = _LOWERED if self.lowers else (0.0,)
        starts = [Direction(0.45, b, lowered=by) for b in common for by in lowered]
        if self.lowers:
            starts += [Direction(-0.5, b, lowered=_LOWERED[-1]) for b in common]
        if len(starts) > _CLIMBS:
            starts.sort(key=lambda start: -float(self.least(start).value))
        _, direction = max(self.climbed(start) for start in starts[:_CLIMBS])
        return self.scattered(direction)

    def climbed(self, start: Direction) -> tuple[float, Direction]:
        """A local maximum. Where shares are more than there is the value counts 0."""
        scale, near, *_ = self.least(start)
        scale = float(scale)

        def loss(shares: Float[np.ndarray, " 5"]) -> tuple[float, Float[np.ndarray, " 5"]]:
            at = torch.tensor(shares, requires_grad=True)
            least = self.least(at, near)
            if not least.price:
                return 0.0, np.zeros(len(shares))
            (slope,) = torch.autograd.grad(least.value, at)
            return -float(least.value) / scale, -slope.numpy() / scale

        common, spread = float(self.rows.common), float(self.rows.spread > 0)
        limits = [
            (-_MOST if self.lowers else 0.0, _MOST),
            (-common, common),
            (-spread, spread),
            (1 - spread, 1 + spread),
            (0.0, 8.0 if self.lowers else 0.0),
        ]
        found = minimize(loss, start, jac=True, bounds=limits, options=_OPTIONS)
        return -found.fun * scale, Direction(*found.x)

    def scattered(self, direction: Direction) -> Solution:
        """Cumulants over words at this direction: of the sum over other rows, of row i, of the
        word's shift."""
        value, y, scored, best = self.least(direction)
        values = [rows.values(y, t) for rows, t in zip(scored, best, strict=True)]
        # A row's kind and its state are the same for all words: only its score with the word
        # scatters.
        n, chances = self.rows.n, self.others.weights.reshape(self.others.layout)
        (rows, *_), (drawn, *of_self), (t, *_) = scored, values, best
        law = rows.weights / rows.weights.sum(dim=1, keepdim=True)
        means = (drawn * law).sum(dim=1)
        second, third = cumulants(means.reshape(self.others.layout), n * chances)
        for each, row in zip(of_self, scored[1:], strict=True):
            itself = cumulants(each.unsqueeze(2), row.weights.unsqueeze(2))
            second, third = second + itself[0], third + itself[1]
        slope = 2 * y * (t - rows.z) / rows.ease
        at = Direction(*torch.tensor(direction, dtype=torch.float64))
        noise = at.rest * (at.alpha**2 + self.rows.spread * at.free(self.rows.spread).clamp(min=0))
        force = float((rows.weights / n * slope**2 * rows.ease).sum() * noise)
        apart, together = overlapping_variance(
            drawn.reshape(*self.others.layout, -1), chances.sum(dim=1), force
        )
        law = Solution(float(value), second, third, direction)
        return law.scattered(n * max(0.0, together - apart))


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
        _polynomials(values.shape[dim], degree) for dim, degree in zip((1, 3), _DEGREES, strict=True)
    )
    coefficients = torch.einsum("sk,csrg,gl->crkl", of_word, values, of_delta)
    squares = torch.einsum("cr,crkl->kl", weights, coefficients**2)
    k, l = (torch.arange(size, dtype=torch.float64) for size in squares.shape)
    rho = ((torch.arange(_STEPS, dtype=torch.float64) + 0.5) / _STEPS).unsqueeze(1)
    turned = rho**k @ (squares * l)[:, 1:] / max(force, sys.float_info.min)
    overlap = torch.zeros_like(rho)
    for _ in range(_ITERATIONS):
        overlap = (turned * overlap ** l[:-1]).sum(dim=1, keepdim=True).clamp(max=1)
    answer = rho ** k[:-1] @ (squares[1:] * k[1:].unsqueeze(1)) * overlap**l
    return float(squares[1:, 0].sum()), float(answer.sum()) / _STEPS


def _polynomials(count: int, degree: int) -> Float[Tensor, "nodes degree"]:
    """w p_k at the nodes, p_k the orthonormal polynomials of the nodes' weights w, k = 0, 1, ..."""
    nodes, weights = gaussian_nodes(count)
    powers = nodes.unsqueeze(1) ** torch.arange(min(degree, count - 3) + 1)
    basis, upper = torch.linalg.qr(powers * weights.sqrt().unsqueeze(1))
    return basis * torch.sign(upper.diagonal()) * weights.sqrt().unsqueeze(1)
