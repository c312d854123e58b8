"""The median with an interval that holds for any distribution."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import bdtr

COVERAGE = 0.95


def median_ends(size: int) -> int:
    """The largest k such that the (k + 1)-th smallest and largest of `size` values enclose their median with the
    coverage: 2 P(Binomial(size, 1/2) <= k) <= 1 - coverage. -1 where there is none.

    >>> median_ends(5), median_ends(6), median_ends(20)
    (-1, 0, 5)
    """
    tails = bdtr(np.arange(size + 1), size, 0.5)
    return int(np.count_nonzero(2 * tails <= 1 - COVERAGE)) - 1


def least_values() -> int:
    """The fewest values whose smallest and largest enclose the median with the coverage: 1 - 2^(1 - m) >= it.

    >>> least_values()
    6
    """
    return math.ceil(1 - math.log2(1 - COVERAGE))


def median_intervals(
    values: Float[np.ndarray, "m k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """For each column the median, and the order statistics that enclose it with the coverage: exact for independent
    values of any one distribution.
    """
    ordered, place = np.sort(values, axis=0), median_ends(len(values))
    return np.median(values, axis=0), ordered[place], ordered[-1 - place]
