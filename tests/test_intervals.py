"""The intervals and tests of `wordsens.intervals` against SciPy and the equations that define them.
How often the intervals cover the truth is in test_coverage.py."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from wordsens import intervals
from wordsens.display.numbers import Estimate
from wordsens.intervals import TOGETHER, auc, auc_changes, auc_estimate, mean_estimate, power_law

UNIT, SIGNED = (0.0, 1.0), (-1.0, 1.0)
SIZES = [10, 14, 20, 31, 45, 70]


def limits(estimate):
    return pytest.approx((estimate.low, estimate.high), rel=1e-9, abs=1e-12)


def solve_score_equation(estimate, error, members, bounds):
    """Whether both ends e satisfy |e - mean| = t sqrt((e - a) (b - e) / members'), members' being
    the number that gives the mean its standard error."""
    (low, high), mean = bounds, estimate.value
    effective = (mean - low) * (high - mean) / error**2 if error else members
    quantile = stats.t.ppf(0.975, members - 1)
    ends = np.array([estimate.low, estimate.high])
    reach = quantile * np.sqrt((ends - low) * (high - ends) / effective)
    return ends - mean == pytest.approx([-reach[0], reach[1]], abs=1e-9)


@pytest.mark.parametrize("size", [3, 5, 20])
def test_the_interval_of_a_mean_is_students(size):
    values = np.random.default_rng(size).normal(3, 2, size)
    estimate = mean_estimate(values)
    assert (estimate.value, estimate.n) == (pytest.approx(values.mean()), size)
    assert stats.ttest_1samp(values, 0).confidence_interval(0.95) == limits(estimate)


def test_two_values_give_a_mean_without_an_interval():
    assert (mean_estimate([1.0, 3.0]).value, mean_estimate([1.0, 3.0]).low) == (2.0, None)


@pytest.mark.parametrize("bounds", [UNIT, SIGNED])
@pytest.mark.parametrize("size", [3, 12, 50])
def test_the_interval_of_a_bounded_mean_solves_the_score_equation(size, bounds):
    values = np.random.default_rng(size).uniform(*bounds, size)
    assert solve_score_equation(mean_estimate(values, bounds), stats.sem(values), size, bounds)


@pytest.mark.parametrize("bounds", [UNIT, SIGNED])
@pytest.mark.parametrize("place", [0.0, 0.3, 1.0])
def test_equal_bounded_values_count_as_a_share_of_as_many_trials(place, bounds):
    value = bounds[0] + place * (bounds[1] - bounds[0])
    estimate = mean_estimate([value] * 5, bounds)
    assert solve_score_equation(estimate, 0, 5, bounds)
    assert estimate.low < estimate.high


@pytest.mark.parametrize("scale", [1e-12, 0.01, 1.0])
def test_the_interval_of_a_bounded_mean_stays_within_the_bounds(scale):
    random = np.random.default_rng(0)
    for size in (3, 4, 30):
        for values in random.uniform(0, scale, (50, size)):
            for nearer in (values, 1 - values):
                estimate = mean_estimate(nearer, UNIT)
                assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_each_end_of_a_difference_adds_the_squares_of_the_ends_that_face_each_other():
    second, first = Estimate(10.0, 7.0, 15.0), Estimate(0.0, -12.0, 4.0)
    assert limits(intervals.difference(second, first)) == (5.0, 23.0)
    assert limits(intervals.difference(first, second)) == (-23.0, -5.0)
    assert intervals.difference(Estimate(1.0), first) == Estimate(1.0)
    assert intervals.ends(Estimate(1.0)) == (-math.inf, math.inf)


@pytest.mark.parametrize(("hits", "trials"), [(0, 1), (0, 20), (1, 66), (7, 20), (20, 20)])
def test_the_interval_of_a_share_is_clopper_and_pearsons(hits, trials):
    estimate = intervals.share_estimate(hits, trials)
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, "exact")
    assert (estimate.value, estimate.n) == (hits / trials, trials)
    assert (expected.low, expected.high) == limits(estimate)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (7, 66), (19, 20), (20, 20)])
def test_an_upper_limit_of_a_share_misses_with_the_chance_of_its_level(hits, trials, level):
    limit = intervals.share_at_most(hits, trials, level)
    expected = 1 if hits == trials else stats.beta.ppf(level, hits + 1, trials - hits)
    assert limit == pytest.approx(expected)
    assert level != 0.95 or limit == intervals.share_at_most(hits, trials)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("budget", [0.001, 0.01, 0.05, 0.2, 0.5])
def test_the_least_count_is_the_first_whose_upper_limit_is_within_the_budget(budget, confidence):
    count = intervals.least_count(budget, confidence)
    assert (1 - budget) ** count <= 1 - confidence < (1 - budget) ** (count - 1)
    assert confidence != 0.95 or count == intervals.least_count(budget)


@pytest.mark.parametrize("keep", [0.5, 0.8, 0.9, 0.95, 1.0])
def test_the_kept_threshold_is_the_largest_that_keeps_the_share(keep):
    for size in range(1, 61):
        values = np.random.default_rng(size).permutation(size).astype(float)
        threshold = intervals.kept_threshold(values, keep)
        assert np.mean(values > threshold) < keep <= np.mean(values >= threshold) + 1e-12


@pytest.mark.parametrize("tied", [0, 10])
def test_at_a_certain_threshold_the_bootstrap_of_a_share_has_jeffreys_law(tied):
    """20 of 60 lie above the threshold and `tied` at it. Each end is a quantile of 20,000 draws: to
    four standard errors (one seed in 16,000 errs) the tail is .025; 5 % would be 22 away."""
    values = np.repeat([0.3, 0.5, 0.7], [40 - tied, tied, 20])
    kept = np.full(9, 0.5), 0.9
    share = intervals.share_over(values, 0.5, kept, seed=1, draws=20_000)
    law = stats.beta(20 + tied + 0.5, 40 - tied + 0.5)
    assert share.value == (20 + tied) / 60
    assert [law.cdf(share.low), law.sf(share.high)] == pytest.approx([0.025] * 2, abs=0.0045)
    assert intervals.share_over(values, 0.5) == intervals.share_estimate(20 + tied, 60)


def tied_samples(seed):
    """Few distinct numbers, so that ties are frequent."""
    random = np.random.default_rng(seed)
    return random.integers(0, 6, 17).astype(float), random.integers(1, 8, 11).astype(float)


def wins(first, second):
    """1 where a number of `second` (column) is above one of `first` (row), 1/2 where they tie."""
    return (first[:, None] < second) + (first[:, None] == second) / 2


def delong_error(kernel):
    """From the table of comparisons: the scatter of its rows' and columns' means, added."""
    return math.hypot(*(stats.sem(kernel.mean(axis=axis)) for axis in (0, 1)))


@pytest.mark.parametrize("seed", range(4))
def test_the_auc_is_the_rank_statistic_and_its_error_delongs(seed):
    first, second = tied_samples(seed)
    estimate, kernel = auc_estimate(first, second), wins(first, second)
    expected = stats.mannwhitneyu(second, first).statistic / kernel.size
    assert auc(first, second) == estimate.value == pytest.approx(expected)
    assert intervals.placements(first, second) == pytest.approx(kernel.mean(axis=1))
    assert solve_score_equation(estimate, delong_error(kernel), 11, UNIT)


def test_the_interval_of_an_auc_stays_open_where_all_placements_are_equal():
    high, low = np.arange(1.0, 67), np.zeros(20)
    assert solve_score_equation(auc_estimate(high, low), 0, 20, UNIT)
    assert solve_score_equation(auc_estimate(np.zeros(7), low), 0, 7, UNIT)
    assert limits(auc_estimate(high, low[:1])) == UNIT


def test_a_few_lost_comparisons_count_as_those_of_no_more_trials_than_members():
    first, second = np.arange(60.0), np.arange(58.5, 118)
    estimate = auc_estimate(first, second)
    assert 1 - estimate.value == pytest.approx(1 / 3600)
    error = math.sqrt(estimate.value * (1 - estimate.value) / 120)
    assert delong_error(wins(first, second)) < error / 2
    assert solve_score_equation(estimate, error, 60, UNIT)


def test_a_power_law_is_a_line_through_the_logarithms():
    values = 2.5 * np.power(SIZES, -0.4) * np.exp(np.random.default_rng(0).normal(0, 0.1, 6))
    exponent, constant = power_law(SIZES, values.tolist())
    line = stats.linregress(np.log(SIZES), np.log(values))
    reach = stats.t.ppf(0.975, 4) * line.stderr
    assert (exponent.value, constant) == pytest.approx((line.slope, math.exp(line.intercept)))
    assert (line.slope - reach, line.slope + reach) == limits(exponent)


def test_equal_values_have_the_exponent_0_for_certain_and_order_changes_no_digit():
    exponent, constant = power_law([5, 5, 10, 20], [4.0] * 4)
    assert (exponent.low, exponent.value, exponent.high, constant) == (0, 0, 0, 4)
    values = np.random.default_rng(5).lognormal(size=30)
    orders = [np.random.default_rng(seed).permutation(30) for seed in range(9)]
    assert len({str(power_law(order + 1, values[order].tolist())) for order in orders}) == 1


def test_the_points_of_one_text_count_as_their_geometric_mean():
    values = np.exp(np.random.default_rng(1).normal(size=(6, 2)))
    texts = np.repeat(np.arange(6), 2).tolist()
    by_text = power_law(np.repeat(SIZES, 2).tolist(), values.ravel().tolist(), texts)
    means = power_law(SIZES, np.sqrt(values.prod(axis=1)).tolist())
    assert (means[0].low, means[0].high) == limits(by_text[0])
    assert (by_text[0].n, by_text[1]) == (6, pytest.approx(means[1]))


@pytest.mark.parametrize(
    ("sizes", "values"),
    [
        ([1, 2], [1.0, 1.0]),
        ([2, 2, 2], [1.0, 1.0, 1.0]),
        ([1, 2, 3], [1.0, 0.0, 1.0]),
        ([0, 1, 2], [1.0, 1.0, 1.0]),
        (["relu", "tanh", "sine"], [1.0, 1.0, 1.0]),
        ([], []),
    ],
)
def test_points_without_a_power_law(sizes, values):
    assert power_law(sizes, values) is None


def test_a_behaviour_is_named_only_where_its_interval_allows_it():
    """Each interval with the exponents from which it tells the data apart."""
    cases = [(-0.01, 0.01), (-0.1, 0.1), (0.1, 0.2), (-0.51, -0.49), (-0.6, -0.45)]
    cases += [(-0.9, -0.1), (-0.4, -0.1), (-0.9, -0.6)]
    named = [intervals.behaviour(Estimate(sum(ends) / 2, *ends)) for ends in cases]
    assert len(set(named)) == len(cases)
    assert named[2] == "grows" and "slower" in named[6] and "faster" in named[7]
    assert intervals.behaviour(Estimate(-0.5)) == named[1]


def joint_p(parts, totals, absolute=np.abs):
    """Over all patterns of signs."""
    signs = np.array(list(itertools.product([-1, 1], repeat=parts.shape[1])))
    size = np.sqrt((parts**2).sum(axis=1))
    largest = absolute(signs @ parts.T / size).max(axis=1)
    return [np.mean(largest >= total - 1e-9) for total in absolute(totals / size)]


@pytest.mark.parametrize("two_sided", [True, False])
def test_sign_flips_count_the_patterns_that_reach_the_change(two_sided):
    """Ten members, 40,000 draws: to four standard errors, .01; one seed in 16,000 errs."""
    parts = np.random.default_rng(3).normal([[0.3], [-0.8], [0.6]], 1, (3, 10))
    totals = parts.sum(axis=1)
    p = intervals.sign_flips(parts, totals, two_sided=two_sided, seed=0, draws=40_000)
    expected = joint_p(parts, totals, np.abs if two_sided else np.asarray)
    assert p == pytest.approx(expected, abs=0.01)
    single = intervals.sign_flips(parts[:1], totals[:1], two_sided=two_sided, seed=1, draws=40_000)
    peer = stats.permutation_test(
        (parts[0], np.zeros(10)),
        lambda first, second: np.mean(first - second),
        permutation_type="samples",
        alternative="two-sided" if two_sided else "greater",
    )
    assert single[0] == pytest.approx(peer.pvalue, abs=0.01)


def test_sign_flips_count_the_data_and_every_draw_once():
    parts = np.ones((2, 100_000)) * [[1], [0]]
    for total, p in [(1e9, 1 / 101), (-1e9, 1.0)]:
        totals = np.array([total, 0])
        found = intervals.sign_flips(parts, totals, two_sided=False, seed=0, draws=100)
        assert found.tolist() == [p, 1.0]


def test_a_change_within_the_margin_is_none_and_beyond_it_only_the_excess_counts():
    random = np.random.default_rng(5)
    differences = random.normal([[0.4], [1.4], [-0.8]], 0.5, (3, 12))
    differences[:, 10:] = math.nan
    changes = intervals.mean_changes(
        differences, np.full(3, 0.4), [None, None, SIGNED], seed=0, draws=40_000
    )
    means = differences[:, :10].mean(axis=1)
    parts = differences[:, :10] - np.clip(means, -0.4, 0.4)[:, None]
    expected = joint_p(parts, parts.sum(axis=1))
    assert [change.p for change in changes] == pytest.approx(expected, abs=0.01)
    assert expected[0] == 1 > 0.1 > max(expected[1:])
    for change, row, bounds in zip(changes, differences, (None, None, SIGNED), strict=True):
        plain = mean_estimate(row[:10], bounds)
        assert (change.value, change.n) == (plain.value, 10)
        assert (plain.low, plain.high) == limits(change)


def test_bounded_changes_in_steps_have_an_interval_of_one_more_step_at_each_end():
    row = np.array([0.0] * 19 + [0.25])
    (change,) = intervals.mean_changes(row[None], np.zeros(1), [SIGNED], [0.25], seed=0, draws=9)
    lower, upper = (mean_estimate([*row, more], SIGNED) for more in (-0.25, 0.25))
    assert (lower.low, upper.high) == limits(change)
    assert change.value == row.mean()


def before_and_after(random, size, level, shift):
    before = random.normal(level, 1, size)
    return before, before + random.normal(shift, 0.5, size)


def test_a_change_of_auc_has_the_error_of_its_paired_comparisons():
    random = np.random.default_rng(0)
    firsts = {"falls": before_and_after(random, 40, 0.0, 1.2)}
    firsts["stays"] = before_and_after(random, 30, 0.3, 0.0)
    second = before_and_after(random, 20, 0.5, 0.0)
    changes, falls = (auc_changes(firsts, second, falls=way, seed=0) for way in (False, True))
    back = {name: sides[::-1] for name, sides in firsts.items()}
    rises = auc_changes(back, second[::-1], falls=True, seed=0)
    whole = [np.concatenate(sides) for sides in zip(*firsts.values(), strict=True)]
    for name, sides in {**firsts, TOGETHER: whole}.items():
        kernel = wins(sides[1], second[1]) - wins(sides[0], second[0])
        assert changes[name].value == pytest.approx(kernel.mean())
        members = min(len(sides[0]), 20)
        assert solve_score_equation(changes[name], delong_error(kernel), members, SIGNED)
        assert (-rises[name].high, -rises[name].low) == limits(changes[name])
    assert set(changes) == {*firsts, TOGETHER}
    assert falls["falls"].p <= changes["falls"].p < 0.01 < changes["stays"].p
    assert rises["falls"].p > 0.99


def test_the_p_values_of_aucs_count_every_pattern_of_signs():
    """12 members, 40,000 draws: to four standard errors, .01."""
    random = np.random.default_rng(7)
    firsts = {"a": random.normal(0, 1, (2, 4)), "b": random.normal([[0], [1]], 1, (2, 3))}
    second, kernels = random.normal(0.5, 1, (2, 5)), np.zeros((3, 7, 5))
    whole = np.concatenate(list(firsts.values()), axis=1)
    members = slice(0, 4), slice(4, 7), slice(0, 7)
    parts, falls = np.zeros((3, 12)), []
    for row, own, kernel in zip(parts, members, kernels, strict=True):
        kernel[own] = wins(whole[1], second[1])[own] - wins(whole[0], second[0])[own]
        row[own] = kernel[own].mean(axis=1) / len(kernel[own])
        row[7:] = kernel[own].mean(axis=0) / 5
        falls.append(-kernel[own].mean())
    changes = auc_changes(firsts, tuple(second), falls=True, seed=0, draws=40_000)
    expected = joint_p(parts, np.array(falls), np.asarray)
    assert [change.p for change in changes.values()] == pytest.approx(expected, abs=0.01)


def test_the_same_numbers_have_no_scatter_and_a_floor_has_an_open_interval():
    low, high = np.arange(20.0), np.arange(20.0) + 100
    same = auc_changes({"kind": (low, low)}, (high, high), seed=0)["kind"]
    assert (same.low, same.value, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    floor = auc_changes({"kind": (high, high + 1)}, (low, low), seed=0)["kind"]
    assert (floor.value, floor.p) == (0.0, 1.0)
    limit = auc_estimate(high, low).high
    assert (-limit, limit) == limits(floor)
    few = auc_changes({"kind": (high[:1], low[:1])}, (low, low), seed=0)["kind"]
    assert limits(few) == SIGNED


def test_a_rank_correlation_is_spearmans_with_the_quantiles_of_all_resamples():
    """Five draws of four pairs, 5,000 of their 3,125 resamples."""
    draws = np.random.default_rng(2).integers(0, 9, (5, 4, 2)).astype(float)
    estimate = intervals.correlation_estimate(draws.tolist(), resamples=5000)
    resamples = itertools.product(range(5), repeat=5)
    values = [stats.spearmanr(*draws[list(chosen)].reshape(-1, 2).T)[0] for chosen in resamples]
    expected = np.quantile(values, [0.025, 0.975])
    assert estimate.value == pytest.approx(stats.spearmanr(*draws.reshape(-1, 2).T)[0])
    assert (estimate.n, tuple(expected)) == (5, limits(estimate))


def test_a_column_that_does_not_vary_has_no_rank_correlation():
    estimate = intervals.correlation_estimate([[(1, 0), (1, 2)], [(1, 3)]])
    assert math.isnan(estimate.value) and estimate.low is None
