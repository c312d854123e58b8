"""Which prediction belongs to which map and text."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError


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
    assert ws.theory.predict(
        ws.RandomAttentionFeatures(48), rows
    ).value == ws.theory.raf_sensitivity(20, 48)


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
    rows = ws.gaussian_text(4, 8, seed=0).rows
    assert ws.theory.predict(phi, rows) is None
    assert ws.theory.predict(ws.RandomFeatures(4, 8), 2 * rows) is None  # rows of another length
    with pytest.raises(InputError, match="`words`"):
        ws.theory.predict(ws.RandomFeatures(4, 8), rows, words=0)


@pytest.mark.parametrize(
    ("predicted", "size"),
    [
        (lambda: ws.theory.rf_sensitivity(20, 16, depth=8), "d = 16"),
        (lambda: ws.theory.rf_sensitivity(20, 96, width=96), r"k / \(n d\) = 0.05"),
        (lambda: ws.theory.rf_sensitivity(20, 96, activation="tanh"), "activation tanh"),
        (lambda: ws.theory.rf_sensitivity(20, 64, depth=16), "depth = 16"),
        (lambda: ws.theory.raf_sensitivity(8, 192), "n = 8"),
        (lambda: ws.theory.raf_sensitivity(20, 192, mean_cosine=0.9), "mean cosine = 0.9"),
        (
            lambda: ws.theory.raf_sensitivity(20, 192, score="relu", spread=0.0),
            "spread of cosines = 0",
        ),
        (lambda: ws.theory.raf_sensitivity(250, 192, score="relu"), "d / n = 0.768"),
        (lambda: ws.theory.raf_sensitivity_of_text(ws.gaussian_text(20, 48, seed=0)), "d = 48"),
    ],
)
def test_a_number_outside_the_measured_sizes_is_warned_of(predicted, size):
    with pytest.warns(
        ws.theory.PredictionWarning, match=f"error of this prediction is not known.*{size}"
    ):
        assert isinstance(predicted(), float)


@pytest.mark.filterwarnings("error")
def test_inside_them_and_from_predict_there_is_no_warning():
    assert ws.theory.rf_sensitivity(20, 96) > 0
    assert ws.theory.rf_sensitivity(20, 64, depth=8) > 0
    assert ws.theory.raf_sensitivity(20, 192) > 0
    assert ws.theory.raf_sensitivity(192, 192, score="relu") > 0
    assert not ws.theory.predict(
        ws.DeepRandomFeatures(20, 16, 8), ws.gaussian_text(20, 16, seed=0)
    ).in_range


def test_each_attention_is_judged_by_its_own_sizes():
    """ReLU attention was measured for d >= n only, softmax attention for shorter rows too."""
    X = ws.gaussian_text(250, 192, seed=0)
    assert ws.theory.predict(ws.RandomAttentionFeatures(192), X).in_range
    prediction = ws.theory.predict(ws.RandomAttentionFeatures(192, "relu"), X)
    with pytest.warns(ws.theory.PredictionWarning):
        assert prediction.value == ws.theory.raf_sensitivity(250, 192, score="relu")
    assert not prediction.in_range


def test_relu_attention_in_range_is_as_close_as_the_page_says():
    """docs/theory/predictions.md: within 4 %. Twelve words of three texts; their mean has a
    standard error of .7 %, so 6.5 % is a false alarm in 5,000."""
    n, d, found = 100, 192, []
    for seed in range(3):
        phi, X = ws.RandomAttentionFeatures(d, "relu", seed=seed), ws.gaussian_text(n, d, seed=seed)
        found.append(
            ws.word_sensitivity(phi, X, range(12), search="quick", certificate=False).per_word
        )
    prediction = ws.theory.predict(phi, X, words=1)
    assert prediction.in_range
    assert prediction.value == pytest.approx(float(torch.stack(found).mean()), rel=0.065)
