"""The best multipliers of the joint Lagrangian, by Newton's method down a path of smoothed ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wordsens.certificates.attention.joint_lagrangian import (
    GLOBALS,
    LAM,
    MU,
    SHARED,
    SUM,
    JointMultipliers,
    JointPairs,
    at_options,
    form,
)

_TEMPERATURES, _MIDDLE = [10 * 0.3**at for at in range(7)], 2
"""Of the path, and which of them is the last at which the path is that of a similar problem."""

_BARRIER = 0.3
"""Of the temperature."""

_LITTLE = 0.2
"""Of a temperature: a Newton step that promises less ends the steps at it."""

_ARMIJO = 0.1


@dataclass(frozen=True)
class _Care:
    """How a path is followed: Newton steps at a temperature, halvings of a step, and what the scaled Hessian, which is
    singular where terms are straight, is enlarged by."""

    steps: int
    halvings: int
    ridge: float


_SUMMED, _FREE = _Care(15, 12, 1e-9), _Care(60, 30, 1e-5)
"""With a sum of weights, whose multiplier grows without limit in an interval that no y reaches; and without."""


@dataclass(frozen=True)
class Found:
    """The best multipliers of a problem, those in the middle of the path to them, and the unit of its temperatures."""

    best: JointMultipliers
    middle: JointMultipliers
    unit: float


@dataclass(frozen=True)
class _Smoothed:
    """The Lagrangian with suprema smoothed at a temperature, and a barrier; infinite outside its domain."""

    value: float
    hard: float
    """The value itself, on the options."""


class JointDual:
    """Newton's method in all multipliers of one problem. O(k³ + d³ + k options) a step."""

    def __init__(self, pairs: JointPairs):
        self.pairs, self._care = pairs, _SUMMED if pairs.summed else _FREE
        self._both = torch.cat([pairs.first, pairs.second])
        half, size = pairs.first.shape[1] // 2, pairs.first.shape[1]
        eye = torch.eye(size, dtype=pairs.t.dtype, device=pairs.t.device)
        self._of_y = eye * (torch.arange(size, device=eye.device) < half)
        self._of_b, self._turn = eye - self._of_y, eye.roll(half, 0)

    def start(self, scale: float) -> JointMultipliers:
        """Multipliers inside the domain, lam and mu of that size."""
        pairs = self.pairs
        half = pairs.first.shape[1] // 2
        sizes = [vectors.square().sum(dim=1).clamp(min=1e-300) for vectors in (pairs.first, pairs.second)]
        unit = torch.cat([pairs.first, pairs.second]) / torch.cat(sizes).sqrt().unsqueeze(1)
        most = max(float(torch.linalg.matrix_norm(part, ord=2)) ** 2 for part in (unit[:, :half], unit[:, half:]))
        hold, pin = (0.3 * scale / (most * size) for size in sizes)
        flat = pairs.t.new_zeros(GLOBALS + 5 * pairs.count)
        flat[LAM] = flat[MU] = scale
        k = pairs.count
        flat[GLOBALS + 2 * k : GLOBALS + 3 * k], flat[GLOBALS + 3 * k : GLOBALS + 4 * k] = hold, pin
        return JointMultipliers(flat)

    def improved(self, start: Found | None, scale: float) -> Found:
        """Down the path of smoothed Lagrangians; from where another problem's was not yet steep, if one is given.

        Temperatures are in shares of a pair's part of lam + mu, about `scale`; of them the last are a few thousandths.
        """
        by = self.start(scale) if start is None else start.middle
        unit = float(by.lam + by.mu) / (2 * self.pairs.count) if start is None else start.unit
        best, middle, least = by, by, self._at(by, unit, 0.0).hard
        for temperature in _TEMPERATURES if start is None else _TEMPERATURES[_MIDDLE:]:
            for _ in range(self._care.steps):
                moved = self._step(by, unit * temperature, unit * temperature * _BARRIER)
                if moved is None:
                    break
                by, hard = moved
                if hard < least:
                    best, least = by, hard
            if temperature == _TEMPERATURES[_MIDDLE]:
                middle = by
        return Found(best, middle, unit)

    def _at(self, by: JointMultipliers, temperature: float, barrier: float) -> _Smoothed:
        factor, failed = torch.linalg.cholesky_ex(form(self.pairs, by))
        if not by.positive or int(failed):
            return _Smoothed(float("inf"), float("inf"))
        pushed = torch.cat([by.alpha, by.gamma]) @ self._both
        spent = pushed @ torch.cholesky_solve(pushed.unsqueeze(1), factor).squeeze(1)
        common = by.lam + by.mu + spent + (by.hold * self.pairs.between).sum()
        value = at_options(self.pairs, by)[0]
        soft = temperature * torch.logsumexp(value / temperature, dim=1).sum()
        logs = 2 * factor.diagonal().log().sum() + by.hold.log().sum() + by.pin.log().sum()
        smoothed = common + soft + self._sum_term(by, temperature)[0] - barrier * logs
        ends = torch.stack([-by.total * self.pairs.least, -by.total * self.pairs.most])
        hard = common + value.amax(dim=1).sum() + ends.max() * self.pairs.summed
        return _Smoothed(float(smoothed.nan_to_num(torch.inf)), float(hard.nan_to_num(torch.inf)))

    def _sum_term(self, by: JointMultipliers, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
        """Smoothed max of -total Z over the ends of Z's interval, and its first two derivatives."""
        if not self.pairs.summed:
            zero = torch.zeros_like(by.total)
            return zero, zero, torch.ones_like(zero)
        width = temperature * self.pairs.count
        slopes = -by.flat.new_tensor([self.pairs.least, self.pairs.most])
        share = torch.softmax(by.total * slopes / width, dim=0)
        mean = (share * slopes).sum()
        curved = ((share * slopes.square()).sum() - mean.square()) / width
        return width * torch.logsumexp(by.total * slopes / width, dim=0), mean, curved

    def _step(self, by: JointMultipliers, temperature: float, barrier: float) -> tuple[JointMultipliers, float] | None:
        """The multipliers after one step that gains, and the value there; None where little is to be gained."""
        gradient, hessian = self._derivatives(by, temperature, barrier)
        scale = hessian.diagonal().clamp(min=1e-300).rsqrt()
        scaled = hessian * scale * scale.unsqueeze(1)
        scaled.diagonal().add_(self._care.ridge)
        answer, failed = torch.linalg.solve_ex(scaled, (gradient * scale).unsqueeze(1))
        step = -answer.squeeze(1) * scale
        falls, length = float(gradient @ step), 1.0
        if int(failed) or not -falls > _LITTLE * temperature:
            return None
        before = self._at(by, temperature, barrier).value
        for _ in range(self._care.halvings):
            tried = JointMultipliers(by.flat + length * step)
            found = self._at(tried, temperature, barrier)
            if found.value <= before + _ARMIJO * length * falls:
                return tried, found.hard
            length *= 0.5
        return None

    def _derivatives(self, by: JointMultipliers, temperature: float, barrier: float) -> tuple[Tensor, Tensor]:
        """Gradient and Hessian of the smoothed Lagrangian."""
        gradient, hessian = self._of_form(by, barrier)
        mean, covariance = self._of_suprema(by, temperature)
        k = self.pairs.count
        pair = torch.arange(k, device=gradient.device)
        local = [torch.full_like(pair, SHARED), torch.full_like(pair, SUM)]
        index = torch.stack(local + [GLOBALS + at * k + pair for at in range(5)], dim=1)
        gradient.index_add_(0, index.flatten(), mean.flatten())
        flat = index.unsqueeze(2) * len(gradient) + index.unsqueeze(1)
        hessian.view(-1).index_add_(0, flat.flatten(), covariance.flatten())
        _, slope, curved = self._sum_term(by, temperature)
        gradient[SUM] += slope
        hessian[SUM, SUM] += curved
        return gradient, hessian

    def _of_form(self, by: JointMultipliers, barrier: float) -> tuple[Tensor, Tensor]:
        """Of lam + mu + w . Q^-1 w + hold . between - barrier (log det Q + sum log hold + sum log pin)."""
        pairs, k = self.pairs, self.pairs.count
        hold, pin, cross = (slice(GLOBALS + at * k, GLOBALS + (at + 1) * k) for at in (2, 3, 4))
        inverse = torch.linalg.inv(form(pairs, by))
        z = inverse @ (torch.cat([by.alpha, by.gamma]) @ self._both)
        t, s = (self._both @ z).split(k)
        size = GLOBALS + 5 * k
        globals_ = {LAM: self._of_y, MU: self._of_b, SHARED: -self._turn}

        # w's derivative less Q's times z, in each multiplier.
        left = z.new_zeros(size, len(z))
        for at, matrix in globals_.items():
            left[at] = -(matrix @ z)
        left[GLOBALS : GLOBALS + 2 * k] = self._both
        left[hold], left[pin] = t.unsqueeze(1) * pairs.first, s.unsqueeze(1) * pairs.second
        left[cross] = s.unsqueeze(1) * pairs.first + t.unsqueeze(1) * pairs.second
        hessian = 2 * left @ inverse @ left.T

        seen = inverse @ self._both.T
        gram = self._both @ seen
        ff, fs, ss = gram[:k, :k], gram[:k, k:], gram[k:, k:]
        logs = z.new_zeros(size, size)
        logs[hold, hold], logs[pin, pin], logs[hold, pin] = ff.square(), ss.square(), fs.square()
        logs[cross, hold], logs[cross, pin] = 2 * ff * fs.T, 2 * fs * ss
        logs[cross, cross] = 2 * (ff * ss + fs * fs.T)
        logs[pin, hold], logs[hold, cross], logs[pin, cross] = fs.square().T, (2 * ff * fs.T).T, (2 * fs * ss).T
        gradient, of_logs = z.new_zeros(size), z.new_zeros(size)
        half = len(z) // 2
        through = {
            LAM: torch.cat([inverse[:, :half], torch.zeros_like(inverse[:, half:])], dim=1),
            MU: torch.cat([torch.zeros_like(inverse[:, :half]), inverse[:, half:]], dim=1),
            SHARED: -inverse.roll(half, 1),
        }
        of_y, of_b = seen[:half], seen[half:]
        mixed = of_y.T @ of_b
        spreads = {LAM: of_y.T @ of_y, MU: of_b.T @ of_b, SHARED: -(mixed + mixed.T)}
        for at, matrix in globals_.items():
            spread = spreads[at]
            both = spread.diagonal()
            for part, change in ((hold, -both[:k]), (pin, -both[k:]), (cross, -2 * spread[:k, k:].diagonal())):
                logs[at, part] = change
                logs[part, at] = change
            of_logs[at] = (inverse * matrix).sum()
            gradient[at] -= z @ matrix @ z
            for other in globals_:
                logs[at, other] = (through[at] * through[other].T).sum()
        of_logs[hold], of_logs[pin], of_logs[cross] = -ff.diagonal(), -ss.diagonal(), -2 * fs.diagonal()
        gradient[LAM] += 1
        gradient[MU] += 1
        gradient[GLOBALS : GLOBALS + 2 * k] = 2 * torch.cat([t, s])
        gradient[hold], gradient[pin], gradient[cross] = t.square() + pairs.between, s.square(), 2 * t * s
        gradient = gradient - barrier * of_logs
        hessian = hessian + barrier * logs
        for part, value in ((hold, by.hold), (pin, by.pin)):
            gradient[part] -= barrier / value
            hessian[part, part] += torch.diag(barrier / value.square())
        return gradient, hessian

    def _of_suprema(self, by: JointMultipliers, temperature: float) -> tuple[Tensor, Tensor]:
        """Of each pair's smoothed supremum, in shared, total and its own five multipliers."""
        pairs = self.pairs
        value, s, sign = at_options(pairs, by)
        share = torch.softmax(value / temperature, dim=1)
        t, pin = pairs.t, by.pin.unsqueeze(1)
        free = (s.abs() < pairs.caps.unsqueeze(1)).to(s.dtype)
        ones, zero = torch.ones_like(t), torch.zeros_like(t)
        slopes = torch.stack(
            [-2 * sign * pairs.mine.unsqueeze(1), pairs.counted, -2 * t, -2 * s, -t * t, -s * s, -2 * t * s], dim=2
        )
        # How the best s answers: the supremum over s is curved by 2 pin times this, squared.
        answer = torch.stack([zero, zero, zero, -ones, zero, -s, -t], dim=2) * (free / pin).unsqueeze(2)
        mean = (share.unsqueeze(2) * slopes).sum(dim=1)
        weighted = share.unsqueeze(2) * slopes
        covariance = (weighted.mT @ slopes - mean.unsqueeze(2) * mean.unsqueeze(1)) / temperature
        return mean, covariance + (answer * (2 * pin * share).unsqueeze(2)).mT @ answer
