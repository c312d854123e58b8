"""Fitting value = constant * n^exponent, and what may be said of the exponent."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordsens.errors import InputError
from wordsens.statistics.mean import student

LEAST_RANGE = 2.0
"""The least ratio of the longest text's words to the shortest's: slopes over texts of one length
are all noise."""

LEAST_LENGTHS = 5
"""The fewest different lengths of texts: leaving one text out then still leaves four lengths to
fit."""

LEAST_TEXTS = 5
"""Fewer texts give no bootstrap interval: four have 35 different samples."""

BOOTSTRAP_SAMPLES = 2000
"""The ends of a 95 % interval are then the 50th and the 1950th of them."""


ROOT = -0.5
"""The exponent of 1/sqrt(n), at which a fully connected layer's sensitivity falls."""

NEAR = 0.02
"""Exponents so near to each other differ by less than 5 % when a text becomes ten times as long."""

BOOTSTRAP, STUDENT = "95 % interval, bootstrap over texts", "95 % interval, Student's t of the fit"


@dataclass(frozen=True)
class PowerLaw:
    """value = constant * n^exponent; the exponent's standard error, and its degrees of freedom:
    infinite where it is as good as known."""

    exponent: float
    standard_error: float
    constant: float
    freedom: float = math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the exponent, Student's.

        >>> low, high = PowerLaw(-0.5, 0.1, 1.0, freedom=2).interval
        >>> round(low, 3), round(high, 3)
        (-0.93, -0.07)
        """
        reach = student(self.freedom) * self.standard_error
        return self.exponent - reach, self.exponent + reach

    def at(self, n: int | float) -> float:
        """constant * n^exponent."""
        return self.constant * n**self.exponent


def fit_power_law(
    sizes: Sequence[int | float],
    values: Sequence[float],
    *,
    texts: Sequence[Hashable] | None = None,
) -> PowerLaw:
    """Ordinary least squares of log value on log n, every point alike.

    With x = log n, y = log value, m points, and residuals e_j = y_j - a - b x_j:

        b = sum_j (x_j - mean x) y_j / sum_j (x_j - mean x)²,    a = mean y - b mean x.

    Where the points are independent (texts None), s.e.(b)² = (sum_j e_j² / (m - 2)) / sum_j (x_j -
    mean x)², with m - 2 degrees of freedom.

    Points of one text are not: they share its length and whatever else it has. With `texts`, the
    standard error is the jackknife over the G texts, each left out with all its points, b_g being
    the slope without text g:

        s.e.(b)² = (G - 1) / G sum_g (b_g - mean of b_g)²       (Efron and Stein 1981: too large on average),

    with G - 1 degrees of freedom.

    Both cover the scatter of the points, not a departure of the mean from a power law.

    Raises:
        InputError: fewer than three points, one size only, a size or value that is not positive;
            with `texts`, where `unfit_for_power_law` has a reason.

    >>> fit_power_law([1, 4, 16], [1.0, 0.5, 0.25]).exponent
    -0.5
    """  # noqa: E501
    if len(sizes) != len(values) or len(values) < 3 or len(set(sizes)) < 2:
        raise InputError(
            f"`sizes` (={list(sizes)!r}) must give at least three points of at least two sizes; "
            "run more draws or sizes"
        )
    if min(values) <= 0 or min(sizes) <= 0:
        raise InputError(
            f"`values` (smallest {min(values)!r}) must be positive to be fitted by a power law"
        )
    x, y = (np.log(np.asarray(numbers, dtype=np.float64)) for numbers in (sizes, values))
    u, v = centred(x), centred(y)
    slope = float(least_squares_slope(u, v))
    if texts is None:
        residual = v - slope * u
        freedom = len(u) - 2
        error = math.sqrt(float(residual @ residual) / freedom / float(u @ u))
    else:
        if (reason := unfit_for_power_law(sizes, texts)) is not None:
            raise InputError(f"`sizes` cannot be fitted by a power law: {reason}")
        count, su, sv, suu, suv = _sums_by_text(u, v, texts)
        freedom, left = len(count) - 1, count.sum() - count
        without = (suv.sum() - suv - su * sv / left) / (suu.sum() - suu - su * su / left)
        error = math.sqrt(freedom / len(count) * float((centred(without) ** 2).sum()))
    return PowerLaw(slope, error, math.exp(float(y.mean()) - slope * float(x.mean())), freedom)


def centred(values: np.ndarray) -> np.ndarray:
    """The values less their mean, along the last axis."""
    return values - values.mean(axis=-1, keepdims=True)


def least_squares_slope(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The slope of v on u along the last axis, both centred: raw moments would lose digits where u
    hardly varies."""
    return np.asarray((u * v).sum(axis=-1) / (u * u).sum(axis=-1))


