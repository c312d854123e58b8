"""The area under the curve against SciPy's rank statistic, and how often its interval holds the truth."""

import numpy as np
import pytest
from scipy.stats import beta, mannwhitneyu, norm

from wordsens.statistics.auc import auc, auc_interval, placements

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("draw", range(5))
def test_it_is_the_rank_statistic_over_the_number_of_comparisons(draw):
    # Few distinct numbers, so that ties are frequent.
    first, second = RANDOM.integers(0, 6, 17).astype(float), RANDOM.integers(1, 8, 11).astype(float)
    expected = mannwhitneyu(second, first).statistic / (17 * 11)
    assert auc(first, second) == pytest.approx(expected, abs=1e-12)
    assert placements(first, second).mean() == pytest.approx(expected, abs=1e-12)


def test_ties_count_half():
    assert auc(np.array([1.0]), np.array([1.0])) == 0.5


@pytest.mark.parametrize("truth", [0.5, 0.02])
def test_the_interval_holds_the_truth_in_95_percent(truth):
    """In 200 draws; with a true rate of 95 % fewer than 183 have a chance of .6 %. On the floor it errs to the wide."""
    shift = norm.ppf(truth) * np.sqrt(2)
    held = 0
    for draw in range(200):
        first, second = RANDOM.normal(-shift, 1, 66), RANDOM.normal(0, 1, 124)
        found = auc_interval(first, second, seed=draw, draws=300)
        held += found.low <= truth <= found.high
    assert held >= 183


def test_on_the_floor_the_interval_stays_open():
    """Against one point the area is a proportion: 0 hits of 66 have the upper limit of Beta(1/2, 66)."""
    found = auc_interval(np.arange(1.0, 67), np.zeros(2000), seed=0, draws=3000)
    assert (found.value, found.low) == (0, 0)
    assert found.high == pytest.approx(beta.ppf(0.975, 0.5, 66), rel=0.1)


def test_large_samples_are_drawn_in_blocks_with_the_same_law(monkeypatch):
    first, second = RANDOM.normal(0, 1, 40), RANDOM.normal(1, 1, 50)
    whole = auc_interval(first, second, seed=3, draws=1000)
    monkeypatch.setattr("wordsens.statistics.auc._BLOCK", 90 * 64)
    blocks = auc_interval(first, second, seed=3, draws=1000)
    assert (blocks.low, blocks.high) == pytest.approx((whole.low, whole.high), abs=0.02)


def test_a_seed_gives_the_same_interval():
    first, second = RANDOM.normal(0, 1, 40), RANDOM.normal(1, 1, 50)
    assert auc_interval(first, second, seed=1) == auc_interval(first, second, seed=1)
    assert auc_interval(first, second, seed=1) != auc_interval(first, second, seed=2)
