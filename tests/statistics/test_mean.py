"""Means and their intervals, against tables and simulation."""

import numpy as np
import pytest

from wordsens.statistics.mean import LEAST, Mean, mean_interval, student


@pytest.mark.parametrize(("freedom", "table"), [(4, 2.776), (9, 2.262), (29, 2.045), (1000, 1.962)])
def test_the_quantile_is_that_of_the_tables(freedom, table):
    assert student(freedom) == pytest.approx(table, abs=5e-4)


def test_few_members_give_no_interval():
    assert mean_interval([1.0] * (LEAST - 1)) == Mean(1.0, None, None)
    assert mean_interval([1.0] * LEAST) == Mean(1.0, 1.0, 1.0)


def test_the_interval_holds_the_truth_in_95_percent():
    """2000 normal samples of 6: 95 % +- .5 %; false alarm of the test below 1e-4."""
    samples = np.random.default_rng(0).normal(3, 2, size=(2000, 6))
    held = [found.low <= 3 <= found.high for found in map(mean_interval, samples.tolist())]
    assert 0.93 <= np.mean(held) <= 0.97
