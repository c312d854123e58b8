"""Means, medians and rank correlations, each with an interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import bdtr, stdtrit

from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import LEVEL

LEAST = 5
"""Fewer members give no interval: it would be wider than the mean, or rest on their being
normal."""

RESAMPLES = 500
"""Bootstrap samples of a rank correlation: five draws, the fewest that get an interval, have 126
different ones."""


@dataclass(frozen=True)
class Mean:
    """A mean, and a 95 % interval over its members; no interval with fewer than LEAST."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{self.value:.4g}" + (
            "" if self.low is None else f" ({self.low:.4g} to {self.high:.4g})"
        )


@dataclass(frozen=True)
class Estimate:
    """The mean of a few draws, with its standard error (0 for one draw, which tells none) and how
    many they are."""

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
    """The value and its standard error to one digit of the error, two of one that starts with 1; at
    most four decimals.

    >>> with_error(0.9731, 0.0123), with_error(31.7, 4.2), with_error(2.5, 0.0)
    ('0.973 ± 0.012', '32 ± 4', '2.5')
    """
    if error < 5e-5:  # less than the decimals show
        return f"{value:.4g}"
    power = math.floor(math.log10(error))
    digits = min(4, max(0, (1 if error / 10**power < 2 else 0) - power))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def mean_interval(values: Sequence[float]) -> Mean:
    """The mean of the values, with Student's interval: exact for normal ones, close for a few dozen
    of any law.

    >>> print(mean_interval([0.0, 1.0, 2.0, 3.0, 4.0]), mean_interval([1.0, 3.0]), sep="; ")
    2 (0.03676 to 3.963); 2
    """
    mean = fmean(values)
    if len(values) < LEAST:
        return Mean(mean, None, None)
    reach = student(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Mean(mean, mean - reach, mean + reach)


def bounded_interval(
    mean: float, error: float, members: int, bounds: tuple[float, float]
) -> tuple[float, float]:
    """A 95 % interval for the mean of numbers in [a, b], inside [a, b] whatever the error.

    Wilson's score interval (1927) of p = (mean - a) / (b - a), with Student's quantile and as many
    members as would give a share that standard error, p (1 - p) (b - a)^2 / error^2 (Korn and
    Graubard 1998); of numbers without scatter, which tell no error, as many as there are.

    >>> [round(end, 3) for end in bounded_interval(0.75, 0.13, 12, (0.0, 1.0))]
    [0.423, 0.925]
    >>> bounded_interval(0.0, 0.0, 12, (0.0, 1.0))[0]
    0.0
    """
    low, high = bounds
    share = (mean - low) / (high - low)
    scatter = share * (1 - share)
    effective = (
        scatter * ((high - low) / error) ** 2 if error > 0 and scatter > 0 else float(members)
    )
    square = student(members - 1) ** 2 / effective
    middle, reach = (
        (share + square / 2) / (1 + square),
        math.sqrt(square * (scatter + square / 4)) / (1 + square),
    )
    first, last = (
        max(0.0, middle - reach),
        min(1.0, middle + reach),
    )  # rounding may be beyond 0 and 1
    return low + (high - low) * first, low + (high - low) * last


def student(freedom: float, level: float = LEVEL) -> float:
    """Half the width of an interval in standard errors, of 95 % unless a level is given: the
    quantile of Student's law with so many degrees of freedom.

    >>> round(student(4), 3)
    2.776
    """
    return float(stdtrit(freedom, (1 + level) / 2))


def median_ends(size: int) -> int:
    """The largest k with 2 P(Binomial(size, 1/2) <= k) <= 1 - LEVEL, or -1: the (k + 1)-th smallest
    and largest of `size` values enclose their median with that coverage.

    >>> median_ends(5), median_ends(6), median_ends(20)
    (-1, 0, 5)
    """
    tails = bdtr(np.arange(size + 1), size, 0.5)
    return int(np.count_nonzero(2 * tails <= 1 - LEVEL)) - 1


def least_values() -> int:
    """The fewest values whose smallest and largest enclose the median with the coverage: 1 - 2^(1 -
    m) >= it.

    >>> least_values()
    6
    """
    return math.ceil(1 - math.log2(1 - LEVEL))


def median_intervals(
    values: Float[np.ndarray, "m k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """For each column the median, and the order statistics that enclose it with the coverage: exact
    for independent values of any one distribution.
    """
    ordered, place = np.sort(values, axis=0), median_ends(len(values))
    return np.median(values, axis=0), ordered[place], ordered[-1 - place]


def rank_correlation(first: Sequence[int | float], second: Sequence[int | float]) -> float:
    """Spearman's: the correlation of the ranks, ties sharing theirs; NaN where a column does not
    vary.

    >>> rank_correlation([1, 2, 3, 4], [0.1, 0.4, 0.2, 9.0]), rank_correlation([1, 1, 2], [5, 5, 5])
    (0.8, nan)
    """
    if len(set(first)) < 2 or len(set(second)) < 2:
        return float("nan")
    from scipy.stats import spearmanr  # takes a third of a second to import

    correlation: Any = spearmanr(first, second)
    return round(float(correlation.statistic), 12)


def correlation_interval(
    draws: Mapping[int, Sequence[tuple[float, float]]], *, seed: Seed = 0
) -> tuple[float, float, float]:
    """The rank correlation of the pairs of all draws, and the ends of its 95 % bootstrap interval
    over draws."""
    keys = list(draws)

    def of(chosen: Sequence[int]) -> float:
        pairs = [pair for key in chosen for pair in draws[key]]
        return rank_correlation(*zip(*pairs, strict=True))

    stream = np.random.default_rng(derive_seed(seed, "rank correlation"))
    drawn = [
        of([keys[i] for i in stream.integers(len(keys), size=len(keys))]) for _ in range(RESAMPLES)
    ]
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return of(keys), float(low), float(high)
