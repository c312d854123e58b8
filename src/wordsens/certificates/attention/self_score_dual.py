"""The Lagrangian dual of the own row's change while the word's score with itself is in an interval.

docs/theory/certificates-attention.md, "The word's score with itself".
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.verified import UNIT_ROUNDOFF, rounding

_STEPS = 40
"""Of BFGS in an interval's four multipliers; 10 to 20 are usual."""
_PRECISE, _STRICT = 1e-5, 1e-7
"""What a step must gain, and tau of M >= tau I: relative to the value, and to lam and mu."""


@dataclass(frozen=True)
class Multipliers:
    """lam, mu > 0 of ‖a‖ <= 1 and ‖b‖ <= 1, nu of the interval of the score, eta > 0 of ‖K a‖ ‖X b‖."""

    lam: float
    mu: float
    nu: float
    eta: float


@dataclass(frozen=True)
class Interval:
    """Scores [low, high] and the weights that they have: within `half` of `middle`."""

    low: float
    high: float
    middle: float
    half: float


@dataclass(frozen=True)
class QuadraticScoreRow:
    """The own row of a word in the eigenvectors of S, for Delta = r a, ‖a‖ <= 1, along b, ‖b‖ <= 1.

    The score with itself is q(a) = s + r t . a + r² a^T S a, and the change along b at most
    w(q) (x + r a) . b - w(s) x . b + L r ‖K a‖ ‖X b‖, L the weight's Lipschitz constant.

    Attributes:
        radius: r.
        start, before: s and w(s).
        tilt: t.
        curvatures: the eigenvalues of S.
        word: x.
        keys, rows: K and X, without the word.
        spread: L r.
        key_size, row_size: the Frobenius norms of K and X.
    """

    radius: float
    start: float
    before: float
    tilt: Float[Tensor, " d"]
    curvatures: Float[Tensor, " d"]
    word: Float[Tensor, " d"]
    keys: Float[Tensor, "n d"]
    rows: Float[Tensor, "n d"]
    spread: float
    key_size: float
    row_size: float


@dataclass(frozen=True)
class Point:
    """The dual's value, its slopes in the multipliers, and the maximiser z = (a, b) of the Lagrangian."""

    value: float
    slopes: tuple[float, float, float, float]
    a: Float[Tensor, " d"]
    b: Float[Tensor, " d"]


