"""Rates, and the theorems' conditions in words."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError


def by_name(phi, rows):
    return {condition.name: condition for condition in ws.theory.check_conditions(phi, rows)}


def test_rows_that_are_not_rescaled_are_found():
    rows = ws.gaussian_text(4, 9, seed=0).rows
    assert by_name(ws.RandomFeatures(4, 9), rows)["rows of length sqrt(d)"].holds is True
    assert by_name(ws.RandomFeatures(4, 9), 1.1 * rows)["rows of length sqrt(d)"].holds is False


def test_unknown_constants_stay_open():
    found = by_name(ws.DeepRandomFeatures(4, 9, 3), ws.gaussian_text(4, 9, seed=0).rows)
    assert found["width"].holds is None
    assert "not known to us" in found["width"].detail
    assert "L = 3" in found["fixed depth"].detail
    assert found["Lipschitz activation"].holds is True


@pytest.mark.parametrize(("score", "holds"), [("softmax", True), ("relu", False)])
def test_only_softmax_meets_theorem_three(score, holds):
    found = by_name(ws.RandomAttentionFeatures(9, score), ws.gaussian_text(4, 9, seed=0).rows)
    assert found["softmax scores"].holds is holds
    assert "d / n = 2.25" in found["d large compared with n"].detail


def test_a_map_that_no_theorem_speaks_of_says_so():
    (only,) = ws.theory.check_conditions(ws.FunctionFeatures(lambda X: X), torch.ones(3, 2, dtype=torch.float64))
    assert only.holds is False


def test_rates_are_the_theorems():
    assert ws.theory.rate("rf").exponent == ws.theory.rate("drf").exponent == -0.5
    assert ws.theory.rate("raf").direction == "at least"
    with pytest.raises(InputError, match="did you mean"):
        ws.theory.rate("raff")


def test_random_features_get_the_finite_width_prediction():
    rows = ws.gaussian_text(6, 8, seed=0).rows
    phi = ws.DeepRandomFeatures(6, 8, 3, 40, "tanh")
    found = ws.theory.predict(phi, rows, words=2)
    assert found.value == ws.theory.rf_sensitivity(6, 8, 40, 3, activation="tanh", words=2)
    assert found.of == "the largest of 2 words"
    assert ws.theory.predict(ws.RandomFeatures(6, 8), rows, words=1).of == "a typical word"


def test_softmax_attention_gets_the_prediction_of_its_gram_matrix():
    rows = ws.correlated_text(20, 48, 0.5, seed=0).rows
    found = ws.theory.predict(ws.RandomAttentionFeatures(48), rows, words=5)
    assert found.value == ws.theory.raf_sensitivity_of_text(rows, words=5)
    assert (found.of, found.kind) == ("the largest of 5 words", "prediction")


def test_a_mean_cosine_that_is_mere_noise_counts_as_none():
    rows = ws.gaussian_text(20, 48, seed=0).rows
    found = ws.theory.predict(ws.RandomAttentionFeatures(48), rows, words=1)
    assert found.value == ws.theory.raf_sensitivity(20, 48, words=1)
    assert (found.of, found.kind) == ("a typical word", "upper in the limit, for idealised rows")
    assert ws.theory.predict(ws.RandomAttentionFeatures(48), rows).value == ws.theory.raf_sensitivity(20, 48)


@pytest.mark.parametrize(
    "phi",
    [
        ws.RandomAttentionFeatures(8, "relu-unnormalized"),
        ws.RandomAttentionFeatures(8, "relu", heads=2),
        ws.RandomAttentionFeatures(8, heads=2),
        ws.RandomAttentionFeatures(8, temperature=2.0),
        ws.FunctionFeatures(lambda X: X),
    ],
    ids=["undivided", "relu heads", "heads", "temperature", "function"],
)
def test_other_maps_get_none(phi):
    assert ws.theory.predict(phi, ws.gaussian_text(4, 8, seed=0).rows) is None


def test_rows_of_another_length_get_none():
    assert ws.theory.predict(ws.RandomFeatures(4, 8), 2 * ws.gaussian_text(4, 8, seed=0).rows) is None
