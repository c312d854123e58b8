"""phi and its relative change to 60 digits, by the definition alone: whole numbers, and mpmath for the functions.

A float64 is a whole number over a power of two, so sums of products are exact. What is claimed against a bound is
recomputed here: no closed form of the change, no float64. Rounding allowance: `ALLOWANCE`, relative.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BITS = 320  # of the functions' values and of the fixed-point numbers between layers: 96 digits
ALLOWANCE = 1e-40  # relative: at radius 1e-12 about 80 digits of the change are left, and 60 at temperature 1e20


def whole(array: Array) -> tuple[NDArray, int]:
    """(m, e) with array = m 2^-e, m whole numbers of any size."""
    mantissas, exponents = np.frexp(array)
    mantissas = np.ldexp(mantissas, 53).astype(np.int64)
    exponents = exponents.astype(int) - 53
    lowest = min(0, int(exponents[mantissas != 0].min(initial=0)))
    flat = [int(m) << int(e - lowest) if m else 0 for m, e in zip(mantissas.flat, exponents.flat, strict=True)]
    return np.array(flat, dtype=object).reshape(array.shape), -lowest


def _fixed(value: mpmath.mpf) -> int:
    return int(mpmath.floor(mpmath.ldexp(value, BITS)))


def _float(numerator: int, power: int) -> float:
    return float(Fraction(numerator, 1 << power))


@dataclass(frozen=True)
class ExactAttention:
    """Attention by the definition. Args: W of every head (heads, d, d), the temperature, the score's name."""

    weights: Array
    temperature: float
    score: str

    def scores(self, X: NDArray, power: int) -> tuple[list[NDArray], int]:
        """x_j . W x_l of every head, as whole numbers over 2^power."""
        W, weight_power = whole(self.weights)
        return [X.dot(head).dot(X.T) for head in W], 2 * power + weight_power

    def rounded_scores(self, X: Array) -> Array:
        """The scores of every head, correctly rounded up to the division; for softmax less each row's largest."""
        exact, power = self.scores(*whole(X))
        sigma, seen = float(self.sigma(X.shape[1])), self.seen(len(X))
        rows = []
        for head in exact:
            shift = np.zeros((len(head), 1), dtype=object)
            if self.score == "softmax":
                shift = np.array([[max(row[at])] for row, at in zip(head, seen, strict=True)], dtype=object)
            rows.append([[_float(s, power) / sigma for s in row] for row in head - shift])
        return np.where(seen, np.array(rows), -np.inf)

    def sigma(self, columns: int) -> mpmath.mpf:
        """What divides the scores."""
        return mpmath.mpf(self.temperature) * mpmath.sqrt(columns)

    def seen(self, rows: int) -> NDArray[np.bool_]:
        """(n, n), whether row j sees word l."""
        return np.ones((rows, rows), dtype=bool)

    def weight_unit(self, score_power: int, sigma: mpmath.mpf) -> mpmath.mpf:
        """The unit of `_weights`."""
        homogeneous = self.score in ("linear", "relu-unnormalized")
        return mpmath.ldexp(1 / sigma, -score_power) if homogeneous else mpmath.ldexp(1, -BITS)

    def features(self, X: NDArray, power: int) -> tuple[NDArray, mpmath.mpf]:
        """phi of a text of whole numbers over 2^power: whole numbers and their unit."""
        scores, score_power = self.scores(X, power)
        with mpmath.workprec(BITS + 200):
            sigma = self.sigma(X.shape[1])
            unit = mpmath.ldexp(1, -power) * self.weight_unit(score_power, sigma)
            return np.concatenate([self._weights(head, score_power, sigma).dot(X) for head in scores]), unit

    def _weights(self, scores: NDArray, power: int, sigma: mpmath.mpf) -> NDArray:
        """Attention weights over 2^BITS; where they are the scores themselves, those."""
        if self.score == "linear":
            return scores
        if self.score in ("relu", "relu-unnormalized", "own-squares"):
            positive = scores * scores if self.score == "own-squares" else np.where(scores > 0, scores, 0)
            if self.score == "relu-unnormalized":
                return positive
            sums = positive.sum(axis=1)
            return np.array(
                [
                    [(int(s) << BITS) // int(total) if total else 0 for s in row]
                    for row, total in zip(positive, sums, strict=True)
                ],
                dtype=object,
            ).reshape(scores.shape)

        def scaled(s):
            return mpmath.ldexp(mpmath.mpf(int(s)), -power) / sigma

        rows = []
        for row, seen in zip(scores, self.seen(len(scores)), strict=True):
            if self.score == "softmax":
                largest = max(row[seen])
                weights = [
                    mpmath.exp(max(scaled(s - largest), -(10**6))) if at else mpmath.mpf(0)
                    for s, at in zip(row, seen, strict=True)
                ]
                total = mpmath.fsum(weights)
                rows.append([_fixed(w / total) for w in weights])
            elif self.score == "own-tanh":
                rows.append([_fixed(mpmath.tanh(max(min(scaled(s), 10**6), -(10**6)))) for s in row])
            else:
                rows.append([_fixed(1 / (1 + mpmath.exp(min(max(-scaled(s), -(10**6)), 10**6)))) for s in row])
        return np.array(rows, dtype=object)


@dataclass(frozen=True)
class ExactDense:
    """Dense layers by the definition. Args: V_1 (k, n d) and the later weights (k, k), the activation's name."""

    weights: list[Array]
    activation: str

    def features(self, X: NDArray, power: int) -> tuple[NDArray, mpmath.mpf]:
        """phi of a text of whole numbers over 2^power: whole numbers and their unit."""
        hidden = X.reshape(-1)
        with mpmath.workprec(BITS + 40):
            for weights in self.weights:
                V, weight_power = whole(weights)
                total = weight_power + power
                hidden, power = np.array([self._act(z, total) for z in V.dot(hidden)], dtype=object), BITS
        return hidden, mpmath.ldexp(1, -BITS)

    def _act(self, z: int, power: int) -> int:
        if self.activation in ("relu", "leaky_relu", "identity"):
            fixed = int(z) << (BITS - power) if power <= BITS else int(z) >> (power - BITS)
            if fixed > 0 or self.activation == "identity":
                return fixed
            leak = Fraction(0.01)
            return 0 if self.activation == "relu" else fixed * leak.numerator // leak.denominator
        value = mpmath.ldexp(mpmath.mpf(int(z)), -power)
        if self.activation == "tanh":
            return _fixed(mpmath.tanh(value))
        if self.activation == "erf":
            return _fixed(mpmath.erf(value))
        return _fixed(value * mpmath.ncdf(value))


class ExactChange:
    """Relative changes of one text X under phi. `norm` is ‖phi(X)‖, to float64."""

    def __init__(self, phi: ExactAttention | ExactDense, X: Array):
        self.phi, self.X, self.powers = phi, X, {}
        features, unit = phi.features(*whole(X))
        with mpmath.workprec(BITS):
            self.norm = float(unit * mpmath.sqrt(_square(features)))

    def value(self, word: int, perturbation: Array) -> float:
        """‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, rounded down; 0 where phi(X) = 0."""
        stacked, power = whole(np.concatenate([self.X, perturbation[None]]))
        rows, delta = stacked[:-1], stacked[-1]
        if power not in self.powers:
            self.powers[power] = self.phi.features(rows, power)[0]
        before = self.powers[power]
        rows[word] = rows[word] + delta
        after = self.phi.features(rows, power)[0]
        norm = _square(before)
        if norm == 0:
            return 0.0
        with mpmath.workprec(BITS):
            ratio = mpmath.sqrt(mpmath.mpf(_square(after - before)) / mpmath.mpf(norm)) * (1 - mpmath.mpf(ALLOWANCE))
            return math.nextafter(float(ratio), 0.0)


def _square(features: NDArray) -> int:
    flat = features.reshape(-1)
    return int(flat.dot(flat))


def inside(perturbation: Array, radius: float) -> bool:
    """‖Delta‖ <= radius, decided in whole numbers."""
    return sum(Fraction(float(x)) ** 2 for x in perturbation) <= Fraction(radius) ** 2
