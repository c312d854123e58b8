"""The word's own row where scores are not divided, its score with itself followed by branch and bound.

That score is a quadratic form in the perturbation, and its weight multiplies the moved word: a cubic term, most of the
row's change. On an interval of the score it is bilinear (docs/theory/certificates-attention.md).
"""

import heapq
import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import UNIT_ROUNDOFF, rounding

_SPLITS = 24
"""Intervals at most that are split. The bound falls by what the weight's range over an interval allows it."""
_FINE = 0.01
"""The share of a bound that an interval's width may be."""
_STEPS = 40
"""Of BFGS in an interval's four multipliers; 10 to 20 are usual."""
_PRECISE = 1e-5
_STRICT = 1e-7
_SMALLEST = 1e-60
"""Smaller radii leave nothing of what this bound is about, and squares may underflow."""


def self_score_bound(
    text: AttentionText,
    errors: RoundingErrors,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, " w"]:
    """Of the change of the words' own rows over all heads, in units of the radius.

    Infinite for divided scores, heads with a value matrix, and numbers that are extreme. O(heads d³) once, and for
    each word O(n² d + n³) some 20 times an interval, of which there are 10 to 40.
    """
    bounds = torch.full_like(radius, torch.inf)
    if text.score.normalized or text.lift is not None or not math.isfinite(text.score.lipschitz):
        return bounds
    heads = [_Head(text, errors, head) for head in range(text.heads)]
    for place, (word, reach) in enumerate(zip(words.tolist(), radius.tolist(), strict=True)):
        if reach > _SMALLEST:
            bounds[place] = math.hypot(*(_Row(head, word, reach).bound() for head in heads)) / reach
    return torch.where(bounds.isnan(), torch.inf, bounds) * (1 + 1e-12)


class _Head:
    """One head in the eigenvectors of S = (W + W^T) / (2 scale), and how far rounding has put its numbers off."""

    def __init__(self, text: AttentionText, errors: RoundingErrors, head: int) -> None:
        self.text, self.head = text, head
        n, d = text.rows.shape
        S = 0.5 * text.weights[head].symmetric
        finite = bool(S.isfinite().all())
        curvatures, U = torch.linalg.eigh(S if finite else torch.zeros_like(S))
        gamma = rounding(4 * d + 64)
        turned = float(torch.linalg.matrix_norm(U.T @ U - torch.eye(d, dtype=U.dtype, device=U.device))) + gamma * d
        size = float(torch.linalg.matrix_norm(S))
        form = float(torch.linalg.matrix_norm(U.T @ (S @ U) - torch.diag(curvatures))) + 4 * (turned + gamma * d) * size
        norms = text.weights[head].norms
        self.curvatures = curvatures
        self.form_error = form + rounding(norms.terms + 8) * norms.matrix / text.weights[head].scale
        self.keys, self.queries = (part[head * n : (head + 1) * n] @ U for part in (text.keys, text.queries))
        self.rows = text.rows @ U
        off = 2 * turned + gamma * math.sqrt(d)
        mine = slice(head * n, (head + 1) * n)
        lengths = (
            torch.linalg.vector_norm(self.keys, dim=1).amax() + torch.linalg.vector_norm(self.queries, dim=1).amax()
        )
        self.key_error = float(errors.key[mine].amax() + off * lengths)
        self.tilt_error = float(errors.key[mine].amax() + errors.speed[mine].amax() + off * lengths)
        self.row_error = off * text.longest
        self.score_error = float(errors.score[mine].amax())
        self.usable = finite and math.isfinite(self.form_error + self.key_error + self.tilt_error + self.score_error)


@dataclass(frozen=True)
class _Multipliers:
    """lam, mu > 0 of ‖a‖ <= 1 and ‖b‖ <= 1, nu of the interval of the score, eta > 0 of ‖K a‖ ‖X b‖."""

    lam: float
    mu: float
    nu: float
    eta: float


@dataclass(frozen=True)
class _Interval:
    """Scores [low, high] and the weights that they have: within `half` of `middle`."""

    low: float
    high: float
    middle: float
    half: float


