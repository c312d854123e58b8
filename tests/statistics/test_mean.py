"""Means and their intervals, against tables and simulation."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from wordsens.statistics.mean import bounded_interval, correlation_interval, mean_interval, student
from wordsens.statistics.paired import paired_means


@pytest.mark.parametrize(("freedom", "table"), [(4, 2.776), (9, 2.262), (29, 2.045), (1000, 1.962)])
def test_the_quantile_is_that_of_the_tables(freedom, table):
    assert student(freedom) == pytest.approx(table, abs=5e-4)


@pytest.mark.parametrize("members", [6, 12, 50, 300])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.9])
def test_a_shares_interval_covers_it_and_stays_within_its_bounds(members, share):
    """The exact chance that it covers, over all counts; Wilson's own falls to some 92 % at shares
    near 0."""
    covered = 0.0
    for count in range(members + 1):
        values = np.repeat([1.0, 0.0], [count, members - count])
        (row,) = paired_means(values[None], np.zeros(1), [(0.0, 1.0)], seed=0, draws=1)
        assert 0.0 <= row.low <= row.value <= row.high <= 1.0
        covered += binom.pmf(count, members, share) * (row.low <= share <= row.high)
    assert covered >= 0.92


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0)])
def test_no_error_takes_an_interval_beyond_its_bounds(bounds):
    low, high = bounds
    for mean in np.linspace(low, high, 9).tolist():
        for error in (0.0, 1e-9, 0.05, 0.5, 3.0):
            ends = bounded_interval(mean, error, 6, bounds)
            assert low <= ends[0] <= mean + 1e-12 and mean - 1e-12 <= ends[1] <= high


def test_the_joint_p_is_that_of_all_signs():
    rows = np.random.default_rng(0).normal(0.8, 1.0, (3, 10))
    rows[1, 6:] = np.nan
    margins = np.array([0.1, 0.0, 0.05])
    found = paired_means(rows, margins, [None] * 3, seed=0)
    signs = np.array(list(itertools.product([-1, 1], repeat=10)))
    kept, statistics = [], []
    for row, margin in zip(rows, margins, strict=True):
        mean = np.nanmean(row)
        left = np.nan_to_num(row - np.clip(mean, -margin, margin))
        kept.append(left / np.sqrt((left**2).sum()))
        statistics.append(abs(kept[-1].sum()))
    largest = np.abs(signs @ np.array(kept).T).max(axis=1)
    for one, row, statistic in zip(found, rows, statistics, strict=True):
        assert one.p == pytest.approx((largest >= statistic - 1e-9).mean(), abs=0.015)
        plain = mean_interval(row[~np.isnan(row)].tolist())
        assert (one.value, one.low, one.high) == pytest.approx((plain.value, plain.low, plain.high))


def test_a_row_of_equal_numbers_has_a_width_where_it_is_bounded():
    free, bounded = paired_means(np.zeros((2, 30)), np.zeros(2), [None, (0.0, 1.0)], seed=0)
    assert (free.low, free.high) == (0.0, 0.0)
    assert bounded.low == 0.0
    assert 0.05 < bounded.high < 0.15
    (few,) = paired_means(np.ones((1, 4)), np.zeros(1), [None], seed=0)
    assert (few.low, few.high) == (None, None)


def test_of_symmetric_rows_one_set_in_twenty_has_a_finding():
    """Two hundred sets of 40 rows that depend on each other: 5 % expected; 2 to 20 hold in 99.9 %
    of seeds."""
    random = np.random.default_rng(1)
    false = 0
    for seed in range(200):
        common = random.standard_normal(25)
        rows = common + random.standard_t(3, (40, 25))
        rows[random.random((40, 25)) < 0.4] = np.nan
        rows[:, :3] = 0.5 * common[:3]
        found = paired_means(rows, np.zeros(40), [None] * 40, seed=seed, draws=199)
        false += min(one.p for one in found) <= 0.05
    assert 2 <= false <= 20


def test_the_interval_is_over_draws():
    draws = {
        at: [(1.0, 1.0 + 0.1 * at), (2.0, 3.0), (4.0, 5.0 - 2.9 * (at == 4))] for at in range(5)
    }
    value, low, high = correlation_interval(draws)
    assert low < value < high
    assert (value, low, high) == correlation_interval(draws)
    assert correlation_interval({0: draws[0], 1: draws[0]})[1:] == (1.0, 1.0)
