"""Gordon's comparison for one word of an attention layer: the scalar problem in place of the
largest over Delta.

The value of word i is a sum over rows j of suprema at (s_j, g_j), s_j the row's score with the
word, g_j what the best Delta of the other rows does to it; its scatter from word to word is a
prediction. docs/theory/sharp.md derives both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import minimize
from torch import Tensor

from wordsens.theory.rows import Others, PredictedSelfRow, Rows, gaussian_nodes

_FINE, _COARSE = (
    (33, 96),
    (17, 96),
)  # nodes of g and values of t: where all rows are alike, and of several kinds
# Values of t for a row i whose other scores may all fall to zero: its weight is then a step.
_STEPPED = 2000

_PRICED = 1e-5  # what is still to be had over the price, relative to the value, which is of S²
_OPTIONS = {
    "ftol": 1e-6,
    "gtol": 1e-4,
}  # of SciPy's L-BFGS-B, for the shares, in units of the value at the start
_MOST = 0.999  # of c: at 1 nothing is left to pay with
# Of the shares; c is negative as well where the scores of row i may be lowered.
_LIMITS = {
    "c": (0.0, _MOST),
    "b": (-1.0, 1.0),
    "w": (-1.0, 1.0),
    "alpha": (0.0, 2.0),
    "lowered": (0.0, None),
}
_LOWERED = (0.0, 0.7, 1.5, 3.0)  # starts, of how far the other scores of row i are lowered
_CLIMBS = 2  # of the starts: there are maxima with much and with little of what rows share
_STEPS, _ITERATIONS, _CONVERGED = 48, 300, 1e-9
_DEGREES = (16, 20)  # of polynomials in s and g; fewer where there are fewer nodes


@dataclass(frozen=True)
class Direction:
    """Shares of Delta's length: c along the word; of the rest, b along what rows share, w along W^T
    W x_i, and `alpha` for the length of the part that comes of itself. And `lowered`: by how much
    it lowers the other scores of row i, in their standard deviations, where that can turn a row to
    the word."""

    c: float
    b: float = 0.0
    w: float = 0.0
    alpha: float = 1.0
    lowered: float = 0.0

    @property
    def rest(self) -> float:
        """1 - c²."""
        return 1 - self.c**2

    def spent(self, rows: Rows) -> tuple[float, float, float]:
        """What a row's z gets: of sqrt(d) f_j, of s_j and of sqrt(1 - f_j²) g."""
        rest = math.sqrt(self.rest)
        noise = math.sqrt(self.alpha**2 + rows.spread * max(0.0, self.free(rows)))
        return rest * self.b, self.c + rest * self.w, rest * noise

    def free(self, rows: Rows) -> float:
        """The square of what is left to draw single rows with; not positive where nothing is."""
        spent = (self.alpha - 1) ** 2 + self.w**2
        return 1 - self.b**2 - (spent / min(rows.spread, 1) if spent else 0)


@dataclass(frozen=True)
class Solution:
    """The value of the scalar problem and where it is taken.

    Attributes:
        value: of S² ‖phi(X)‖² / d, the mean over words.
        variance, third: its second and third cumulants over words.
        direction: the best.
        price: y, of a row's squared distance.
    """

    value: float
    variance: float
    third: float
    direction: Direction
    price: float

    def scattered(self, variance: float) -> "Solution":
        """With more variance over words, as skew as before."""
        if not self.variance > 0:
            return replace(self, variance=self.variance + variance)
        wider = (self.variance + variance) / self.variance
        return replace(self, variance=wider * self.variance, third=wider**1.5 * self.third)


