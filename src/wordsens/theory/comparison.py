"""Gordon's comparison for one word of an attention layer: the scalar problem in place of the largest over Delta."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

_FINE, _COARSE = (33, 160), (17, 100)
"""Nodes of g and values of t: where all rows are alike, and where there are several kinds of them."""

_SHRINK, _SMALLEST = 0.5, 0.015
"""Of the pattern search over shares: the factor of its steps, and the step below which it ends. Ending at .03 moves the
largest of n words by up to .8 %."""


@dataclass(frozen=True)
class Rows:
    """Rows of length sqrt(d), x_j = sqrt(d) (f_j e + sqrt(1 - f_j²) v_j), and what a softmax keeps of them.

    Attributes:
        n, d: rows and coordinates.
        loadings: f_j, as few representatives of equal weight.
        spread: d times the mean square of v_j . v_k, j != k: 0 for orthogonal v, 1 for independent uniform ones, more
            where rows repeat.
        kept: E ‖o_j‖² / d.
        word, cross: of the word i that moves, its loading and x_i . m_j / d.
    """

    n: int
    d: int
    loadings: tuple[float, ...]
    spread: float
    kept: float
    word: float
    cross: float

    @property
    def alone(self) -> float:
        """The mean of 1 - f_j²."""
        return 1 - sum(loading**2 for loading in self.loadings) / len(self.loadings)

    @property
    def common(self) -> bool:
        """True where rows have something in common."""
        return any(self.loadings)

    @property
    def own(self) -> float:
        """sqrt(1 - f_i²), the word's part along v_i."""
        return math.sqrt(1 - self.word**2)


@dataclass(frozen=True)
class Others:
    """The rows j != i: an expectation over nodes of what a row was before the move.

    Attributes:
        weights: (k,), of the nodes.
        loadings: (k,), f_j.
        along: (k,), s_j, what moving along the word adds to t_j.
        before: (k,), the row's attention to the word.
        drawn: t (r,) -> (k, r), its attention after.
        apart: ‖x_i - m_j‖² / d.
        pull: Delta . m_j per unit of t_j.
        reach: the t beyond which nothing more is drawn.
    """

    weights: Float[Tensor, " k"]
    loadings: Float[Tensor, " k"]
    along: Float[Tensor, " k"]
    before: Float[Tensor, " k"]
    drawn: Callable[[Float[Tensor, " r"]], Float[Tensor, "k r"]]
    apart: float
    pull: float
    reach: float


@dataclass(frozen=True)
class OwnRow:
    """The row i: its squared change over d at a score that Delta moved by t, from where it is by itself.

    Attributes:
        change: t (r,) -> (r,).
        scatter: the standard deviation of its score with itself.
        ease: by how much its score follows Delta, squared, where another row's does by one.
    """

    change: Callable[[Float[Tensor, " r"]], Float[Tensor, " r"]]
    scatter: float
    ease: float


@dataclass(frozen=True)
class Direction:
    """Shares of Delta's length: c along the word; of the rest, b along what rows share, w along W^T W x_i, and `alpha`
    for the length of the part that comes of itself."""

    c: float
    b: float = 0.0
    w: float = 0.0
    alpha: float = 1.0

    @property
    def rest(self) -> float:
        """1 - c²."""
        return 1 - self.c**2

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