class _Row:
    """The own row of a word: Delta = r a, ‖a‖ <= 1; b the direction of the change, ‖b‖ <= 1.

    The score with itself is q(a) = s + r t . a + r² a^T S a, and the change along b at most
    w(q) (x + r a) . b - w(s) x . b + L r ‖K a‖ ‖X b‖, K and X without the word, L the weight's Lipschitz constant.
    """

    def __init__(self, head: _Head, word: int, radius: float) -> None:
        text, n = head.text, len(head.rows)
        own = head.head * n + word
        self._head, self._radius, self._score = head, radius, text.score
        self._start = float(text.scores[own, word])
        self._tilt = head.queries[word] + head.keys[word]
        seen = (~text.hidden[own]).to(head.rows.dtype).unsqueeze(1)
        seen[word] = 0.0
        self._keys, self._rows = head.keys * seen, head.rows * seen
        self._word = head.rows[word]
        self._length = float(torch.linalg.vector_norm(self._word)) + head.row_error
        self._before = self._weight(self._start)
        self._spread = text.score.lipschitz * radius
        self._key_size, self._row_size = (float(torch.linalg.matrix_norm(part)) for part in (self._keys, self._rows))
        self._score_error = head.score_error + radius * (head.tilt_error + radius * head.form_error)

    def _weight(self, score: float) -> float:
        return float(self._score.attention(self._word.new_tensor([[score]])))

    def bound(self) -> float:
        """Of the row's change: intervals are split until the widest weight of one is little of it."""
        if not (self._head.usable and math.isfinite(self._start)):
            return math.inf
        low, high = self._start - self._rise(-1), self._start + self._rise(1)
        if not math.isfinite(high - low):
            return math.inf
        first = self._interval(low, high)
        found = self._least(first, self._guess(first))
        intervals = [(-found[0], 0, first, found[1])]
        for split in range(1, _SPLITS + 1):
            value, _, interval, by = intervals[0]
            if interval.half * (self._length + self._radius) <= -_FINE * value:
                break
            heapq.heappop(intervals)
            cut = 0.5 * (interval.low + interval.high)
            for number, part in enumerate((self._interval(interval.low, cut), self._interval(cut, interval.high))):
                best, at = self._least(part, by)
                heapq.heappush(intervals, (max(value, -best), 2 * split + number, part, at))
        return -intervals[0][0] + self._errors(max(abs(low), abs(high)))

    def _interval(self, low: float, high: float) -> _Interval:
        off = self._score_error + 4 * UNIT_ROUNDOFF * (abs(low) + abs(high))
        least, most = self._weight(low - off), self._weight(high + off)
        return _Interval(low, high, 0.5 * (least + most), 0.5 * (most - least))

    def _errors(self, furthest: float) -> float:
        """What rounding may have done to the change along any b, for scores of at most `furthest`."""
        head, count = self._head, math.sqrt(len(self._rows))
        weight = max(abs(self._weight(-furthest)), abs(self._weight(furthest)), abs(self._before))
        products = head.key_error * self._row_size + head.row_error * (self._key_size + count * head.key_error)
        before = self._score.lipschitz * head.score_error + 8 * UNIT_ROUNDOFF * weight
        return self._spread * count * products + 2 * weight * head.row_error + before * self._length

    def _rise(self, sign: int) -> float:
        """At least what q can rise, or fall: the dual of its maximum over the ball, at the best of some multipliers."""
        curved = sign * self._radius**2 * self._head.curvatures
        pushed = 0.25 * (self._radius * self._tilt).square()
        least, size = float(curved.amax()), float(curved.abs().amax() + pushed.sum().sqrt())
        lam = max(least, 0.0) + size * torch.logspace(-6, 2, 200, dtype=curved.dtype, device=curved.device)
        values = lam + (pushed / (lam.unsqueeze(1) - curved)).sum(dim=1)
        return float(values.amin()) * (1 + 1e-9)

    def _guess(self, interval: _Interval) -> _Multipliers:
        lam = max(abs(interval.middle) * self._radius, self._spread * self._key_size * self._row_size)
        lam = max(lam, 1e-9 * self._radius * self._length)
        return _Multipliers(lam, lam, 0.0, self._row_size / self._key_size if self._key_size > 0 else 1.0)

    def _least(self, interval: _Interval, by: _Multipliers) -> tuple[float, _Multipliers]:
        """A verified bound of the change while q is in the interval, and the multipliers that give it."""
        problem = _Problem(self, interval)
        found = problem.search(by)
        if found is None:
            return math.inf, by
        return problem.verified(found) + interval.half * (self._length + self._radius), found