@dataclass(frozen=True)
class Largest:
    """sup_t [psi(t) - y (t - z)²] of several rows, each at several z: the value, the t, the
    derivative over z, y (t - z)²; and the place on the grid of t next to it, with how many steps t
    lies beyond."""

    value: Float[Tensor, "..."]
    at: Float[Tensor, "..."]
    force: Float[Tensor, "..."]
    paid: Float[Tensor, "..."]
    grid: tuple[Int[Tensor, "k g"], Float[Tensor, "k g"]] | None = None

    def read(self, values: Float[Tensor, "k r"]) -> Float[Tensor, "k g"]:
        """Another function of t on the grid, at the best t: a parabola through three values."""
        assert self.grid is not None
        middle, off = self.grid
        left, at, right = (values.gather(1, middle + by) for by in (-1, 0, 1))
        return at + off * (right - left) / 2 + off**2 * (left + right - 2 * at) / 2


@dataclass(frozen=True)
class Drawn:
    """The others' suprema at the nodes of s and g, their means over g, and the weights of both;
    `parts` make up z: the common direction, the word, and noise; `alone` is 1 - f², `turned` the
    derivative of psi over c on the grid of t."""

    best: Largest
    means: Float[Tensor, " k"]
    weights: Float[Tensor, "k g"]
    parts: tuple[Tensor, ...]
    alone: Float[Tensor, "k 1"]
    turned: Float[Tensor, "k r"]


@dataclass(frozen=True)
class Inner:
    """The inner function at a price: its value, its derivative over the price, and where the
    suprema are taken."""

    value: float
    slope: float
    price: float
    others: Drawn
    self_row: Largest


