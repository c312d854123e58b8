"""The area under the curve against SciPy's rank statistic, and how often its interval holds the
truth."""

import numpy as np
import pytest
from scipy.stats import beta, mannwhitneyu, norm

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


@pytest.mark.parametrize("truth", [0.5, 0.02])
def test_the_interval_holds_the_truth_in_95_percent(truth):
    """In 200 draws, seed 0; with a true rate of 95 % fewer than 183 have a chance of .6 %. On the
    floor it errs to the wide."""
    random = np.random.default_rng(0)
    shift = norm.ppf(truth) * np.sqrt(2)
    held = 0
    for draw in range(200):
        first, second = random.normal(-shift, 1, 66), random.normal(0, 1, 124)
        found = auc_interval(first, second, seed=draw, draws=300)
        held += found.low <= truth <= found.high
    assert held >= 183


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


@pytest.mark.slow
def test_the_interval_holds_the_true_change_in_95_of_100():
    """The truth is that of 20,000 members of each; 300 draws of 40 and 60: 95 %, 92.5 to 98 at
    three deviations."""
    random = np.random.default_rng(2)
    first, second = drawn(random, 20000, 0.0, 0.4), drawn(random, 20000, 0.8, 0.0)
    truth = auc(first[1], second[1]) - auc(first[0], second[0])
    hits = 0
    for _ in range(300):
        mine, theirs = random.integers(0, 20000, 40), random.integers(0, 20000, 60)
        sides = (first[0][mine], first[1][mine])
        change = paired_areas({"kind": sides}, (second[0][theirs], second[1][theirs]), seed=0)[
            "kind"
        ].change
        hits += change.low <= truth <= change.high
    assert 0.915 <= hits / 300 <= 0.985
