"""How often each interval of `wordsens.intervals` holds the truth: exact sums where the law is
discrete, 1,000 samples elsewhere. A simulation passes while the number of intervals that hold the
truth lies between the 1e-4 quantiles of the binomial laws of the least and the largest coverage
that the test states: of all seeds at most one in 5,000 gives a false alarm."""

import numpy as np
import pytest
from scipy import stats

from wordsens.intervals import (
    auc_changes,
    auc_estimate,
    correlation_estimate,
    difference,
    kept_threshold,
    least_values,
    mean_changes,
    mean_estimate,
    median_estimate,
    power_law,
    share_estimate,
    share_over,
    sign_flips,
)

SAMPLES = 1000
SHARES = np.linspace(0.005, 0.995, 397)
"""True shares at which exact sums are taken."""


def holds(estimates, truth, least=0.95, most=0.95):
    """Whether the intervals hold the truth as often as a coverage from `least` to `most` lets
    expect. Prints the share, which `pytest -rP` shows."""
    held = sum(estimate.low <= truth <= estimate.high for estimate in estimates)
    fewest, largest = stats.binom.ppf([1e-4, 1 - 1e-4], len(estimates), [least, most])
    print(f"coverage {held / len(estimates):.3f}")
    return fewest <= held <= largest


@pytest.mark.parametrize("size", [3, 5, 20])
def test_students_interval_holds_a_normal_mean(size):
    samples = np.random.default_rng(0).normal(3, 2, (SAMPLES, size))
    assert holds([mean_estimate(sample) for sample in samples], 3)


@pytest.mark.parametrize(
    ("law", "size", "least", "most"),
    [
        (stats.beta(2, 5), 5, 0.93, 0.99),
        (stats.beta(2, 5), 20, 0.94, 0.97),
        (stats.beta(0.5, 9), 20, 0.88, 0.99),
        (stats.bernoulli(0.02), 20, 0.94, 1),
        (stats.bernoulli(0.95), 20, 0.95, 1),
        (stats.bernoulli(0.5), 20, 0.94, 0.98),
    ],
)
def test_the_interval_of_a_bounded_mean_holds_it(law, size, least, most):
    samples = law.rvs((SAMPLES, size), random_state=1)
    for low, high in [(0, 1), (-1, 1)]:
        shifted = low + (high - low) * samples
        estimates = [mean_estimate(sample, (low, high)) for sample in shifted]
        assert holds(estimates, low + (high - low) * law.mean(), least, most)


def test_the_interval_of_a_difference_holds_it():
    """Of normal means of 8 and 15 numbers whose errors are alike; and of shares near 0 and 1/2."""
    random = np.random.default_rng(2)
    means = [
        difference(mean_estimate(second), mean_estimate(first))
        for second, first in zip(
            random.normal(2, 1.0, (SAMPLES, 8)), random.normal(1, 1.4, (SAMPLES, 15)), strict=True
        )
    ]
    assert holds(means, 1, 0.95, 0.97)
    shares = [
        difference(share_estimate(int(second), 40), share_estimate(int(first), 60))
        for second, first in random.binomial([40, 60], [0.5, 0.05], (SAMPLES, 2))
    ]
    assert holds(shares, 0.45, 0.95, 0.99)


@pytest.mark.parametrize("trials", [1, 20, 66, 300])
def test_each_end_of_a_share_misses_it_with_a_chance_of_at_most_one_in_forty(trials):
    """Clopper and Pearson's promise at every share, exact; near its worst share it is used up."""
    counts = np.arange(trials + 1)
    estimates = [share_estimate(int(count), trials) for count in counts]
    low, high = np.array([(estimate.low, estimate.high) for estimate in estimates]).T[:, :, None]
    chances = stats.binom.pmf(counts[:, None], trials, SHARES)
    above, below = (chances * (low > SHARES)).sum(axis=0), (chances * (high < SHARES)).sum(axis=0)
    assert (above + below).max() <= 0.05 + 1e-12
    assert 0.022 < min(above.max(), below.max()) <= max(above.max(), below.max()) <= 0.025 + 1e-12