class Problem:
    """The Lagrangian of one interval: -z^T M z + 2 p . z + lam + mu + nu (s - end), z = (a, b).

    M = D - G^T G; D has a 2 x 2 block for every coordinate, [[lam - nu r² c, -w r / 2], [-w r / 2, mu]], c an
    eigenvalue of S, and G the rows e^(1/2) (k, 0) and f^(1/2) (0, x), e = L r eta / 2, f = L r / (2 eta).
    """

    def __init__(self, row: QuadraticScoreRow, interval: Interval) -> None:
        self._row, self._interval = row, interval
        self._half = 0.5 * interval.middle * row.radius
        self._push = 0.5 * (interval.middle - row.before) * row.word

    @cached_property
    def _curved(self) -> Float[Tensor, " d"]:
        return self._row.radius**2 * self._row.curvatures

    def _parts(self, by: Multipliers, less: float = 0.0) -> tuple[Tensor, Tensor, Tensor, float, Tensor] | None:
        """The blocks of D^-1, how badly they may be rounded, and G D^-1 G^T; D less `less` I. None: not D > 0."""
        row, mu = self._row, by.mu - less
        diagonal = by.lam - less - by.nu * self._curved
        determinant = diagonal * mu - self._half**2
        if not (mu > 0 and float(diagonal.amin()) > 0 and float(determinant.amin()) > 0):
            return None
        first, cross, second = mu / determinant, self._half / determinant, diagonal / determinant
        worst = float(((diagonal * mu + self._half**2 + by.lam * mu) / determinant).amax())
        e, f = 0.5 * row.spread * by.eta, 0.5 * row.spread / by.eta
        keys, rows = math.sqrt(e) * row.keys, math.sqrt(f) * row.rows
        corner = (keys * cross) @ rows.T
        gram = torch.cat(
            [
                torch.cat([(keys * first) @ keys.T, corner], dim=1),
                torch.cat([corner.T, (rows * second) @ rows.T], dim=1),
            ]
        )
        return first, cross, second, worst, gram

    def at(self, by: Multipliers) -> Point | None:
        """None where M is not positive definite."""
        row, parts = self._row, self._parts(by)
        if parts is None:
            return None
        first, cross, second, _, gram = parts
        identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        factor, failed = torch.linalg.cholesky_ex(identity - gram)
        if int(failed):
            return None
        root_e, root_f = math.sqrt(0.5 * row.spread * by.eta), math.sqrt(0.5 * row.spread / by.eta)
        tilt, push = 0.5 * by.nu * row.radius * row.tilt, self._push
        a, b = first * tilt + cross * push, cross * tilt + second * push
        pulled = torch.cat([root_e * (row.keys @ a), root_f * (row.rows @ b)])
        answer = torch.cholesky_solve(pulled.unsqueeze(1), factor).squeeze(1)
        n = len(row.keys)
        more_a, more_b = root_e * (row.keys.T @ answer[:n]), root_f * (row.rows.T @ answer[n:])
        a, b = a + first * more_a + cross * more_b, b + cross * more_a + second * more_b
        value = by.lam + by.mu + self._constraint(by) + float(tilt @ a + push @ b)
        moved = row.start - self._end(by) + row.radius * float(row.tilt @ a) + float(a @ (self._curved * a))
        spread = (
            0.5 * row.spread * (float((row.keys @ a).square().sum()) - float((row.rows @ b).square().sum()) / by.eta**2)
        )
        return Point(value, (1 - float(a @ a), 1 - float(b @ b), moved, spread), a, b)

    def _end(self, by: Multipliers) -> float:
        """q >= low is what nu > 0 charges, q <= high what nu < 0 does."""
        return self._interval.low if by.nu > 0 else self._interval.high

    def _constraint(self, by: Multipliers) -> float:
        return by.nu * (self._row.start - self._end(by)) if by.nu != 0 else 0.0

    def _feasible(self, by: Multipliers) -> Multipliers | None:
        """The first of larger and larger lam and mu at which M > 0."""
        for _ in range(60):
            if self.at(by) is not None:
                return by
            by = Multipliers(1.3 * by.lam, 1.3 * by.mu, by.nu, by.eta)
        return None

    def search(self, by: Multipliers) -> Multipliers | None:
        """Good multipliers; any at which M > 0 are valid. nu stays 0 where the maximiser is inside the interval."""
        start = self._feasible(Multipliers(by.lam, by.mu, 0.0, by.eta))
        free = None if start is None else self._descended(start, 0)
        point = None if free is None else self.at(free)
        if free is None or point is None:
            return None
        score = point.slopes[2] + self._end(free)
        if self._interval.low <= score <= self._interval.high:
            return free
        sign = 1 if score < self._interval.low else -1
        unit = free.lam / max(float(self._curved.abs().amax()), 1e-300)
        if not (by.nu * sign > 0 and self.at(by) is not None):
            by = Multipliers(1.02 * free.lam, free.mu, 0.01 * sign * unit, free.eta)
        held = self._descended(by, sign)
        there = self.at(held)
        return held if there is not None and there.value < point.value else free

    def _descended(self, by: Multipliers, sign: int) -> Multipliers:
        """From multipliers by BFGS in their logarithms; |nu|'s among them but for sign 0."""

        def multipliers(raw: Tensor) -> Multipliers:
            lam, mu, nu, eta = raw.clamp(-300, 300).exp().tolist()
            return Multipliers(by.lam * lam, by.mu * mu, by.nu * nu, by.eta * eta)

        def slopes(here: Multipliers, point: Point) -> Tensor:
            lam, mu, nu, eta = point.slopes
            return raw.new_tensor([lam * here.lam, mu * here.mu, nu * here.nu * abs(sign), eta * here.eta]) / worth

        raw, point, worth = torch.zeros(4, dtype=torch.float64), self.at(by), by.lam + by.mu
        if point is None:
            return by
        start = 0.3 * torch.eye(4, dtype=raw.dtype)
        value, slope, inverse, idle = point.value / worth, slopes(by, point), start, 0
        for _ in range(_STEPS):
            step = -inverse @ slope
            if float(step @ slope) >= 0:
                step, inverse = -0.3 * slope, start
            length, trial = min(1.0, 1 / max(float(step.abs().amax()), 1e-300)), None
            while length > 1e-8:
                trial = self.at(multipliers(raw + length * step))
                if trial is not None and trial.value / worth <= value + 1e-4 * length * float(step @ slope):
                    break
                length, trial = 0.4 * length, None
            if trial is None:
                break
            moved, gained = length * step, value - trial.value / worth
            raw = raw + moved
            turned = slopes(multipliers(raw), trial) - slope
            value, slope = trial.value / worth, slope + turned
            if float(moved @ turned) > 1e-14:
                per = 1 / float(moved @ turned)
                across = torch.eye(4, dtype=raw.dtype) - per * torch.outer(moved, turned)
                inverse = across @ inverse @ across.T + per * torch.outer(moved, moved)
            idle = idle + 1 if gained < _PRECISE * abs(value) else 0
            if idle == 2:
                break
        return multipliers(raw)

    def verified(self, by: Multipliers) -> float:
        """The bound that these multipliers give, rounding included; infinite where M > 0 cannot be verified.

        With M >= tau I and any z, the sup is at most 2 p . z - z^T M z + 2 (p - M z) . w - tau ‖w‖² over w = the rest.
        """
        for _ in range(8):
            tau = _STRICT * min(by.lam, by.mu)
            point = self.at(by) if self._definite(by, tau) else None
            if point is not None:
                return self._value(by, point, tau)
            by = Multipliers(by.lam * (1 + 1e-5), by.mu * (1 + 1e-5), by.nu, by.eta)
        return math.inf

    def _definite(self, by: Multipliers, tau: float) -> bool:
        """Whether M >= tau I is verified: D > tau I, and I - G (D - tau I)^-1 G^T factorises with room for rounding."""
        parts = self._parts(by, tau)
        if parts is None:
            return False
        *_, worst, gram = parts
        size, d, trace = len(gram), len(self._curved), float(gram.diagonal().sum())
        error = (rounding(d + 32) + 8 * UNIT_ROUNDOFF * worst) * trace + 2 * rounding(size + 4) * (size + trace)
        if not (math.isfinite(trace) and 8 * UNIT_ROUNDOFF * worst < 1e-3 and error < 0.5):
            return False
        room = (1 - error) * torch.eye(size, dtype=gram.dtype, device=gram.device)
        return int(torch.linalg.cholesky_ex(room - gram).info) == 0

    def _value(self, by: Multipliers, point: Point, tau: float) -> float:
        row, a, b = self._row, point.a, point.b
        e, f = 0.5 * row.spread * by.eta, 0.5 * row.spread / by.eta
        tilt, push = 0.5 * by.nu * row.radius * row.tilt, self._push
        left_a = tilt - (by.lam - by.nu * self._curved) * a + e * (row.keys.T @ (row.keys @ a)) + self._half * b
        left_b = push - by.mu * b + f * (row.rows.T @ (row.rows @ b)) + self._half * a
        size_a, size_b = (float(torch.linalg.vector_norm(part)) for part in (a, b))
        sizes = [float(torch.linalg.vector_norm(part)) for part in (tilt, push)]
        terms = (by.lam + abs(by.nu) * float(self._curved.abs().amax()) + e * row.key_size**2) * size_a
        terms += (by.mu + f * row.row_size**2) * size_b + abs(self._half) * (size_a + size_b) + sum(sizes)
        gamma = rounding(4 * (len(a) + len(row.keys)) + 64)
        left = math.hypot(*(float(torch.linalg.vector_norm(part)) for part in (left_a, left_b))) + gamma * terms
        both = math.hypot(size_a, size_b)
        total = by.lam + by.mu + self._constraint(by) + float(tilt @ a + push @ b) + float(left_a @ a + left_b @ b)
        slack = by.lam + by.mu + abs(by.nu) * (abs(row.start) + abs(self._end(by))) + terms * both
        return total + 4 * gamma * slack + left**2 / tau
