"""A mean with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import stdtrit

from wordsens.statistics.auc import LEVEL

LEAST = 5
"""Fewer members give no interval: it would be wider than the mean, or rest on their being normal."""


@dataclass(frozen=True)
class Mean:
    """A mean, and a 95 % interval over its members; no interval with fewer than LEAST."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{self.value:.4g}" + ("" if self.low is None else f" ({self.low:.4g} to {self.high:.4g})")


@dataclass(frozen=True)
class Estimate:
    """The mean of a few draws, with its standard error (0 for one draw, which tells none) and how many they are."""

    mean: float
    error: float
    draws: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """The estimate that the draws give.

        >>> print(Estimate.of([1.0, 1.2, 1.1, 0.9, 1.3]), Estimate.of([2.5]), sep="; ")
        1.10 ± 0.07; 2.5
        """
        count = len(values)
        return cls(fmean(values), stdev(values) / math.sqrt(count) if count > 1 else 0.0, count)

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval, Student's; everything for fewer than LEAST draws."""
        if self.draws < LEAST:
            return -math.inf, math.inf
        reach = student(self.draws - 1) * self.error
        return self.mean - reach, self.mean + reach

    def __str__(self) -> str:
        return with_error(self.mean, self.error)


def with_error(value: float, error: float) -> str:
    """The value and its standard error to one digit of the error, two of one that starts with 1; at most four decimals.

    >>> with_error(0.9731, 0.0123), with_error(31.7, 4.2), with_error(2.5, 0.0)
    ('0.973 ± 0.012', '32 ± 4', '2.5')
    """
    if error < 5e-5:  # less than the decimals show
        return f"{value:.4g}"
    power = math.floor(math.log10(error))
    digits = min(4, max(0, (1 if error / 10**power < 2 else 0) - power))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def mean_interval(values: Sequence[float]) -> Mean:
    """The mean of the values, with Student's interval: exact for normal ones, close for a few dozen of any law.

    >>> print(mean_interval([0.0, 1.0, 2.0, 3.0, 4.0]), mean_interval([1.0, 3.0]), sep="; ")
    2 (0.03676 to 3.963); 2
    """
    mean = fmean(values)
    if len(values) < LEAST:
        return Mean(mean, None, None)
    reach = student(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Mean(mean, mean - reach, mean + reach)


def student(freedom: float, level: float = LEVEL) -> float:
    """Half the width of an interval in standard errors, of 95 % unless a level is given: the quantile of Student's law
    with so many degrees of freedom.

    >>> round(student(4), 3)
    2.776
    """
    return float(stdtrit(freedom, (1 + level) / 2))
