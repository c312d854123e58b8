"""The rank correlation of two columns, with an interval over draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import LEVEL

RESAMPLES = 500
"""Bootstrap samples: five draws, the fewest that get an interval, have 126 different ones."""


def rank_correlation(first: Sequence[int | float], second: Sequence[int | float]) -> float:
    """Spearman's: the correlation of the ranks, ties sharing theirs; NaN where a column does not vary.

    >>> rank_correlation([1, 2, 3, 4], [0.1, 0.4, 0.2, 9.0]), rank_correlation([1, 1, 2], [5, 5, 5])
    (0.8, nan)
    """
    if len(set(first)) < 2 or len(set(second)) < 2:
        return float("nan")
    result: Any = spearmanr(first, second)
    return round(float(result.statistic), 12)


def correlation_interval(
    draws: Mapping[int, Sequence[tuple[float, float]]], *, seed: Seed = 0
) -> tuple[float, float, float]:
    """The rank correlation of the pairs of all draws, and the ends of its 95 % bootstrap interval over draws."""
    keys = list(draws)

    def of(chosen: Sequence[int]) -> float:
        pairs = [pair for key in chosen for pair in draws[key]]
        return rank_correlation(*zip(*pairs, strict=True))

    stream = np.random.default_rng(derive_seed(seed, "rank correlation"))
    drawn = [of([keys[at] for at in stream.integers(len(keys), size=len(keys))]) for _ in range(RESAMPLES)]
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return of(keys), float(low), float(high)