def test_a_threshold_from_a_sample_needs_the_bootstrap_of_both_samples():
    """60 near-duplicates, of which the threshold keeps 90 %, and 60 opposites. The
    truth is the share that passes at the law's own threshold. Clopper and Pearson's interval takes
    the sample's threshold for exact and holds the truth in less than 90 %."""
    random, bootstrap, clopper_pearson = np.random.default_rng(0), [], []
    truth = stats.norm.sf(stats.norm.ppf(0.1, 0.9, 0.05), 0.88, 0.05)
    for seed in range(SAMPLES):
        near, opposite = random.normal([[0.9], [0.88]], 0.05, (2, 60))
        threshold = kept_threshold(near, 0.9)
        bootstrap.append(share_over(opposite, threshold, (near, 0.9), seed=seed, draws=500))
        clopper_pearson.append(share_over(opposite, threshold))
    assert holds(bootstrap, truth, 0.95, 0.97)
    assert not holds(clopper_pearson, truth, 0.90, 1)


@pytest.mark.parametrize("keep", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("size", [10, 60, 299])
def test_the_recall_of_a_threshold_from_the_same_pairs_is_held_by_clopper_and_pearson(size, keep):
    """Of a law without ties the share that reaches the j-th largest of m values is Beta(j, m - j +
    1), exactly."""
    values = np.arange(size) / size
    recall = share_over(values, kept_threshold(values, keep))
    kept = round(recall.value * size)
    law = stats.beta(kept, size - kept + 1)
    assert max(law.cdf(recall.low), law.sf(recall.high)) <= 0.025 + 1e-9


@pytest.mark.parametrize("size", [20, 60])
@pytest.mark.parametrize(
    ("area", "least", "most"), [(0.5, 0.95, 0.97), (0.9, 0.96, 0.985), (0.995, 0.97, 1)]
)
def test_delongs_interval_within_its_bounds_holds_the_auc(area, least, most, size):
    shift = np.sqrt(2) * stats.norm.ppf(area)
    samples = np.random.default_rng(3).normal([[0], [shift]], 1, (SAMPLES, size, 2, 1))[..., 0]
    estimates = [auc_estimate(*sample.T) for sample in samples]
    assert holds(estimates, area, least, most)


@pytest.mark.parametrize(
    ("area", "sizes"), [(0.98, (60, 60)), (0.995, (120, 120)), (0.995, (300, 60))]
)
def test_delongs_interval_holds_the_auc_of_skew_laws(area, sizes):
    """Exponential laws, of which the AUC is the share of the second mean in the sum of both."""
    random = np.random.default_rng(10)
    estimates = [
        auc_estimate(random.exponential(1 - area, sizes[0]), random.exponential(area, sizes[1]))
        for _ in range(SAMPLES)
    ]
    assert holds(estimates, area, 0.95, 0.98)


@pytest.mark.parametrize("shifts", [(0.0, 0.5, 0.4, 0.5), (0.0, 0.0, 0.0, 0.0), (0, 2, 0.8, 2)])
def test_the_interval_of_a_change_of_auc_holds_it(shifts):
    """40 and 60 numbers, which correlate before and after."""
    random, changes, sizes = np.random.default_rng(4), [], (40, 60)
    first, second, later, last = shifts
    truth = stats.norm.cdf((last - later) / 2.5**0.5) - stats.norm.cdf((second - first) / 2**0.5)
    for _ in range(SAMPLES):
        before = [random.normal(place, 1, n) for place, n in zip(shifts[:2], sizes, strict=True)]
        moves = np.array(shifts[2:]) - shifts[:2]
        after = [
            one + random.normal(move, 0.5, len(one))
            for one, move in zip(before, moves, strict=True)
        ]
        sides = list(zip(before, after, strict=True))
        changes += auc_changes({"kind": sides[0]}, sides[1], seed=0, draws=9).values()
    assert holds(changes, truth, 0.94, 0.97)


@pytest.mark.parametrize("sizes", [(10, 20, 40), (10, 10, 40, 40), (10, 14, 20, 31, 45, 70)])
def test_the_interval_of_an_exponent_holds_it(sizes):
    """Normal noise on the logarithms, and three words per text that share the text's noise."""
    random, single, by_text, by_word = np.random.default_rng(5), [], [], []
    texts, words = np.repeat(np.arange(len(sizes)), 3).tolist(), np.repeat(sizes, 3)
    for _ in range(SAMPLES):
        noise = random.normal(0, 0.3, len(sizes))
        values = words**-0.5 * np.exp(noise[texts] + random.normal(0, 0.1, len(texts)))
        single.append(power_law(sizes, (np.power(sizes, -0.5) * np.exp(noise)).tolist())[0])
        by_text.append(power_law(words.tolist(), values.tolist(), texts)[0])
        by_word.append(power_law(words.tolist(), values.tolist())[0])
    assert holds(single, -0.5) and holds(by_text, -0.5)
    assert not holds(by_word, -0.5, 0.9, 1)


@pytest.mark.parametrize("size", range(6, 61))
def test_the_order_statistics_around_a_median_are_the_innermost_that_hold_it(size):
    """The median of a law lies below the k-th smallest of m values if fewer than k lie below it."""
    values = np.random.default_rng(size).permutation(size) + 1.0
    estimate = median_estimate(values)
    below, above = estimate.low, size + 1 - estimate.high
    inside = stats.binom.cdf(estimate.high - 1, size, 0.5) - stats.binom.cdf(below - 1, size, 0.5)
    assert (estimate.value, below) == ((size + 1) / 2, above)
    assert inside >= 0.95 > 1 - 2 * stats.binom.cdf(below, size, 0.5)


def test_the_interval_of_a_median_holds_that_of_a_skew_law():
    samples = np.random.default_rng(6).exponential(size=(SAMPLES, 20))
    coverage = 1 - 2 * stats.binom.cdf(5, 20, 0.5)
    assert holds([median_estimate(sample) for sample in samples], np.log(2), coverage, coverage)


def test_fewer_values_than_six_hold_a_median_too_rarely():
    assert 2 * 0.5 ** least_values() <= 0.05 < 2 * 0.5 ** (least_values() - 1)
    assert median_estimate(range(least_values())).low == 0
    assert median_estimate(range(least_values() - 1)).low is None


@pytest.mark.parametrize("two_sided", [True, False])
def test_sign_flips_alarm_in_at_most_5_percent_and_find_a_clear_change(two_sided):
    """Eight rows over 15 members, all pairs of which correlate by 1/2; then the first row's mean is
    1.2 standard deviations, which the joint test finds in 80 % or more."""
    random = np.random.default_rng(7)
    rows = (random.normal(size=(SAMPLES, 8, 15)) + random.normal(size=(SAMPLES, 1, 15))) / 2**0.5
    alarms = 0
    for seed, parts in enumerate(rows):
        options = {"two_sided": two_sided, "seed": seed, "draws": 399}
        alarms += sign_flips(parts, parts.sum(axis=1), **options).min() <= 0.05
    fewest, most = stats.binom.ppf([1e-4, 1 - 1e-4], SAMPLES, 0.05)
    assert fewest <= alarms <= most
    rows[:, 0] += 1.2
    options["seed"] = 0
    found = [sign_flips(parts, parts.sum(axis=1), **options)[0] <= 0.05 for parts in rows]
    assert np.mean(found) >= 0.8


def test_changes_on_the_margin_alarm_in_at_most_5_percent():
    """Three rows of 20 texts, each mean exactly on its margin."""
    rows = np.random.default_rng(8).normal([[0.3], [-0.3], [0.3]], 1, (SAMPLES, 3, 20))
    margins, bounds = np.full(3, 0.3), [None] * 3
    alarms = 0
    for seed, row in enumerate(rows):
        changes = mean_changes(row, margins, bounds, seed=seed, draws=199)
        alarms += min(change.p for change in changes) <= 0.05
    assert alarms <= stats.binom.ppf(1 - 1e-4, SAMPLES, 0.05)


def test_the_interval_of_a_rank_correlation_over_draws_holds_it():
    """20 draws of three pairs with Pearson's correlation .5, and so Spearman's 6/pi arcsin(.25)."""
    random = np.random.default_rng(9)
    pairs = random.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], (SAMPLES, 20, 3))
    estimates = [correlation_estimate(draws, resamples=100) for draws in pairs]
    assert holds(estimates, 6 / np.pi * np.arcsin(0.25), 0.91, 0.94)