@dataclass(frozen=True)
class Problem:
    """max over directions of min over y > 0 of budget y + n E sup_t [psi(t) - (t - z)² y / (1 -
    f²)] + row i.

    The budget is d rest free, less what row i takes to lower its other scores.

    psi(t) = p² + (p - a)² apart + 2 p (p - a) (c unshared - pull t / d), z Gaussian around b f
    sqrt(d) + (c + w) s. docs/theory/sharp.md derives it.
    """

    rows: Rows
    others: Others
    self_row: Callable[[Direction], PredictedSelfRow] | None
    lowers: bool = False

    def suprema(self, at: Direction, y: float) -> Drawn:
        """E over g of sup_t [psi(t) - y (t - z)²], for each node of the others."""
        rows, others = self.rows, self.others
        count, reaches = _FINE if len(rows.loadings) == 1 else _COARSE
        nodes, weights = gaussian_nodes(count)
        alone = (1 - others.loadings**2).unsqueeze(1)
        parts = (
            math.sqrt(rows.d) * others.loadings.unsqueeze(1),
            others.along.unsqueeze(1),
            alone.sqrt() * nodes,
        )
        common, word, noise = at.spent(rows)
        z = common * parts[0] + word * parts[1] + noise * parts[2]
        top = float(z.max()) + min(2 / math.sqrt(y), others.reach)
        t = torch.linspace(float(z.min()), top, reaches, dtype=torch.float64)
        after = others.drawn(t)
        gained = after - others.before.unsqueeze(1)
        turned = 2 * after * gained
        psi = (
            after**2
            + gained**2 * others.apart
            + turned * (at.c * rows.unshared - others.pull * t / rows.d)
        )
        best = largest(psi, t, z, y / alone)
        return Drawn(
            best,
            best.value @ weights,
            torch.outer(others.weights, weights),
            parts,
            alone,
            turned * rows.unshared,
        )

    def self_suprema(self, at: Direction, y: float) -> tuple[Largest, Float[Tensor, " g"]]:
        """sup_t of row i's change less its price, at the nodes of its score with itself; and their
        weights."""
        nodes, weights = gaussian_nodes(_FINE[0])
        if self.self_row is None:
            nothing = torch.zeros_like(nodes)
            return Largest(nothing, nothing, nothing, nothing), weights
        self_row = self.self_row(at)
        z = math.sqrt(at.rest * self.rows.d) * at.b * self.rows.word + self_row.scatter * nodes
        top = float(z.max()) + math.sqrt(self_row.ease * min(4 / y, 4.0 * self.rows.d)) + 1
        t = torch.linspace(
            float(z.min()), top, _STEPPED if self.lowers else 2 * _FINE[1], dtype=torch.float64
        )
        price = torch.full((1, 1), y / self_row.ease, dtype=torch.float64)
        best = largest(
            self_row.change(t).unsqueeze(0), t, z.unsqueeze(0), price, smooth=not self.lowers
        )
        return Largest(best.value[0], best.at[0], best.force[0], best.paid[0]), weights

    def at(self, direction: Direction, y: float) -> Inner:
        """The inner function at one price."""
        rows, budget = self.rows, self.budget(direction)
        others = self.suprema(direction, y)
        self_row, weights = self.self_suprema(direction, y)
        value = (
            y * budget
            + rows.n * float(self.others.weights @ others.means)
            + float(self_row.value @ weights)
        )
        paid = rows.n * float((others.weights * others.best.paid).sum()) + float(
            self_row.paid @ weights
        )
        return Inner(value, budget - paid / y, y, others, self_row)

    def budget(self, at: Direction) -> float:
        """The square of what is left to draw single rows with; not positive where nothing is."""
        paid = self.self_row(at).paid if self.lowers and self.self_row is not None else 0.0
        return self.rows.d * at.rest * at.free(self.rows) - paid

    @property
    def shares(self) -> tuple[str, ...]:
        """The names of the shares that this text has."""
        rows = self.rows
        named = {"b": rows.common, "w": rows.spread, "alpha": rows.spread, "lowered": self.lowers}
        return ("c", *(name for name, there in named.items() if there))

    def slope(self, at: Direction, inner: Inner) -> dict[str, float]:
        """The inner function's derivatives over the shares at one price, every t staying put
        (envelope theorem)."""
        rows, y = self.rows, inner.price
        force = inner.others.weights * inner.others.best.force * rows.n
        pulls = [float((force * part).sum()) for part in inner.others.parts]
        along = rows.n * float(
            (inner.others.weights * inner.others.best.read(inner.others.turned)).sum()
        )
        step, slopes, self_row = 1e-6, {}, self._self_row_at(at, y, inner.self_row.at)
        for name in self.shares:
            ahead, behind = (
                replace(at, **{name: getattr(at, name) + sign * step}) for sign in (1, -1)
            )
            moved = [
                (to - off) / (2 * step)
                for to, off in zip(ahead.spent(rows), behind.spent(rows), strict=True)
            ]
            slopes[name] = y * (self.budget(ahead) - self.budget(behind)) / (2 * step)
            slopes[name] += sum(pull * by for pull, by in zip(pulls, moved, strict=True))
            if name in ("c", "b", "lowered"):
                slopes[name] += (self._self_row_at(ahead, y, inner.self_row.at) - self_row) / step
        slopes["c"] += along
        return slopes

    def _self_row_at(self, at: Direction, y: float, t: Float[Tensor, " g"]) -> float:
        """What row i counts at given scores."""
        if self.self_row is None:
            return 0.0
        self_row, (nodes, weights) = self.self_row(at), gaussian_nodes(_FINE[0])
        z = math.sqrt(at.rest * self.rows.d) * at.b * self.rows.word + self_row.scatter * nodes
        return float((self_row.change(t) - (t - z) ** 2 * (y / self_row.ease)) @ weights)

    def least(self, direction: Direction, near: float | None = None) -> tuple[float, float]:
        """The minimum over y and where; minus infinity where the shares are more than there is."""
        inner = self._least(direction, near)
        return (-math.inf, near or 1.0) if inner is None else (inner.value, inner.price)

    def _least(self, direction: Direction, near: float | None = None) -> Inner | None:
        """A line plus means of suprema of lines is convex in y: secants to where what is paid is
        the budget.

        The logarithm of their ratio falls with log y, nearly on a line.
        """
        least = -_MOST if self.lowers else 0
        if (
            direction.free(self.rows) <= 0
            or not least <= direction.c <= _MOST
            or direction.lowered < 0
        ):
            return None
        budget = self.budget(direction)
        if budget <= 0:
            return None
        low, high, log, fall = math.log(1e-7), math.log(1e4), math.log(near or 0.1), -1.5
        last: tuple[float, float] | None = None
        best: Inner | None = None
        for _ in range(60):
            inner = self.at(direction, math.exp(log))
            best = inner if best is None or inner.value < best.value else best
            excess = math.log(max(budget - inner.slope, 1e-9 * budget) / budget)
            low, high = (log, high) if excess > 0 else (low, log)
            if last is not None and log != last[0]:
                fall = min(-0.2, max(-20.0, (excess - last[1]) / (log - last[0])))
            to = log - excess / fall
            to = to if low < to < high else (low + high) / 2
            if (
                abs(inner.price * inner.slope * (to - log)) / 2 <= _PRICED * abs(inner.value)
                or high - low < 1e-9
            ):
                break
            last, log = (log, excess), to
        return best

    def solve(self) -> Solution:
        """The best direction by quasi-Newton ascents over the shares that this text has, and the
        scatter over words."""
        common = (0.1, 0.4, 0.7, 0.9) if self.rows.common else (0.0,)
        lowered = _LOWERED if self.lowers else (0.0,)
        starts = [Direction(0.45, b, lowered=by) for b in common for by in lowered]
        starts += [Direction(-0.5, b, lowered=_LOWERED[-1]) for b in common if self.lowers]
        if len(starts) > _CLIMBS:
            starts = sorted(starts, key=lambda start: -self.least(start)[0])[:_CLIMBS]
        value, price, best = max(
            (self._climbed(start) for start in starts), key=lambda climbed: climbed[0]
        )
        return self._scattered(best, value, price)

    def _climbed(self, start: Direction) -> tuple[float, float, Direction]:
        """The value, price and direction of a local maximum; where shares are more than there is
        the value counts 0."""
        value, price = self.least(start)

        def direction(shares: Float[np.ndarray, " m"]) -> Direction:
            return Direction(**dict(zip(self.shares, map(float, shares), strict=True)))

        def negative(shares: Float[np.ndarray, " m"]) -> tuple[float, Float[np.ndarray, " m"]]:
            nonlocal price
            at = direction(shares)
            inner = self._least(at, price)
            if inner is None:
                return 0.0, np.zeros(len(shares))
            price, slope = inner.price, self.slope(at, inner)
            return -inner.value / value, np.array([-slope[name] / value for name in self.shares])

        limits = [
            (-_MOST, _MOST) if name == "c" and self.lowers else _LIMITS[name]
            for name in self.shares
        ]
        first = [getattr(start, name) for name in self.shares]
        best = direction(minimize(negative, first, jac=True, bounds=limits, options=_OPTIONS).x)
        return *self.least(best, price), best

    def _scattered(self, direction: Direction, value: float, y: float) -> Solution:
        """Cumulants over words at this price: of the sum over other rows, of row i, of the word's
        shift."""
        self_row, self_weights = self.self_suprema(direction, y)
        second, third = cumulants(self_row.value, self_weights)
        drawn, others = self.suprema(direction, y), self.others
        kinds, nodes, states = others.layout
        chances = others.weights.reshape(others.layout)
        # A row's kind and its state are the same for all words: only its score with the word
        # scatters.
        for means, weights in zip(
            drawn.means.reshape(others.layout).mT.reshape(-1, nodes),
            chances.mT.reshape(-1, nodes),
            strict=True,
        ):
            share = float(weights.sum())
            of_rows = cumulants(means, weights / share)
            second, third = (
                second + self.rows.n * share * of_rows[0],
                third + self.rows.n * share * of_rows[1],
            )
        values = drawn.best.value.reshape(kinds, nodes, states, -1)
        force = (
            float((drawn.weights * drawn.best.force**2 * drawn.alone).sum())
            * direction.spent(self.rows)[2] ** 2
        )
        apart, together = overlapping_variance(values, chances.sum(dim=1), force)
        return Solution(value, second, third, direction, y).scattered(
            self.rows.n * max(0.0, together - apart)
        )


