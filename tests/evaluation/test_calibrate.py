"""Calibrations of models whose false hits are known, with the guard and without."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta, norm

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, deaf_to_negations, few_pairs
from wordsens.evaluation.calibrate import operating_point
from wordsens.findings.calibrate import in_distance
from wordsens.intervals import share_at_most
from wordsens.models.pairs import FunctionPairModel

PAIRS = few_pairs(opposites=40)


def test_a_model_that_knows_the_pairs_keeps_all_near_duplicates_without_a_hit():
    result = ws.calibrate(Oracle(PAIRS), PAIRS, 0.05)
    assert (result.point.recall.value, result.point.hits) == (1, 0)
    assert result.answer[0].startswith("With the threshold ")
    assert result.distances == pytest.approx(
        {"l2": 2 - 2 * result.threshold, "cosine": 1 - result.threshold}
    )


def test_hits_by_kind_are_those_that_reach_the_threshold():
    result = ws.calibrate(bag_of_words, PAIRS, 0.5)
    pairs = result.scored.pairs
    reach = [
        pair.kind
        for pair, value in zip(pairs, result.scored.values, strict=True)
        if value >= result.threshold
    ]
    assert result.point.hits > 0
    assert {row["kind"]: row["hits"] for row in result.kinds} == {
        kind: reach.count(kind) for kind in ("negation", "antonym")
    }
    assert sum(row["hits"] for row in result.kinds) == result.point.hits


def test_words_in_another_order_leave_a_bag_of_words_without_a_threshold():
    result = ws.calibrate(bag_of_words, few_pairs(kinds=("role",), opposites=60), 0.1)
    assert (result.threshold, result.kinds, result.distances) == (None, [], None)
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
        [ws.guard(pair.first, pair.second).verdict != "different" for pair in guarded.scored.pairs]
    )
    passing = judged & (guarded.scored.values >= guarded.threshold)
    assert guarded.point.hits == (passing & guarded.scored.opposite).sum()
    assert guarded.point.recall.value == passing[guarded.scored.near].mean()
    assert f"; with the guard {guarded.answer[0].split()[3]} does and keeps" in alone.answer[0]


def test_too_few_pairs_say_how_many_it_takes():
    result = ws.calibrate(Oracle(PAIRS), PAIRS, 0.01)
    assert (result.threshold, result.needed) == (None, 299)
    assert all(count in result.answer[0] for count in ("80 opposites", "299", "3.68 %"))


@pytest.mark.parametrize("distance", [0.1, 0.34, 0.5, 1.3])
def test_the_root_of_a_distance_lets_no_further_pair_in(distance):
    said = in_distance(SimpleNamespace(distances={"l2": distance}), "l2")
    square, root = map(float, re.findall(r"(?<!\w)\d*\.\d+", said))
    assert square == distance
    assert root**2 <= distance < (root + 2e-6) ** 2


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


def failures(opposites: np.ndarray, shift: float = 0.0, budget: float = 0.05) -> float:
    """The share of samples of standard Gaussian scores, one per row, whose threshold lets more than
    the budget through, where service draws scores that are higher by the shift."""
    count = opposites.shape[1]
    allowed = max(
        hits for hits in range(count) if hits == 0 or share_at_most(hits, count) <= budget
    )
    # At this score one more than allowed would pass: the lowest threshold lies right above it.
    thresholds = np.sort(opposites, axis=1)[:, count - 1 - allowed]
    return float(np.mean(norm.sf(thresholds - shift) > budget))


def test_the_promise_holds_for_independent_pairs_and_breaks_as_the_page_says():
    """4,000 samples of 300 opposites: a share of 3.4 % has a standard error of .3 %, of 28 % one of
    .7 %. The bounds are more than four of them away from what docs/how-to/threshold.md says."""
    random = np.random.default_rng(0)
    independent = random.normal(size=(4000, 300))
    assert failures(independent) < 0.05
    for size, share in ((3, 0.12), (5, 0.18), (10, 0.28)):
        common = np.repeat(random.normal(size=(4000, 300 // size)), size, axis=1)
        clusters = np.sqrt(0.9) * common + np.sqrt(0.1) * random.normal(size=(4000, 300))
        assert abs(failures(clusters) - share) < 0.03
    for shift, share in ((0.1, 0.14), (0.25, 0.49), (0.5, 0.95)):
        assert abs(failures(independent, shift) - share) < 0.03


def test_the_threshold_is_right_above_the_score_that_the_simulation_takes():
    random = np.random.default_rng(1)
    opposites, near = random.normal(size=300), random.normal(2, 1, size=300)
    point = operating_point(opposites, near, 0.05)
    excluded = np.sort(opposites)[300 - 1 - point.hits]
    assert point.threshold > excluded
    assert not ((near > excluded) & (near < point.threshold)).any()
    assert share_at_most(point.hits, 300) <= 0.05 < share_at_most(point.hits + 1, 300)


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
        return None, None
    return sum(unwanted >= threshold), np.mean(wanted >= threshold)


@pytest.mark.parametrize("budget", [0.01, 0.05, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("steps", [3, 30, 10_000])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_threshold_is_what_a_search_finds(steps, budget, confidence):
    """With ties by the dozen, some, and hardly any."""
    random = np.random.default_rng(steps)
    unwanted = random.integers(0, steps, 60) / steps
    wanted = random.integers(steps // 4, steps + 2, 40) / steps
    point = operating_point(unwanted, wanted, budget, confidence=confidence)
    recall = point.recall and point.recall.value
    assert (point.hits, recall) == by_search(unwanted, wanted, budget, confidence)
    if point.threshold is not None:
        assert point.hits == sum(unwanted >= point.threshold)
        assert recall == np.mean(wanted >= point.threshold)
        assert point.limit <= budget
        assert point.recall.low <= recall <= point.recall.high


def test_no_threshold_separates_equal_scores_and_minus_infinity_never_passes():
    assert operating_point(np.full(400, 0.9), np.linspace(0, 0.9, 90), 0.05).threshold is None
    assert operating_point(np.full(400, -np.inf), np.array([0.2, -np.inf]), 0.05).threshold == 0.2


@pytest.mark.parametrize(("budget", "needed"), [(0.01, 299), (0.02, 149), (0.1, 29)])
def test_a_threshold_needs_the_least_count_of_pairs_of_which_none_passes(budget, needed):
    few, enough = (
        operating_point(np.zeros(count), np.ones(5), budget) for count in (needed - 1, needed)
    )
    assert (few.threshold, enough.threshold) == (None, 1.0)


def test_each_curve_is_the_recall_that_its_name_says():
    result = ws.calibrate(deaf_to_negations, PAIRS, 0.2)
    series = result.plot().axes[0].containers
    curves = {bars.get_label(): bars.lines[0].get_data() for bars in series}
    drawn = {}
    for guard, name in ((False, "threshold alone"), (True, "threshold and guard")):
        limits, recall = (values[::40] for values in curves[name])
        drawn[guard] = recall.tolist()
        points = [result.point_at(float(limit), guard=guard) for limit in limits]
        assert drawn[guard] == [point.recall.value if point.recall else 0.0 for point in points]
    assert drawn[False] != drawn[True]


def test_the_sentence_and_the_chart_have_the_interval_the_right_way_round():
    result = ws.calibrate(bag_of_words, few_pairs(), 0.6)
    recall = result.point.recall
    low, high = (f"{100 * end:.0f}" for end in (recall.low, recall.high))
    assert f"[{low}, {high}]" in result.headline
    kept = result.view().chart.columns["kept"]
    assert all(share.low <= share.value <= share.high for share in kept)


def test_limits_by_kind_are_of_the_confidence_and_their_hits_add_up_behind_the_guard():
    result = ws.calibrate(deaf_to_negations, PAIRS, 0.3, guard=True, confidence=0.8)
    assert sum(row["hits"] for row in result.kinds) == result.point.hits
    for row in result.kinds:
        assert row["limit"] == share_at_most(row["hits"], row["pairs"], 0.8)
    refused = result.scored.different & result.scored.opposite
    assert (refused & (result.scored.values >= result.threshold)).any()
