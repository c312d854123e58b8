"""The gate against an earlier check: equal models pass, worse ones fail, a vacuous one and a wrong
file are refused."""

import json
import re
import zlib

import numpy as np
import pytest

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, few_pairs
from wordsens.evaluation.requirement import pair_key

PAIRS = few_pairs()


def halfway(texts):
    """Counts of words beside the oracle's vectors: opposites and near-duplicates overlap."""
    return np.hstack([bag_of_words(texts), 2 * Oracle(PAIRS).encode(texts)])


@pytest.fixture
def baseline(tmp_path):
    ws.check(halfway, PAIRS).save_baseline(tmp_path / "baseline.json")
    return tmp_path / "baseline.json"


def test_the_same_model_passes_ten_times_of_ten(baseline):
    for seed in range(10):
        result = ws.check(halfway, PAIRS, baseline=baseline, seed=seed)
        assert result.passed
        assert {drop["p"] for drop in result.drops.values()} == {1.0}


def test_a_bag_of_words_in_its_place_fails(baseline):
    for seed in range(10):
        assert not ws.check(bag_of_words, PAIRS, baseline=baseline, seed=seed).passed


def test_noise_in_its_place_fails(baseline):
    """What it makes of near-duplicates says nothing of whether the baseline was vacuous."""

    def noise(texts):
        seeds = [zlib.crc32(text.encode()) for text in texts]
        return np.array([np.random.default_rng(seed).standard_normal(64) for seed in seeds])

    assert not ws.check(noise, PAIRS, baseline=baseline).passed


def test_a_model_that_became_worse_fails_in_the_kind_that_did(tmp_path):
    ws.check(Oracle(PAIRS), PAIRS).save_baseline(tmp_path / "b.json")
    oracle = Oracle(PAIRS)

    def worse(texts):
        forget = {pair.second: pair.first for pair in PAIRS if pair.kind == "negation"}
        return oracle.encode([forget.get(text, text) for text in texts])

    result = ws.check(worse, PAIRS, baseline=tmp_path / "b.json")
    assert not result.passed
    (failure,) = result.failures
    assert failure.startswith("negation.auc has dropped from 1.0000 to 0.")
    assert result.drops["antonym"]["p"] > 0.9
    assert {row["kind"] for row in result.failing_pairs()} == {"negation"}


def test_a_baseline_at_the_floor_is_refused_when_saved_and_when_read(tmp_path):
    def floor(texts):
        """Opposites have one vector, near-duplicates different ones."""
        alike = {pair.second: pair.first for pair in PAIRS if not pair.same}
        return bag_of_words([alike.get(text, text) for text in texts])

    with pytest.raises(
        ws.InputError, match="`baseline` is vacuous: the AUC of negation, antonym is at the floor"
    ):
        ws.check(floor, PAIRS).save_baseline(tmp_path / "b.json")
    scored = ws.check(floor, PAIRS).scored
    keys = map(pair_key, scored.pairs)
    document = {"format": 1, "similarities": dict(zip(keys, scored.values.tolist(), strict=True))}
    (tmp_path / "b.json").write_text(json.dumps(document))
    with pytest.raises(ws.InputError, match="the gate would pass whatever replaces this model"):
        ws.check(bag_of_words, PAIRS, baseline=tmp_path / "b.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no baseline (JSONDecodeError"),
        ("[]", "is no baseline (TypeError"),
        ('{"format": 2}', "is no baseline (ValueError: its format is 2, not 1)"),
        (
            '{"format": 1, "model": "m", "identity": "i", "similarities": {"a": NaN}}',
            "not a finite number",
        ),
        (
            '{"format": 1, "model": "m", "identity": "i", "similarities": {"a": 1}}',
            "`baseline` has no opposites or no near-duplicates in common",
        ),
    ],
)
def test_a_wrong_file_is_reported(tmp_path, content, message):
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(ws.InputError, match=re.escape(message)):
        ws.check(bag_of_words, PAIRS, baseline=tmp_path / "b.json")