@dataclass(frozen=True)
class _Point:
    """The dual's value, its slopes in the multipliers, and the maximiser z = (a, b) of the Lagrangian."""

    value: float
    slopes: tuple[float, float, float, float]
    a: Float[Tensor, " d"]
    b: Float[Tensor, " d"]


class _Problem:
    """The Lagrangian of one interval: -z^T M z + 2 p . z + lam + mu + nu (s - end), z = (a, b).

    M = D - G^T G; D has a 2 x 2 block for every coordinate, [[lam - nu r² c, -w r / 2], [-w r / 2, mu]], c an
    eigenvalue of S, and G the rows e^(1/2) (k, 0) and f^(1/2) (0, x), e = L r eta / 2, f = L r / (2 eta).
    """

    def __init__(self, row: _Row, interval: _Interval) -> None:
        self._row, self._interval = row, interval
        self._half = 0.5 * interval.middle * row._radius
        self._push = 0.5 * (interval.middle - row._before) * row._word

    @cached_property
    def _curved(self) -> Float[Tensor, " d"]:
        return self._row._radius**2 * self._row._head.curvatures

    def _parts(self, by: _Multipliers, less: float = 0.0) -> tuple[Tensor, Tensor, Tensor, float, Tensor] | None:
        """The blocks of D^-1, how badly they may be rounded, and G D^-1 G^T; D less `less` I. None: not D > 0."""
        row, mu = self._row, by.mu - less
        diagonal = by.lam - less - by.nu * self._curved
        determinant = diagonal * mu - self._half**2
        if not (mu > 0 and float(diagonal.amin()) > 0 and float(determinant.amin()) > 0):
            return None
        first, cross, second = mu / determinant, self._half / determinant, diagonal / determinant
        worst = float(((diagonal * mu + self._half**2 + by.lam * mu) / determinant).amax())
        e, f = 0.5 * row._spread * by.eta, 0.5 * row._spread / by.eta
        keys, rows = math.sqrt(e) * row._keys, math.sqrt(f) * row._rows
        corner = (keys * cross) @ rows.T
        gram = torch.cat(
            [
                torch.cat([(keys * first) @ keys.T, corner], dim=1),
                torch.cat([corner.T, (rows * second) @ rows.T], dim=1),
            ]
        )
        return first, cross, second, worst, gram

    def at(self, by: _Multipliers) -> _Point | None:
        """None where M is not positive definite."""
        row, parts = self._row, self._parts(by)
        if parts is None:
            return None
        first, cross, second, _, gram = parts
        identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        factor, failed = torch.linalg.cholesky_ex(identity - gram)
        if int(failed):
            return None
        root_e, root_f = math.sqrt(0.5 * row._spread * by.eta), math.sqrt(0.5 * row._spread / by.eta)
        tilt, push = 0.5 * by.nu * row._radius * row._tilt, self._push
        a, b = first * tilt + cross * push, cross * tilt + second * push
        pulled = torch.cat([root_e * (row._keys @ a), root_f * (row._rows @ b)])
        answer = torch.cholesky_solve(pulled.unsqueeze(1), factor).squeeze(1)
        n = len(row._keys)
        more_a, more_b = root_e * (row._keys.T @ answer[:n]), root_f * (row._rows.T @ answer[n:])
        a, b = a + first * more_a + cross * more_b, b + cross * more_a + second * more_b
        value = by.lam + by.mu + self._constraint(by) + float(tilt @ a + push @ b)
        moved = row._start - self._end(by) + row._radius * float(row._tilt @ a) + float(a @ (self._curved * a))
        spread = (
            0.5
            * row._spread
            * (float((row._keys @ a).square().sum()) - float((row._rows @ b).square().sum()) / by.eta**2)
        )
        return _Point(value, (1 - float(a @ a), 1 - float(b @ b), moved, spread), a, b)

    def _end(self, by: _Multipliers) -> float:
        """q >= low is what nu > 0 charges, q <= high what nu < 0 does."""
        return self._interval.low if by.nu > 0 else self._interval.high

    def _constraint(self, by: _Multipliers) -> float:
        return by.nu * (self._row._start - self._end(by)) if by.nu != 0 else 0.0

    def _feasible(self, by: _Multipliers) -> _Multipliers | None:
        """The first of larger and larger lam and mu at which M > 0."""
        for _ in range(60):
            if self.at(by) is not None:
                return by
            by = _Multipliers(1.3 * by.lam, 1.3 * by.mu, by.nu, by.eta)
        return None

    def search(self, by: _Multipliers) -> _Multipliers | None:
        """Good multipliers; any at which M > 0 are valid. nu stays 0 where the maximiser is inside the interval."""
        start = self._feasible(_Multipliers(by.lam, by.mu, 0.0, by.eta))
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
            by = _Multipliers(1.02 * free.lam, free.mu, 0.01 * sign * unit, free.eta)
        held = self._descended(by, sign)
        there = self.at(held)
        return held if there is not None and there.value < point.value else free

    def _descended(self, by: _Multipliers, sign: int) -> _Multipliers:
        """From multipliers by BFGS in their logarithms; |nu|'s among them but for sign 0."""

        def multipliers(raw: Tensor) -> _Multipliers:
            lam, mu, nu, eta = raw.clamp(-300, 300).exp().tolist()
            return _Multipliers(by.lam * lam, by.mu * mu, by.nu * nu, by.eta * eta)

        def slopes(here: _Multipliers, point: _Point) -> Tensor:
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

    def verified(self, by: _Multipliers) -> float:
        """The bound that these multipliers give, rounding included; infinite where M > 0 cannot be verified.

        With M >= tau I and any z, the sup is at most 2 p . z - z^T M z + 2 (p - M z) . w - tau ‖w‖² over w = the rest.
        """
        for _ in range(8):
            tau = _STRICT * min(by.lam, by.mu)
            point = self.at(by) if self._definite(by, tau) else None
            if point is not None:
                return self._value(by, point, tau)
            by = _Multipliers(by.lam * (1 + 1e-5), by.mu * (1 + 1e-5), by.nu, by.eta)
        return math.inf

    def _definite(self, by: _Multipliers, tau: float) -> bool:
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

    def _value(self, by: _Multipliers, point: _Point, tau: float) -> float:
        row, a, b = self._row, point.a, point.b
        e, f = 0.5 * row._spread * by.eta, 0.5 * row._spread / by.eta
        tilt, push = 0.5 * by.nu * row._radius * row._tilt, self._push
        left_a = tilt - (by.lam - by.nu * self._curved) * a + e * (row._keys.T @ (row._keys @ a)) + self._half * b
        left_b = push - by.mu * b + f * (row._rows.T @ (row._rows @ b)) + self._half * a
        size_a, size_b = (float(torch.linalg.vector_norm(part)) for part in (a, b))
        sizes = [float(torch.linalg.vector_norm(part)) for part in (tilt, push)]
        terms = (by.lam + abs(by.nu) * float(self._curved.abs().amax()) + e * row._key_size**2) * size_a
        terms += (by.mu + f * row._row_size**2) * size_b + abs(self._half) * (size_a + size_b) + sum(sizes)
        gamma = rounding(4 * (len(a) + len(row._keys)) + 64)
        left = math.hypot(*(float(torch.linalg.vector_norm(part)) for part in (left_a, left_b))) + gamma * terms
        both = math.hypot(size_a, size_b)
        total = by.lam + by.mu + self._constraint(by) + float(tilt @ a + push @ b) + float(left_a @ a + left_b @ b)
        slack = by.lam + by.mu + abs(by.nu) * (abs(row._start) + abs(self._end(by))) + terms * both
        return total + 4 * gamma * slack + left**2 / tau
