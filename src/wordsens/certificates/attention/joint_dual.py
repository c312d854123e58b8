"""The best multipliers of the joint Lagrangian: Newton's method down a path of smoothed ones."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wordsens.certificates.attention.joint_lagrangian import GLOBALS, LAM, MU, JointMultipliers, JointPairs
from wordsens.certificates.attention.joint_smoothed import Smoothed, SmoothedLagrangian, WorstCase

_STEPS = 30  # at a temperature, at most
_LITTLE = 1.0  # of a temperature: a Newton step that promises less ends the steps at it
_NEAR = 30.0  # temperatures a barrier: twice what a step promises after the temperature falls by a factor of 5
_ARMIJO = 0.1
_FRACTION = 0.6  # of the way to the domain's edge: how far a step goes at most
_LONGEST = 30.0  # step in Newton steps
_SHORTEST = 1e-12
_LONGER = 2.0  # from one length that is tried to the next
_SHORTER = 0.7  # where that is too near to the edge
_RIDGES = 1e-13, 1e-10, 1e-7, 1e-4  # of the Hessian scaled to ones on its diagonal: the first that is enough


@dataclass(frozen=True)
class Centre:
    """The end of the steps at a temperature, and the best multipliers on the way, by the Lagrangian itself.

    Attributes:
        worst: the worst y there.
    """

    by: JointMultipliers
    best: JointMultipliers
    worst: WorstCase


class JointDual:
    """Newton's method in all multipliers of one problem. O(k³ + k options) a step."""

    def __init__(self, pairs: JointPairs):
        self.pairs, self.smoothed = pairs, SmoothedLagrangian(pairs)

    def start(self, scale: float) -> JointMultipliers:
        """Multipliers inside the domain, lam and mu of that size."""
        pairs = self.pairs
        half, k = pairs.first.shape[1] // 2, pairs.count
        sizes = [vectors.square().sum(dim=1).clamp(min=1e-300) for vectors in (pairs.first, pairs.second)]
        unit = torch.cat([pairs.first, pairs.second]) / torch.cat(sizes).sqrt().unsqueeze(1)
        most = max(float(torch.linalg.matrix_norm(part, ord=2)) ** 2 for part in (unit[:, :half], unit[:, half:]))
        hold, pin = (0.3 * scale / (most * size) for size in sizes)
        flat = pairs.t.new_zeros(GLOBALS + 5 * k)
        flat[LAM] = flat[MU] = scale
        flat[GLOBALS + 2 * k : GLOBALS + 3 * k], flat[GLOBALS + 3 * k : GLOBALS + 4 * k] = hold, pin
        return JointMultipliers(flat)

    def down(self, path: list[float], by: JointMultipliers, enough: float) -> Centre:
        """`centred` at each of falling temperatures, from the lowest at which `by` is near enough."""
        first = next((at for at in range(len(path) - 1, 0, -1) if self._near(by, path[at])), 0)
        for temperature in path[first:-1]:
            by = self.centred(by, temperature).by
        return self.centred(by, path[-1], enough)

    def _near(self, by: JointMultipliers, temperature: float) -> bool:
        """True where a Newton step promises at most `_NEAR` T for each barrier: its length is then not tiny."""
        found = self._newton(self.smoothed.at(by, temperature), temperature)
        barriers = self.pairs.first.shape[1] + 3 * self.pairs.count
        return found is not None and -found[1] <= _NEAR * barriers * temperature

    def centred(self, by: JointMultipliers, temperature: float, enough: float = -math.inf) -> Centre:
        """From any multipliers in the domain towards the smoothed Lagrangian's least point, or until the Lagrangian
        itself is at most `enough`: where no y is left it has no least value."""
        here, best, length = self.smoothed.at(by, temperature), by, 1.0
        least = here.plain
        for _ in range(_STEPS):
            moved = self._step(here, temperature, length) if least > enough else None
            if moved is None:
                break
            here, length = moved
            if here.plain < least:
                best, least = here.by, here.plain
        return Centre(here.by, best, self.smoothed.worst(here, temperature))

    def _newton(self, here: Smoothed, temperature: float) -> tuple[Tensor, float] | None:
        """Newton's step and the Lagrangian's slope along it; None outside the domain, or where the Hessian is not
        positive definite by far."""
        if here.inverse is None:
            return None
        gradient, hessian = self.smoothed.derivatives(here, temperature)
        step = _newton_step(gradient, hessian)
        return None if step is None else (step, float(gradient @ step))

    def _step(self, here: Smoothed, temperature: float, last: float) -> tuple[Smoothed, float] | None:
        """After one step that gains, and the step's length; None where little is to be gained."""
        newton = self._newton(here, temperature)
        if newton is None or not -newton[1] > _LITTLE * temperature:
            return None
        step, falls = newton

        def tried(length: float) -> Smoothed:
            return self.smoothed.at(JointMultipliers(here.by.flat + length * step), temperature)

        def clear(length: float) -> bool:
            return self.smoothed.holds(JointMultipliers(here.by.flat + length / _FRACTION * step))

        length = min(1.0, _LONGER * last)
        while not clear(length):
            length *= _SHORTER
            if length < _SHORTEST:
                return None
        found = tried(length)
        enough = found.value <= here.value + _ARMIJO * length * falls
        factor = _LONGER if enough else 1 / _LONGER
        while not enough:
            length *= factor
            if length < _SHORTEST:
                return None
            found = tried(length)
            enough = found.value <= here.value + _ARMIJO * length * falls
        while factor * length <= _LONGEST and factor > 1 and clear(factor * length):
            further = tried(factor * length)
            if not further.value < found.value:
                break
            length, found = factor * length, further
        return found, length


def _newton_step(gradient: Tensor, hessian: Tensor) -> Tensor | None:
    """The Newton step; None where the Hessian is not positive definite by far."""
    scale = hessian.diagonal().clamp(min=1e-300).rsqrt()
    scaled = (hessian * scale).mul_(scale.unsqueeze(1))
    for ridge in _RIDGES:
        scaled.diagonal().add_(ridge)
        factor, failed = torch.linalg.cholesky_ex(scaled)
        if not int(failed):
            return -torch.cholesky_solve((gradient * scale).unsqueeze(1), factor).squeeze(1) * scale
    return None
