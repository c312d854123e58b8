"""Rank correlation: SciPy's, and an interval that covers."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from wordsens.statistics.rank_correlation import correlation_interval, rank_correlation


def test_it_is_scipys_with_and_without_ties():
    stream = np.random.default_rng(0)
    for _ in range(5):
        a, b = stream.normal(size=20), stream.integers(4, size=20)
        assert rank_correlation(a.tolist(), b.tolist()) == pytest.approx(spearmanr(a, b).statistic)
    assert math.isnan(rank_correlation([1, 1], [1, 2]))


def test_the_interval_is_over_draws():
    draws = {at: [(1.0, 1.0 + 0.1 * at), (2.0, 3.0), (4.0, 5.0 - 2.9 * (at == 4))] for at in range(5)}
    value, low, high = correlation_interval(draws)
    assert low < value < high
    assert (value, low, high) == correlation_interval(draws)
    assert correlation_interval({0: draws[0], 1: draws[0]})[1:] == (1.0, 1.0)