@dataclass(frozen=True)
class Problem:
    """max over directions of min over y > 0 of d rest free y + n E sup_t [psi(t) - (t - z)² y / (1 - f²)] + own row.

    psi(t) = p² + (p - a)² apart + 2 p (p - a) (c own - pull t / d), z Gaussian around b f sqrt(d) + (c + w) s.
    docs/theory/sharp.md derives it.
    """

    rows: Rows
    others: Others
    own: Callable[[float], OwnRow] | None

    def suprema(self, at: Direction, y: float) -> Float[Tensor, " k"]:
        """E over g of sup_t [psi(t) - y (t - z)²], for each node of the others."""
        rows, others = self.rows, self.others
        count, reaches = _FINE if len(rows.loadings) == 1 else _COARSE
        nodes, weights = gaussian_nodes(count)
        rest, alone = math.sqrt(at.rest), (1 - others.loadings**2).unsqueeze(1)
        noise = rest * alone.sqrt() * math.sqrt(at.alpha**2 + rows.spread * at.free(rows))
        common = rest * at.b * math.sqrt(rows.d) * others.loadings
        z = (common + (at.c + rest * at.w) * others.along).unsqueeze(1) + noise * nodes
        top = float(z.max()) + min(2 / math.sqrt(y), others.reach)
        t = torch.linspace(float(z.min()), top, reaches, dtype=torch.float64)
        after = others.drawn(t)
        gained = after - others.before.unsqueeze(1)
        along = at.c * rows.own - others.pull * t / rows.d
        psi = after**2 + gained**2 * others.apart + 2 * after * gained * along
        distance = (t - z.unsqueeze(2)) ** 2
        return suprema(psi.unsqueeze(1) - distance * (y / alone).unsqueeze(2)) @ weights

    def own_suprema(self, at: Direction, y: float) -> tuple[Float[Tensor, " g"], Float[Tensor, " g"]]:
        """sup_t of the own row's change less its price, at the nodes of its own score; and their weights."""
        nodes, weights = gaussian_nodes(_FINE[0])
        if self.own is None:
            return torch.zeros_like(nodes), weights
        own = self.own(at.c)
        z = math.sqrt(at.rest * self.rows.d) * at.b * self.rows.word + own.scatter * nodes
        top = float(z.max()) + math.sqrt(own.ease * 4 / y) + 1
        t = torch.linspace(float(z.min()), top, 2 * _FINE[1], dtype=torch.float64)
        return suprema(own.change(t) - (t - z.unsqueeze(1)) ** 2 * (y / own.ease)), weights

    def at(self, direction: Direction, y: float) -> float:
        """The inner function at one price."""
        rows = self.rows
        budget = rows.d * direction.rest * direction.free(rows)
        own, weights = self.own_suprema(direction, y)
        return y * budget + rows.n * float(self.others.weights @ self.suprema(direction, y)) + float(own @ weights)

    def least(self, direction: Direction, near: float | None = None) -> tuple[float, float]:
        """The minimum over y and where: a line plus means of suprema of lines is convex in y."""
        if direction.free(self.rows) <= 0 or not 0 <= direction.c < 1:
            return -math.inf, near or 1.0
        low, high = (math.log(1e-5), math.log(1e3)) if near is None else (math.log(near / 2), math.log(near * 2))
        at, value = least(lambda log: self.at(direction, math.exp(log)), low, high, 24 if near is None else 9)
        edge = near is not None and min(at - low, high - at) < 0.1
        return self.least(direction) if edge else (value, math.exp(at))

    def solve(self) -> Solution:
        """The best direction by a pattern search over the shares that this text has, and the scatter over words."""
        starts = [Direction(0.45, b) for b in ((0.1, 0.4, 0.7, 0.9) if self.rows.common else (0.0,))]
        free = ["c", *(["b"] if self.rows.common else []), *(["w", "alpha"] if self.rows.spread else [])]
        start = max(starts, key=lambda one: self.least(one)[0]) if len(starts) > 1 else starts[0]
        direction, value, y = self._climb(start, free)
        return self._scattered(direction, value, y)

    def _climb(self, start: Direction, free: list[str]) -> tuple[Direction, float, float]:
        at, step = start, 0.12
        value, y = self.least(at)
        moves = [{name: sign} for name in free for sign in (1.0, -1.0)]
        moves += [{free[0]: sign, name: -sign} for name in free[1:] for sign in (1.0, -1.0)]
        while step > _SMALLEST:
            moved = False
            for move in moves:
                trial = replace(at, **{name: getattr(at, name) + step * by for name, by in move.items()})
                found, price = self.least(trial, y)
                if found > value:
                    at, value, y, moved = trial, found, price, True
            if not moved:
                step *= _SHRINK
        return at, value, y

    def _scattered(self, direction: Direction, value: float, y: float) -> Solution:
        """Cumulants over words at the price found: of the sum over other rows, of the own row, of the word's shift."""
        own, own_weights = self.own_suprema(direction, y)
        second, third = _cumulants(own, own_weights)
        others = _cumulants(self.suprema(direction, y), self.others.weights)
        second, third = second + self.rows.n * others[0], third + self.rows.n * others[1]
        return Solution(value, second, third, direction, y)


def _cumulants(values: Float[Tensor, " k"], weights: Float[Tensor, " k"]) -> tuple[float, float]:
    """The second and third."""
    away = values - weights @ values
    return float(weights @ away**2), float(weights @ away**3)


def gaussian_nodes(count: int) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Evenly spaced nodes and weights of a standard Gaussian: a supremum has kinks, which polynomials do not suit."""
    nodes = torch.linspace(-4.5, 4.5, count, dtype=torch.float64)
    weights = torch.exp(-0.5 * nodes**2)
    return nodes, weights / weights.sum()


def suprema(values: Float[Tensor, "*rows reaches"]) -> Float[Tensor, "*rows"]:
    """The largest along an even grid, and what a parabola through it and its neighbours adds."""
    top, at = values.max(dim=-1, keepdim=True)
    last = values.shape[-1] - 1
    left, right = values.gather(-1, (at - 1).clamp(min=0)), values.gather(-1, (at + 1).clamp(max=last))
    bend = (2 * top - left - right).clamp(min=1e-12)
    inside = (at > 0) & (at < last)
    return (top + torch.where(inside, (right - left) ** 2 / (8 * bend), 0.0)).squeeze(-1)


def least(function: Callable[[float], float], low: float, high: float, steps: int) -> tuple[float, float]:
    """The minimum of a function that falls, then rises, by golden sections: where, and its value."""
    ratio = (math.sqrt(5) - 1) / 2
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [function(at) for at in inner]
    for _ in range(steps):
        if values[0] < values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - ratio * (high - low)
            values[0] = function(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + ratio * (high - low)
            values[1] = function(inner[1])
    best = 0 if values[0] < values[1] else 1
    return inner[best], values[best]
