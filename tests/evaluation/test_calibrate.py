"""Calibrations of models whose false hits are known, with the guard and without."""

import numpy as np
import pytest

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, deaf_to_negations, few_pairs
from wordsens.models.pairs import FunctionPairModel

PAIRS = few_pairs(opposites=40)


def test_a_model_that_knows_the_pairs_keeps_all_near_duplicates_without_a_hit():
    result = ws.calibrate(Oracle(PAIRS), PAIRS, 0.05)
    assert (
        result.point.recall,
        result.point.hits,
        result.answer[0].startswith("With the threshold "),
    ) == (1, 0, True)
    assert result.distances == pytest.approx(
        {"l2": 2 - 2 * result.threshold, "cosine": 1 - result.threshold}
    )


def test_hits_by_kind_are_those_that_reach_the_threshold():
    result = ws.calibrate(bag_of_words, PAIRS, 0.5)
    pairs = result.measured.pairs
    reach = [
        pair.kind
        for pair, value in zip(pairs, result.measured.values, strict=True)
        if value >= result.threshold
    ]
    assert result.point.hits > 0
    assert {row.kind: row.hits for row in result.kinds} == {
        kind: reach.count(kind) for kind in ("negation", "antonym")
    }
    assert sum(row.hits for row in result.kinds) == result.point.hits


def test_words_in_another_order_leave_a_bag_of_words_without_a_threshold():
    result = ws.calibrate(bag_of_words, few_pairs(kinds=("role",), opposites=60), 0.1)
    assert (result.threshold, result.kinds, result.distances) == (None, (), None)
    assert result.answer[0].startswith("No threshold of bag_of_words keeps false hits under 10 %")


def test_what_the_guard_calls_different_does_not_pass():
    alone, guarded = (
        ws.calibrate(deaf_to_negations, PAIRS, 0.2, guard=guard) for guard in (False, True)
    )
    assert alone.threshold is None
    assert (alone.point_at(0.2, guard=True), alone.point) == (
        guarded.point,
        guarded.point_at(0.2, guard=False),
    )
    judged = np.array(
        [
            ws.guard(pair.first, pair.second).verdict != "different"
            for pair in guarded.measured.pairs
        ]
    )
    passing = judged & (guarded.measured.values >= guarded.threshold)
    assert guarded.point.hits == (passing & guarded.measured.opposite).sum()
    assert guarded.point.recall == passing[guarded.measured.near].mean()
    assert f"; with the guard {guarded.answer[0].split()[3]} does and keeps" in alone.answer[0]


def test_too_few_pairs_say_how_many_it_takes():
    result = ws.calibrate(Oracle(PAIRS), PAIRS, 0.01)
    assert (result.threshold, result.needed) == (None, 299)
    assert (
        "80 opposites are too few; at 95 % confidence it takes 299 of which none passes"
        in result.answer[0]
    )


def test_scores_of_pairs_are_no_distances():
    scorer = FunctionPairModel(
        lambda first, second: [float(len(text)) for text in first], name="length"
    )
    result = ws.calibrate(scorer, PAIRS, 0.9)
    assert result.threshold > 1
    assert result.distances is None


@pytest.mark.parametrize(
    ("budget", "confidence"), [(0, 0.95), (2, 0.95), (0.02, 1), (True, 0.95), (0.02, "high")]
)
def test_a_budget_and_a_confidence_are_shares(budget, confidence):
    with pytest.raises(ws.InputError, match="must be a share above 0 and below 1"):
        ws.calibrate(bag_of_words, PAIRS, budget, confidence=confidence)