def largest(
    psi: Float[Tensor, "k r"],
    t: Float[Tensor, " r"],
    z: Float[Tensor, "k g"],
    y: Float[Tensor, "k 1"],
    *,
    smooth: bool = True,
) -> Largest:
    """The largest of psi(t) - y (t - z)² along an even grid of t, and what a parabola through three
    values adds.

    `smooth`: False where psi has a step, over which a parabola would rise.
    """
    bent, pulled = psi - y * t**2, 2 * y * z
    # NumPy's argmax is several times as fast as torch's.
    scores = torch.addcmul(bent.unsqueeze(1), pulled.unsqueeze(2), t)
    middle = torch.from_numpy(scores.numpy().argmax(axis=-1)).clamp(1, len(t) - 2)
    left, top, right = (bent.gather(1, middle + by) + pulled * t[middle + by] for by in (-1, 0, 1))
    bend = (2 * top - left - right).clamp(min=1e-12)
    off = ((right - left) / (2 * bend)).clamp(-1, 1) if smooth else torch.zeros_like(bend)
    at = t[middle] + off * (t[1] - t[0])
    value = top + off * (right - left) / 2 - off**2 * bend / 2 - y * z**2
    paid = y * (at - z) ** 2
    return Largest(value, at, 2 * y * (at - z), paid, (middle, off))


