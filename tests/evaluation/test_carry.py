"""A threshold carried over to another model keeps what it says it keeps."""

import re

import numpy as np
import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs
from wordsens.evaluation.carry import (
    OLD,
    SAME_FALSE_HITS,
    SAME_RECALL,
    SETTINGS,
    UNCHANGED,
    CarriedThreshold,
    Setting,
    matched_threshold,
)
from wordsens.models.pairs import FunctionPairModel
from wordsens.results import Estimate

PAIRS = few_pairs(opposites=30)
THRESHOLD = 0.8


def carried(**options):
    return ws.carry_threshold(bag_of_words, deaf_to_negations, THRESHOLD, PAIRS, **options)


def test_every_share_is_that_of_the_models_similarities():
    found = carried()
    scored = ws.score_pairs([bag_of_words, deaf_to_negations], PAIRS)
    for name in SETTINGS:
        setting, model = found[name], 0 if name == OLD else 1
        passing = scored.similarities[model] >= setting.threshold.value
        assert setting.recall.value == passing[scored.near].mean()
        assert setting.false_hits.value == passing[scored.opposite].mean()
    assert found[OLD].threshold.value == found[UNCHANGED].threshold.value == THRESHOLD


def test_the_sentence_has_the_shares_of_the_old_number():
    shares = zip(SETTINGS, (0.9, 0.7, 0.8, 0.6), (0.1, 0.3, 0.2, 0.4), strict=True)
    settings = [
        Setting(
            name=name, threshold=Estimate(0.5), recall=Estimate(one), false_hits=Estimate(other)
        )
        for name, one, other in shares
    ]
    found = CarriedThreshold(
        old="a", new="b", identities=(), settings=tuple(settings), changes=(), notes=()
    )
    sentence, _ = found.view().parts
    assert [float(share) for share in re.findall(r"([\d.]+)\s%", sentence)] == [70, 30]


def test_the_new_thresholds_keep_recall_and_false_hits():
    """The models differ, so that the old number keeps neither."""
    found = carried()
    assert found[UNCHANGED].false_hits.value != found[OLD].false_hits.value
    scored = ws.score_pairs([bag_of_words, deaf_to_negations], PAIRS)
    for name, field, members in (
        (SAME_RECALL, "recall", scored.near),
        (SAME_FALSE_HITS, "false_hits", scored.opposite),
    ):
        scores = scored.similarities[1][members]
        lowest = scores[scores >= found[name].threshold.value].min()
        more = getattr(found[name], field).value - getattr(found[OLD], field).value
        assert 0 <= more < (scores == lowest).mean()
    for name in (SAME_RECALL, SAME_FALSE_HITS):
        threshold = found[name].threshold
        assert threshold.low <= threshold.value <= threshold.high


def test_without_a_change_of_the_model_the_shares_are_those_of_before():
    found = ws.carry_threshold(bag_of_words, bag_of_words, THRESHOLD, PAIRS)
    assert found[SAME_RECALL].recall == found[UNCHANGED].recall == found[OLD].recall
    hits = found[SAME_FALSE_HITS].false_hits
    assert hits == found[UNCHANGED].false_hits == found[OLD].false_hits


def test_the_interval_covers_the_threshold_that_keeps_the_recall_in_truth():
    """Old scores are normal, new ones the same with noise, on another scale: with the old threshold
    at the 10 % quantile the new one is at the 10 % quantile too. Of 200 samples of 200 pairs 95 %
    are covered; under 88 % has a chance of 1e-4 at a coverage of 95 %, seeds 0 to 199."""
    from scipy.stats import norm

    quantile, noise = norm.ppf(0.1), 0.5
    truth = 3 + 2 * quantile * np.sqrt(1 + noise**2)
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        old = random.normal(size=200)
        new = 3 + 2 * (old + noise * random.normal(size=200))
        found = matched_threshold(quantile, old, new, seed=seed)
        covered += found.low <= truth <= found.high
    assert covered >= 176


def test_scores_of_pairs_may_have_any_threshold_and_cosines_may_not():
    scorer = FunctionPairModel(
        lambda first, second: [float(len(text)) for text in first], name="length"
    )
    assert ws.carry_threshold(scorer, bag_of_words, 40, PAIRS)[SAME_RECALL].threshold.value <= 1
    with pytest.raises(ws.InputError, match=r"`threshold` \(=40\) must be a cosine"):
        ws.carry_threshold(bag_of_words, scorer, 40, PAIRS)


def test_the_first_line_says_which_near_duplicates_stand_in():
    opposites = [pair for pair in PAIRS if not pair.same]
    found = ws.carry_threshold(bag_of_words, bag_of_words, THRESHOLD, opposites)
    assert "stand in" in found.headline
    assert (carried().notes, bool(ws.carry_threshold(bag_of_words, bag_of_words, 0.8).notes)) == (
        (),
        True,
    )


def test_the_draws_keep_the_two_scores_of_a_pair_together():
    """New scores are the old ones on another scale, so that in every draw the pairs at or above the
    old threshold are those at or above its image."""
    random = np.random.default_rng(0)
    old = random.normal(size=60)
    found = matched_threshold(0.3, old, 3 + 2 * old)
    assert found.low >= 3 + 2 * 0.3
    assert round(found.value, 4) == found.value
    assert (3 + 2 * old >= found.value).sum() == (old >= 0.3).sum()


def test_without_a_pair_that_passes_the_threshold_is_above_all():
    old, new = np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.9])
    assert 0.9 < matched_threshold(0.8, old, new).value <= 0.9 + 1e-4 + 1e-12
    assert matched_threshold(0.0, old, new).value <= 0.4


def test_few_near_duplicates_are_named_in_a_note():
    few = [pair for pair in PAIRS if not pair.near] + [pair for pair in PAIRS if pair.near][:5]
    assert len(ws.carry_threshold(bag_of_words, bag_of_words, 0.8, few).notes) == 1
