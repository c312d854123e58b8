"""A functional of the changes of a ReLU layer's output, bounded by one of the changes of its input.

docs/proofs.md#dense-certificates states and proves what is computed here (Lemma 5). Several layers
bounded by it one after the other preserve how norm and width are traded for each other; bounds of
one layer at a time do not.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.dense.layer import (
    POSITIVE_MEAN,
    GaussianLayer,
    InputChange,
    reached,
    reached_square,
    shifted_squares,
    weighed_hinges,
)

# Half the length of the rounded hinge's ramp, in units of sigma rho.
_RAMP = 0.7
# Inactive units this near to 0, in units of sigma rho, count in <g, delta> as though they were
# active.
_NEAR = 1.0
# How far, in deviations, the two suprema that enter squares are followed; what is beyond is
# bounded apart.
_LIKELY, _CERTAIN = 2.5, 6.0
_FEW = (2.0, 4.5, 10.0)
# Trials of theta: in units of its best value were crossing units alone to count; were few of them
# to.
_SHARES = (0.05, 0.2, 1.0)
# Fewer active units concentrate too little for the lemma.
_FEWEST = 60
_SPLIT = 0.01


@dataclass(frozen=True)
class Functional:
    """The coefficients' root mean squares of sqrt(K ‖delta‖² + e) + alpha s(delta) + beta <g,
    delta>.

    s(delta) = <phi, delta> / ‖phi‖², phi the features that delta changes; g a standard Gaussian. K,
    e, alpha and beta are random, independent of the weights; e = 0 where K = 0.

    Attributes:
        norm: sqrt(E K).
        constant: sqrt(E e), a length.
        along: sqrt(E alpha²).
        width: sqrt(E beta²).
    """

    norm: float = 0.0
    constant: float = 0.0
    along: float = 0.0
    width: float = 0.0

    def over_ball(self, radius: float, length: float, base: float, dimension: int) -> float:
        """At least its mean sup over a word's changes, ‖delta‖ <= radius; phi = X, `base` ‖X‖,
        `length` ‖x_i‖."""
        sideways = math.hypot(self.along * length / base**2, self.width * math.sqrt(dimension))
        return radius * (math.hypot(self.norm, self.constant / radius) + sideways)


# ‖delta‖, s(delta) and <g, delta>: their suprema are what is to be bounded.
NORM, ALONG, WIDTH = Functional(norm=1.0), Functional(along=1.0), Functional(width=1.0)


class Pullback:
    """A ReLU layer with what is known of its input's changes: takes functionals of its output to
    such of its input.

    Attributes:
        usable: whether the layer has active units enough.
    """

    def __init__(self, layer: GaussianLayer, change: InputChange, margin: float) -> None:
        """`margin` m: exp(-m² / 2) is the probability, at most, that the layer's crossing sums are
        not what is said.

        O(k) for k units, about 100 hinges a unit.
        """
        h = layer.preactivation
        self._sigma, self._rho, self._base, self._output = (
            layer.deviation,
            change.norm,
            change.base,
            layer.output,
        )
        self._reach, self._along = layer.deviation * change.width / change.norm, change.along
        tau = self._sigma * self._rho
        active, inactive = h[h > 0], h[h <= 0].abs()
        self._active, self._inactive = len(active), len(inactive)
        self.usable = self._active >= _FEWEST and math.isfinite(
            change.norm + change.width + change.along
        )
        if not self.usable:
            return
        near = inactive <= _NEAR * tau
        self._linear = self._active + int(near.sum())
        # In units of rho, so that no square over- or underflows.
        size = float(torch.linalg.vector_norm(inactive[near]))
        self._linear_length = math.hypot(self._output, size)
        self._squares((1 - self._along) * inactive / tau)
        self._hinges((1 - self._along) * inactive[~near] / tau, len(h), margin)
        self._bent = self._bends((1 - self._along) * active / tau, active / self._output**2)

    def _squares(self, far: Float[Tensor, " units"]) -> None:
        """What inactive units add to ‖delta'‖²: a share of ‖delta‖², and what does not scale with
        it."""
        sigma, freedom = self._sigma, self._active - 1
        likely = self._reach + sigma * _LIKELY
        self._shift = likely / (math.sqrt(freedom - 1) - _CERTAIN)
        excess = likely**2 * math.sqrt(
            math.exp(-0.5 * _CERTAIN**2) / ((freedom - 2) * (freedom - 4))
        )
        plain = sigma**2 * float(reached_square(far).sum())
        shifted = (1 + _SPLIT) * sigma**2 * shifted_squares(far, self._shift / sigma)
        shifted += (1 + 1 / _SPLIT) * 0.5 * self._inactive * excess
        self._scaling = plain if self._along < 1 else 0.0
        self._unscaled = max(0.0, shifted - self._scaling)
        self._likely = likely

    def _hinges(self, far: Float[Tensor, " units"], units: int, margin: float) -> None:
        """What inactive units add to <g, delta'>, for beta = 1, and the Lipschitz constant of
        that."""
        sigma, freedom = self._sigma, self._active - 1
        ideal = self._reach / (sigma * math.sqrt(units))
        mean = min(
            0.5 * (self._reach / sigma) ** 2 / theta + weighed_hinges(far, 0.5 * theta, _RAMP)
            for theta in (few * ideal for few in _FEW)
        )
        most = (math.sqrt(mean) + 0.5 * margin * math.sqrt(POSITIVE_MEAN / _RAMP)) ** 2
        self._steepness = math.sqrt(1 + POSITIVE_MEAN * most / _RAMP)
        self._unlikely = sigma * math.exp(-0.5 * _LIKELY**2) / _LIKELY
        small = self._likely * math.sqrt(math.exp(-0.5 * _CERTAIN**2) / (freedom - 2))
        beyond = self._unlikely / math.sqrt(freedom - 2) + small
        self._crossing = (
            sigma * weighed_hinges(far, 0.5 * self._shift / sigma, _RAMP) + 0.25 * len(far) * beyond
        )

    def _bends(self, far: Float[Tensor, " units"], share: Float[Tensor, " units"]) -> float:
        """What active units that stop at 0 add to s(delta')."""

        def bound(theta: float) -> float:
            stopped = share * reached(far - 0.5 * theta * share / self._sigma)
            return 0.5 * self._reach**2 / theta + self._sigma * float(stopped.sum())

        return min(bound(self._reach * self._output / fraction) for fraction in _SHARES)

    def __call__(self, after: Functional) -> tuple[Functional, float, float]:
        """Before, c, C with E sup after <= c + E sup before, the mean over the layer's weights; C:
        Lipschitz in them.

        The sup of `after` is over the changes of the output, that of `before` over those of the
        input. That of `after` exceeds its mean by m C with probability at most exp(-m² / 2),
        crossing sums as said.
        """
        sigma, rho, active = self._sigma, self._rho, self._active
        norm, constant, along, width = after.norm, after.constant / rho, after.along, after.width
        turned = math.hypot(width * math.sqrt(self._linear), along / self._output)  # rms ‖z‖
        steep = math.hypot(norm, turned)
        added = width * self._crossing + along * self._bent
        lipschitz = sigma * (norm + along / self._output + width * self._steepness)
        to_along = math.hypot(along, width * self._linear_length)
        if norm == 0:
            added += POSITIVE_MEAN * sigma * turned
            return Functional(along=to_along, width=sigma * steep), rho * added, rho * lipschitz
        added += POSITIVE_MEAN * sigma * steep
        added += self._unlikely * (norm + width * math.sqrt(0.5 * self._inactive))
        both = norm**2 * turned**2 / steep**2
        swing, turn = self._along * self._output / rho, self._along * self._base / rho
        mean, stretch = sigma**2 * active, sigma**2 * active + self._scaling
        rest = constant**2 + self._likely**2 * both + norm**2 * self._unscaled
        rest += 2 * sigma * self._likely * POSITIVE_MEAN * norm * math.sqrt(both)
        rest += 2 * self._likely * swing * norm * math.hypot(width, along / self._output)
        whole = (norm * swing) ** 2 + norm**2 * self._scaling + rest
        chance = norm * swing / math.sqrt(active)
        crossed = 2 * chance * math.sqrt(whole) + 2 * chance**2
        freed = math.sqrt(2) * sigma * turned * math.sqrt((norm * swing) ** 2 + rest + crossed)
        shorter = norm**2 * (
            max(0.0, (self._output / self._base) ** 2 - mean) + sigma**2 * math.sqrt(active / 2)
        )
        shorter += norm * math.sqrt(stretch) * sigma * turned
        before = Functional(
            norm=math.hypot(norm * math.sqrt(stretch), sigma * turned),
            constant=rho * math.sqrt(turn**2 * shorter + rest + crossed + freed),
            along=math.hypot(to_along, norm * self._output / math.sqrt(active)),
            width=sigma * steep,
        )
        return before, rho * added, rho * lipschitz
