"""The area under the curve against SciPy's rank statistic, and its interval at the floor."""

import numpy as np
import pytest
from scipy.stats import beta, mannwhitneyu

from wordsens.statistics.auc import auc, auc_interval, placements
from wordsens.statistics.paired import TOGETHER, paired_areas


@pytest.mark.parametrize("draw", range(5))
def test_it_is_the_rank_statistic_over_the_number_of_comparisons(draw):
    # Few distinct numbers, so that ties are frequent.
    random = np.random.default_rng(draw)
    first, second = random.integers(0, 6, 17).astype(float), random.integers(1, 8, 11).astype(float)
    expected = mannwhitneyu(second, first).statistic / (17 * 11)
    assert auc(first, second) == pytest.approx(expected, abs=1e-12)
    assert placements(first, second).mean() == pytest.approx(expected, abs=1e-12)


def test_on_the_floor_the_interval_stays_open():
    """Against one point the area is a proportion: 0 hits of 66 have the upper limit of Beta(1/2,
    66)."""
    found = auc_interval(np.arange(1.0, 67), np.zeros(2000), seed=0, draws=3000)
    assert (found.value, found.low) == (0, 0)
    assert found.high == pytest.approx(beta.ppf(0.975, 0.5, 66), rel=0.1)


def drawn(random, size, level, shift):
    """Numbers of one sample before and after."""
    base = random.normal(level, 1.0, size)
    return base, base + random.normal(shift, 0.5, size)


def test_each_change_is_that_of_the_plain_areas_and_turns_with_the_order():
    random = np.random.default_rng(0)
    firsts = {"one": drawn(random, 40, 0.0, -1.2), "two": drawn(random, 30, 0.3, 0.0)}
    second = drawn(random, 60, 0.5, 0.0)
    found = paired_areas(firsts, second, seed=0)
    for name, (before, after) in firsts.items():
        assert found[name].before == pytest.approx(auc(before, second[0]))
        assert found[name].change.value == pytest.approx(
            auc(after, second[1]) - auc(before, second[0])
        )
    assert set(found) == {"one", "two", TOGETHER}
    assert found["one"].p < 0.01 < found["two"].p
    back = paired_areas({name: sides[::-1] for name, sides in firsts.items()}, second[::-1], seed=0)
    assert back["one"].change.value == pytest.approx(-found["one"].change.value)
    assert back["one"].change.low == pytest.approx(-found["one"].change.high)


def test_the_same_numbers_have_no_interval_and_the_floor_has_one():
    low, high = np.arange(20.0), np.arange(20.0) + 100
    same = paired_areas({"kind": (low, low)}, (high, high), seed=0)["kind"]
    assert (same.change.low, same.change.value, same.change.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    floor = paired_areas({"kind": (high, high + 1)}, (low, low), seed=0)["kind"]
    assert floor.change.value == 0.0
    assert floor.change.low < -0.02 < 0.02 < floor.change.high
