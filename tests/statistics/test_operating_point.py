"""The threshold under a budget against a search over all numbers, and the limits of a share against SciPy."""

import numpy as np
import pytest
from scipy.stats import beta

from wordsens.statistics.operating_point import operating_point, share_at_most


def by_search(unwanted, wanted, budget):
    """The smallest of all numbers that at most the budget of the unwanted reach, by trying each."""
    for threshold in sorted([*unwanted, *wanted]):
        if np.mean(unwanted >= threshold) <= budget and np.mean(wanted >= threshold) > 0:
            return threshold, np.mean(wanted >= threshold)
    return None, None


@pytest.mark.parametrize("budget", [0, 0.01, 0.05, 0.3])
@pytest.mark.parametrize("draw", range(4))
def test_it_is_what_a_search_finds(draw, budget):
    random = np.random.default_rng(draw)
    unwanted, wanted = random.integers(0, 30, 40) / 30, random.integers(5, 35, 25) / 30
    point = operating_point(unwanted, wanted, budget, seed=0, draws=200)
    assert (point.threshold, point.recall) == by_search(unwanted, wanted, budget)
    assert point.recall_low <= (point.recall or 0) <= point.recall_high


def test_no_threshold_separates():
    point = operating_point(np.array([0.9, 0.8]), np.array([0.1, 0.2, 0.3]), 0.01, seed=0)
    assert (point.threshold, point.recall, point.threshold_low, point.recall_high) == (None, None, None, 0)


@pytest.mark.parametrize(("hits", "trials"), [(0, 66), (1, 66), (7, 20), (19, 20), (5, 5)])
def test_the_upper_limit_of_a_share_is_clopper_and_pearsons(hits, trials):
    assert share_at_most(hits, trials) == pytest.approx(
        beta.ppf(0.95, hits + 1, trials - hits) if hits < trials else 1, abs=1e-9
    )