def cumulants(values: Float[Tensor, " k"], weights: Float[Tensor, " k"]) -> tuple[float, float]:
    """The second and third."""
    away = values - weights @ values
    return float(weights @ away**2), float(weights @ away**3)


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
    q^(l-1) / E F_g².

    Args:
        values: F at the nodes of s and g (`gaussian_nodes`), for kinds c and states r of rows that
            do not depend on the word.
        weights: of kinds and states, summing to one.
        force: E F_g².
    """
    _, count, _, fine = values.shape
    of_word, of_delta = (
        _polynomials(*some) for some in ((count, _DEGREES[0]), (fine, _DEGREES[1]))
    )
    squares = torch.einsum(
        "cr,crkl->kl", weights, torch.einsum("sk,csrg,gl->crkl", of_word, values, of_delta) ** 2
    )
    degree, power = (torch.arange(size, dtype=torch.float64) for size in squares.shape)
    overlap, total = 0.0, 0.0
    for step in range(_STEPS):
        rho = (step + 0.5) / _STEPS
        turned = squares[:, 1:] * power[1:] * (rho**degree).unsqueeze(1) / max(force, 1e-300)
        for _ in range(_ITERATIONS):
            updated = min(1.0, float((turned * overlap ** (power[1:] - 1)).sum()))
            overlap, converged = updated, abs(updated - overlap) < _CONVERGED
            if converged:
                break
        answer = squares[1:] * (degree[1:] * rho ** (degree[1:] - 1)).unsqueeze(1)
        total += float((answer * overlap**power).sum()) / _STEPS
    return float(squares[1:, 0].sum()), total


def _polynomials(count: int, degree: int) -> Float[Tensor, "nodes degree"]:
    """w p_k at the nodes, p_k the orthonormal polynomials of the nodes' weights w, k = 0, 1, ..."""
    nodes, weights = gaussian_nodes(count)
    powers = torch.stack([nodes**power for power in range(min(degree, count - 3) + 1)], dim=1)
    basis, upper = torch.linalg.qr(powers * weights.sqrt().unsqueeze(1))
    return basis * torch.sign(upper.diagonal()) * weights.sqrt().unsqueeze(1)
