"""The test of a drop: against every pattern of signs, and its false alarms and power over 200
simulated models."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from wordsens.statistics.auc import auc
from wordsens.statistics.paired import TOGETHER, paired_drops

MODELS = 200
OPPOSITES, PARAPHRASES = 75, 133
AREAS = (0.9, 0.5, 0.3, 0.1, 0.01, 0.002, 0.0)
"""Of the seven kinds before: from good to the floor where real models are."""


def two_models(random, size, before, after, correlation):
    """One model's numbers and another's, of that correlation and of other scales."""
    common, own, other = random.normal(size=(3, size))
    strong, weak = np.sqrt(correlation), np.sqrt(1 - correlation)
    return before + strong * common + weak * own, 3 * (after + strong * common + weak * other) + 7


def simulated(areas_before, areas_after, correlation=0.9):
    """For every one of MODELS pairs of models whether each kind is found to have dropped at the
    level .05."""
    shifts = [
        -np.sqrt(2) * norm.ppf(np.maximum(areas, 1e-9)) for areas in (areas_before, areas_after)
    ]
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


def test_a_drop_of_a_tenth_in_every_kind_is_caught_also_between_models_that_are_not_much_alike():
    """At a correlation of .6, where one kind alone is caught in little more than half: by all kinds
    together."""
    found = simulated((0.5,) * 7, (0.4,) * 7, correlation=0.6)
    assert found[:, -1].mean() >= 0.8


def test_together_is_the_area_of_all_and_its_p_value_counts_every_sign_once():
    random = np.random.default_rng(7)
    second = tuple(random.normal(0.5, 1, (2, 5)))
    kinds = {
        "a": tuple(random.normal(0, 1, (2, 4))),
        "b": tuple(random.normal([[0], [1]], 1, (2, 3))),
    }
    found = paired_drops(kinds, second, seed=0, draws=40_000)
    whole = [np.concatenate([kind[side] for kind in kinds.values()]) for side in (0, 1)]
    assert (found[TOGETHER].before, found[TOGETHER].after) == (
        auc(whole[0], second[0]),
        auc(whole[1], second[1]),
    )
    # All 2^12 patterns of signs: of every opposite, and of every paraphrase, which all areas share.
    patterns = np.array(list(product([-1, 1], repeat=12)))
    flipped, falls = [], []
    for members in (slice(0, 4), slice(4, 7), slice(0, 7)):
        change = (whole[1][members, None] < second[1]) * 1.0 - (
            whole[0][members, None] < second[0]
        ) * 1.0
        own, common = change.mean(axis=1) / len(change), change.mean(axis=0) / 5
        error = np.sqrt((own**2).sum() + (common**2).sum())
        flipped.append(-(patterns[:, members] @ own + patterns[:, 7:] @ common) / error)
        falls.append(-change.mean() / error)
    expected = [np.mean(np.max(flipped, axis=0) >= fall - 1e-12) for fall in falls]
    assert [drop.p for drop in found.values()] == pytest.approx(expected, abs=0.01)


def test_on_the_floor_nothing_can_drop():
    floor = (np.full(9, 5.0), np.full(9, 6.0))
    drops = paired_drops({"a": floor}, (np.zeros(7), np.ones(7)), seed=0, draws=99)
    assert (drops["a"].before, drops["a"].after, drops["a"].p) == (0, 0, 1)
