"""The threshold under a budget against a search over all scores, its promise on a known law, and
SciPy's limits."""

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from wordsens.statistics.operating_point import least_count, operating_point, share_at_most


def by_search(unwanted, wanted, budget, confidence):
    """From the largest score down while the limit, by SciPy, is within the budget; the last one
    that keeps some."""
    threshold = None
    for score in sorted({*unwanted, *wanted}, reverse=True):
        hits = sum(unwanted >= score)
        if hits == len(unwanted) or beta.ppf(confidence, hits + 1, len(unwanted) - hits) > budget:
            break
        threshold = score
    if threshold is None or not (wanted >= threshold).any():
        return None, None, None
    return threshold, sum(unwanted >= threshold), np.mean(wanted >= threshold)


@pytest.mark.parametrize("budget", [0.01, 0.05, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("steps", [3, 30, 10_000])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_it_is_what_a_search_finds(steps, budget, confidence):
    """With ties by the dozen, some, and hardly any."""
    random = np.random.default_rng(steps)
    unwanted, wanted = (
        random.integers(0, steps, 60) / steps,
        random.integers(steps // 4, steps + 2, 40) / steps,
    )
    point = operating_point(unwanted, wanted, budget, confidence=confidence)
    threshold, hits, recall = by_search(unwanted, wanted, budget, confidence)
    assert (point.hits, point.recall) == (hits, recall)
    if threshold is not None:
        assert point.threshold <= threshold
        assert (sum(unwanted >= point.threshold), np.mean(wanted >= point.threshold)) == (
            hits,
            recall,
        )
        assert point.limit <= budget
        assert point.recall_low <= point.recall <= point.recall_high


@pytest.mark.parametrize("digits", [1, 8])
def test_the_true_share_is_above_the_budget_in_at_most_five_of_a_hundred_samples(digits):
    """1,000 samples, seed 0, of 181 unwanted scores of a normal law, rounded: of these sizes the
    chance to fail is .0492 for a law without ties, so that more than 65 fail with chance .013, and
    fewer than 10 with ties alone."""
    assert binom.cdf(4, 181, 0.05) == pytest.approx(0.0492, abs=1e-4)
    random, exceeded = np.random.default_rng(0), 0
    for _ in range(1000):
        unwanted, wanted = (random.normal(mean, 1, 181).round(digits) for mean in (0, 1))
        threshold = operating_point(unwanted, wanted, 0.05).threshold
        exceeded += threshold is not None and norm.sf(threshold - 0.5 * 10**-digits) > 0.05
    assert exceeded <= 65
    assert exceeded >= 10 or digits == 1


def test_no_threshold_separates():
    assert operating_point(np.full(400, 0.9), np.linspace(0, 0.9, 90), 0.05).threshold is None
    assert operating_point(np.full(400, -np.inf), np.array([0.2, -np.inf]), 0.05).threshold == 0.2


@pytest.mark.parametrize(("budget", "needed"), [(0.01, 299), (0.02, 149), (0.1, 29)])
def test_so_many_are_needed_of_which_none_passes(budget, needed):
    assert least_count(budget) == needed
    points = [
        operating_point(np.zeros(count), np.ones(5), budget) for count in (needed - 1, needed)
    ]
    assert [point.threshold for point in points] == [None, 1.0]


@pytest.mark.parametrize(("hits", "trials"), [(0, 66), (1, 66), (7, 20), (19, 20), (5, 5)])
def test_the_upper_limit_of_a_share_is_clopper_and_pearsons(hits, trials):
    assert share_at_most(hits, trials) == pytest.approx(
        beta.ppf(0.95, hits + 1, trials - hits) if hits < trials else 1, abs=1e-9
    )
