"""The test of a drop: against every pattern of signs, and its false alarms and power over 200 simulated models."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from wordsens.statistics.auc import auc
from wordsens.statistics.paired_drop import paired_drops

MODELS = 200
OPPOSITES, PARAPHRASES = 66, 124
AREAS = (0.9, 0.5, 0.3, 0.1, 0.01, 0.002, 0.0)
"""Of the seven kinds before: from good to the floor where real models are."""


def two_models(random, size, before, after, correlation):
    """One model's numbers and another's, of that correlation and of other scales."""
    common, own, other = random.normal(size=(3, size))
    strong, weak = np.sqrt(correlation), np.sqrt(1 - correlation)
    return before + strong * common + weak * own, 3 * (after + strong * common + weak * other) + 7


def simulated(areas_before, areas_after, correlation=0.9):
    """For every one of MODELS pairs of models whether each kind is found to have dropped at the level .05."""
    shifts = [-np.sqrt(2) * norm.ppf(np.maximum(areas, 1e-9)) for areas in (areas_before, areas_after)]
    found = []
    for draw in range(MODELS):
        random = np.random.default_rng(draw)
        second = two_models(random, PARAPHRASES, 0, 0, correlation)
        firsts = {
            str(at): two_models(random, OPPOSITES, before, after, correlation)
            for at, (before, after) in enumerate(zip(*shifts, strict=True))
        }
        drops = paired_drops(firsts, second, seed=draw, draws=399)
        found.append([drop.p <= 0.05 for drop in drops.values()])
    return np.array(found)


def test_without_a_difference_it_cries_wolf_in_at_most_5_percent():
    """Any of seven kinds counts; 5 % of 200 are 10, whose 95 % interval is 2.4 to 9.0 %."""
    alarms = int(simulated(AREAS, AREAS).any(axis=1).sum())
    assert alarms <= 10
    assert binomtest(alarms, MODELS).proportion_ci().high < 0.091


@pytest.mark.parametrize("before", [0.9, 0.5, 0.12])
def test_a_drop_of_a_tenth_in_one_kind_is_caught_in_at_least_80_percent(before):
    """With six other kinds unchanged, and a correlation of .9 between the two models' numbers."""
    found = simulated((before, *AREAS[1:]), (before - 0.1, *AREAS[1:]))
    assert found[:, 0].mean() >= 0.8


def test_the_p_value_is_the_share_of_sign_patterns_with_so_large_a_drop():
    random = np.random.default_rng(5)
    before, after = random.normal(0, 1, (2, 6))
    after += 1
    second_before, second_after = random.normal(1, 1, (2, 5))
    found = paired_drops({"a": (before, after)}, (second_before, second_after), seed=0, draws=40_000)["a"]
    # By the definition: the mean over all comparisons, each member's share in its change, all 2^11 patterns.
    change = (after[:, None] < second_after) * 1.0 - (before[:, None] < second_before) * 1.0
    shares = np.concatenate([change.mean(axis=1) / 6, change.mean(axis=0) / 5])
    patterns = np.array(list(product([-1, 1], repeat=11)))
    # A change of the area is the sum of the first sample's shares, and of the second's.
    fall = -change.mean()
    expected = np.mean(-(patterns @ shares) >= fall - 1e-12)
    assert (found.before, found.after) == (auc(before, second_before), auc(after, second_after))
    assert found.p == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 40_000))


def test_several_kinds_share_one_level():
    random = np.random.default_rng(1)
    second = tuple(random.normal(0, 1, (2, 80)))
    kinds = {str(at): tuple(random.normal(0, 1, (2, 40))) for at in range(8)}
    together = paired_drops(kinds, second, seed=0, draws=999)
    for name, kind in kinds.items():
        assert together[name].p >= paired_drops({name: kind}, second, seed=0, draws=999)[name].p - 0.05


def test_the_same_numbers_on_any_increasing_scale_are_no_drop():
    random = np.random.default_rng(2)
    first, second = random.normal(0, 1, 30), random.normal(0, 1, 40)
    drops = paired_drops({"a": (first, np.exp(first))}, (second, np.exp(second)), seed=0, draws=99)
    assert drops["a"].p == 1


def test_on_the_floor_nothing_can_drop():
    floor = (np.full(9, 5.0), np.full(9, 6.0))
    drops = paired_drops({"a": floor}, (np.zeros(7), np.ones(7)), seed=0, draws=99)
    assert (drops["a"].before, drops["a"].after, drops["a"].p) == (0, 0, 1)


def test_a_rise_is_no_drop():
    random = np.random.default_rng(3)
    first, second = random.normal(0, 1, 60), random.normal(0, 1, 60)
    drops = paired_drops({"a": (first, first - 2)}, (second, second), seed=0, draws=999)
    assert drops["a"].after > drops["a"].before
    assert drops["a"].p > 0.9
