"""What a check finds of models that are blind in a known way, and of one that is not."""

import json

import numpy as np
import pytest
from tests.evaluation.stand_ins import Oracle, bag_of_words, deaf_to_negations, few_pairs

import wordsens as ws
from wordsens.evaluation.check import CheckOptions, choose_pairs, evaluate
from wordsens.models.load import as_model
from wordsens.models.pairs import FunctionPairModel

PAIRS = few_pairs()


def by_numpy(encode, kind, pairs):
    """The AUC by the definition, from nothing but the pairs and the function."""
    cosines = {True: [], False: []}
    for pair in pairs:
        if pair.kind in (kind, "paraphrase"):
            first, second = np.asarray(encode([pair.first, pair.second]), float)
            cosines[pair.same].append(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    opposite, same = np.array(cosines[False])[:, None], np.array(cosines[True])
    return np.mean((opposite < same) + 0.5 * (opposite == same))


def test_the_auc_is_the_one_of_ten_lines_of_numpy():
    result = ws.check(bag_of_words, PAIRS)
    assert result.kinds.names == ("negation", "antonym")
    for row in result.kinds:
        assert row.auc == pytest.approx(by_numpy(bag_of_words, row.kind, PAIRS), abs=1e-6)
        assert row.auc_low <= row.auc <= row.auc_high


def test_a_bag_of_words_cannot_tell_roles():
    result = ws.check(bag_of_words, kinds=["role"], requirements=["role.auc >= .5"])
    (row,) = result.kinds
    assert (row.auc, row.threshold, row.recall, row.indistinct) == (0, None, None, row.pairs)
    assert row.median_opposite == pytest.approx(1, abs=1e-12)
    assert not result.passed
    assert repr(result) == "<Check of bag_of_words, failed: role.auc 0.000>"
    assert str(result).splitlines()[-1] == f"FAILED: {result.failures[0]}"
    assert result.failures == (f"role.auc is 0 (95 % interval 0.000 to {row.auc_high:.3f}), required >= 0.5",)
    assert any("role pairs have the very same vector for both texts" in note for note in result.notes)


def test_a_model_that_deletes_negations_fails_negation():
    result = ws.check(deaf_to_negations, kinds=["negation"], requirements=["negation.auc >= .5"])
    (row,) = result.kinds
    assert not result.passed
    assert row.indistinct > 20 > ws.check(bag_of_words, kinds=["negation"]).kinds["negation"].indistinct


def test_a_model_that_sees_meaning_passes():
    result = ws.check(Oracle(PAIRS), PAIRS, requirements=["all.auc >= .99", "negation.recall >= .9"])
    row = result.kinds["antonym"]
    assert (result.passed, result.failures, row.auc, row.recall) == (True, (), 1, 1)
    assert row.threshold == pytest.approx(1)
    assert result.answer[0].startswith("Oracle sees flipped meanings")
    # Twelve pairs without a false hit show a rate under 1 - .05^(1/12), and no better.
    assert row.false_hits_at_most == pytest.approx(1 - 0.05 ** (1 / 12), abs=1e-9)
    assert any("12 pairs show at most 22.1% of false hits; 0.01 takes 299 pairs" in note for note in result.notes)


def test_the_same_seed_gives_the_same_numbers_and_another_other_intervals():
    first, again, other = (ws.check(bag_of_words, PAIRS, seed=seed).to_dict() for seed in (0, 0, 1))
    assert first == again
    assert first["kinds"][0]["auc"] == other["kinds"][0]["auc"]
    assert first["kinds"][0]["auc_high"] != other["kinds"][0]["auc_high"]


def test_the_document_is_json_with_the_fixed_keys():
    document = json.loads(json.dumps(ws.check(bag_of_words, PAIRS).to_dict(), allow_nan=False))
    fixed = [
        "kind", "pairs", "auc", "auc_low", "auc_high", "median_opposite", "median_same", "threshold", "recall",
    ]  # fmt: skip
    assert list(document["kinds"][0])[:9] == fixed
    assert document["passed"] is True
    assert document["failures"] == []


def test_the_users_own_threshold():
    result = ws.check(bag_of_words, PAIRS, budget=ws.Cutoff(threshold=0.6), requirements=["all.false_hits <= .1"])
    values, members = result.measured.values, result.measured.opposites["negation"]
    row = result.kinds["negation"]
    assert row.false_hits == np.mean(values[members] >= 0.6) > 0.1
    assert row.hits == np.mean(values[result.measured.paraphrases] >= 0.6)
    served = sum(int((values[each] >= 0.6).sum()) for each in result.measured.opposites.values())
    assert f"At your threshold 0.6, {served} of 24 opposites would be served" in result.answer[-1]
    assert "The worst: " in result.answer[-1]
    assert len(result.failures) == 2


def test_every_kind_is_judged_on_its_own_numbers():
    """A model that sees one kind and not the other says so."""
    pairs, notes = choose_pairs(PAIRS, None)
    high = {"negation": 0.0, "antonym": 1.0}
    values = np.array([high.get(pair.kind, 0.5) for pair in pairs]) + 1e-3 * np.arange(len(pairs)) / len(pairs)

    it = as_model(bag_of_words)
    it.name = "it"
    result = evaluate(it, pairs, values, CheckOptions(), notes)
    assert [row.auc for row in result.kinds] == [1, 0]
    assert result.answer[0].startswith("it sees negation pairs; does not see antonym pairs")
    assert "for negation (from 0.50" in result.answer[-1]
    assert "none for the other 1" in result.answer[-1]


def test_a_model_that_scores_pairs_is_judged_by_its_scores():
    def shared_words(first, second):
        return [5.0 + len(set(one.split()) & set(two.split())) for one, two in zip(first, second, strict=True)]

    scorer = FunctionPairModel(shared_words, name="shared words")
    result = ws.check(scorer, PAIRS)
    values = np.array(shared_words([pair.first for pair in PAIRS], [pair.second for pair in PAIRS]))
    assert np.array_equal(result.measured.values, values)
    # A score of 1 and more is no cosine of equal vectors.
    assert {row.indistinct for row in result.kinds} == {0}
    assert result.kinds["antonym"].auc < 0.1