def unfit_for_power_law(sizes: Sequence[int | float], texts: Sequence[Hashable]) -> str | None:
    """The reason an exponent fitted to points of these sizes and texts would mean nothing; None if
    there is none.

    >>> unfit_for_power_law([128] * 8, range(8))
    'its texts have 1 different length, and an exponent needs 5'
    """
    lengths = {text: float(size) for size, text in zip(sizes, texts, strict=True)}
    different = sorted(set(lengths.values()))
    if len(different) < LEAST_LENGTHS:
        named = f"{len(different)} different length{'' if len(different) == 1 else 's'}"
        return f"its texts have {named}, and an exponent needs {LEAST_LENGTHS}"
    if different[-1] < LEAST_RANGE * different[0]:
        return (
            f"its texts have {different[0]:g} to {different[-1]:g} tokens, and an exponent needs a "
            "longest text "
            f"{LEAST_RANGE:g} times as long as the shortest"
        )
    return None


def _sums_by_text(u: np.ndarray, v: np.ndarray, texts: Sequence[Hashable]) -> list[np.ndarray]:
    """Of each text: how many points, and the sums of u, v, u² and u v."""
    numbers: dict[Hashable, int] = {}
    owner = np.array([numbers.setdefault(text, len(numbers)) for text in texts])
    return [
        np.bincount(owner, weights=weights, minlength=len(numbers))
        for weights in (np.ones_like(u), u, v, u * u, u * v)
    ]


def exponent_interval(
    sizes: Sequence[int | float],
    values: Sequence[float],
    texts: Sequence[Hashable],
    *,
    seed: int = 0,
) -> tuple[float, float] | None:
    """A 95 % interval of the exponent that `fit_power_law` gives: percentile bootstrap over texts.

    The texts are drawn with replacement, each with all its points, BOOTSTRAP_SAMPLES times; samples
    with a single size have no slope and are passed over. None for fewer than LEAST_TEXTS texts, or
    where most samples have no slope.

    >>> exponent_interval([1, 2, 4, 8, 16], [1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16], range(5))
    (-1.0, -1.0)
    """
    points = sorted(zip(sizes, values, texts, strict=True), key=lambda point: point[:2])
    x, y = (np.log(np.asarray([point[i] for point in points], dtype=np.float64)) for i in (0, 1))
    sums = _sums_by_text(x - x.mean(), y - y.mean(), [point[2] for point in points])
    # The texts in an order of their own points: neither their names nor the order of the rows
    # changes the interval.
    order = np.lexsort(sums)
    sums = [total[order] for total in sums]
    groups = len(order)
    if groups < LEAST_TEXTS:
        return None
    drawn = np.random.default_rng(seed).multinomial(
        groups, np.full(groups, 1 / groups), size=BOOTSTRAP_SAMPLES
    )
    count, su, sv, suu, suv = (drawn @ total for total in sums)
    spread = suu - su * su / count
    usable = spread > 1e-12 * sums[3].sum()
    if 2 * usable.sum() < BOOTSTRAP_SAMPLES:
        return None
    slopes = (suv - su * sv / count)[usable] / spread[usable]
    low, high = np.quantile(slopes, (0.025, 0.975))
    return round(float(low), 12), round(float(high), 12)


def power_law_and_interval(
    sizes: Sequence[Any], values: Sequence[float], texts: Sequence[Hashable]
) -> tuple[PowerLaw | None, tuple[float, float] | None]:
    """`fit_power_law` of all points as draws of their own, and `exponent_interval` over texts.

    None, None where there is no fit: fewer than three points or two sizes, or a size or value that
    is not positive.
    """
    numbers = all(isinstance(size, int | float) and size > 0 for size in sizes)
    if not numbers or len(set(sizes)) < 2 or len(values) < 3 or min(values) <= 0:
        return None, None
    return fit_power_law(sizes, values), exponent_interval(sizes, values, texts)


@dataclass(frozen=True)
class Trend:
    """A power law n^exponent with an interval.

    Attributes:
        exponent, low, high: of n.
        how: BOOTSTRAP where there are five texts or more, else STUDENT.
    """

    exponent: float
    low: float
    high: float
    how: str

    @classmethod
    def of(cls, law: PowerLaw | None, interval: tuple[float, float] | None) -> "Trend | None":
        """The trend of a fit; None without one."""
        if law is None:
            return None
        if interval is not None:
            return cls(law.exponent, *interval, BOOTSTRAP)
        return cls(law.exponent, *law.interval, STUDENT)

    @property
    def behaviour(self) -> str:
        """The most that the interval allows to say.

        >>> Trend(-0.51, -0.54, -0.48, BOOTSTRAP).behaviour, Trend(-0.02, -0.1, 0.06, BOOTSTRAP).behaviour
        ('falls about as 1/√n', 'shows no trend')
        """  # noqa: E501
        if self.low > -NEAR and self.high < NEAR:
            return "hardly changes"
        if self.low <= 0 <= self.high:
            return "shows no trend"
        if self.low > 0:
            return "grows"
        if self.low > ROOT - NEAR and self.high < ROOT + NEAR:
            return "falls as 1/√n"
        if self.low <= ROOT <= self.high:
            return "falls about as 1/√n" if self.high - self.low < -ROOT / 2 else "falls"
        return "falls, but slower than 1/√n" if self.low > ROOT else "falls faster than 1/√n"

    @property
    def text(self) -> str:
        """The exponent with its interval."""
        text = f"exponent {self.exponent:.2f} (95 % CI {self.low:.2f} to {self.high:.2f})"
        return text.replace("-", "\N{MINUS SIGN}")
