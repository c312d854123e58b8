"""The gate against an earlier check: equal models pass, worse ones fail, and a wrong file is told."""

import re

import pytest
from tests.evaluation.stand_ins import Oracle, bag_of_words, deaf_to_negations, few_pairs

import wordsens as ws

PAIRS = few_pairs()


@pytest.fixture
def baseline(tmp_path):
    """The file of a bag of words."""
    ws.check(bag_of_words, PAIRS).save_baseline(tmp_path / "baseline.json")
    return tmp_path / "baseline.json"


def test_the_same_model_passes_ten_times_of_ten(baseline):
    for seed in range(10):
        result = ws.check(bag_of_words, PAIRS, baseline=baseline, seed=seed)
        assert result.passed
        assert {drop.p for drop in result.drops.values()} == {1.0}


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
    assert result.drops["antonym"].p > 0.9


def test_a_model_on_the_floor_cannot_fall_further(baseline):
    """The deaf bag of words is worse in truth, but both areas are near 0: no AUC is left to lose."""
    before = ws.check(bag_of_words, PAIRS).kinds["negation"].auc
    assert before < 0.05
    assert ws.check(deaf_to_negations, PAIRS, baseline=baseline).passed


def test_only_common_pairs_are_compared(baseline):
    more = [*PAIRS[3:], ("other", "it is on", "it is off", False)]
    result = ws.check(bag_of_words, more, baseline=baseline)
    assert set(result.drops) == {"negation", "antonym", "all together"}
    assert "other: none of its pairs is in the baseline" in result.notes
    assert any(note.startswith("1 of ") and "left out of the comparison" in note for note in result.notes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no baseline (JSONDecodeError"),
        ("[]", "is no baseline (TypeError"),
        ('{"format": 2}', "is no baseline (ValueError: its format is 2, not 1)"),
        ('{"format": 1, "model": "m", "identity": "i", "similarities": {"a": NaN}}', "not a finite number"),
        (
            '{"format": 1, "model": "m", "identity": "i", "similarities": {"a": 1}}',
            "`baseline` has no pairs in common with this check",
        ),
    ],
)
def test_a_wrong_file_is_told(tmp_path, content, message):
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(ws.InputError, match=re.escape(message)):
        ws.check(bag_of_words, PAIRS, baseline=tmp_path / "b.json")
