"""The semi-empirical prediction for softmax attention, and its parts."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.theory.attention import attention_concentration


@pytest.mark.parametrize(("n", "variance"), [(2, 1.0), (10, 1.0), (50, 0.5)])
def test_the_concentration_agrees_with_monte_carlo(n, variance):
    """100,000 rows of fixed seed; with another one, outside five standard errors with probability below 1e-6."""
    scores = torch.randn(100_000, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = torch.softmax(math.sqrt(variance) * scores, dim=1).square().sum(dim=1)
    error = float(found.std()) / math.sqrt(len(found))
    assert attention_concentration(n, variance) == pytest.approx(float(found.mean()), abs=5 * error)


@pytest.mark.parametrize(("n", "d", "mean_cosine"), [(10, 96, 0.0), (40, 96, 0.0), (40, 192, 0.5)])
def test_a_typical_word_is_within_a_fifth_of_the_prediction(n, d, mean_cosine):
    found = []
    for seed in range(2):
        rows = ws.correlated_text(n, d, mean_cosine, seed=seed).rows
        phi = ws.RandomAttentionFeatures(d, seed=seed)
        found.append(ws.word_sensitivity(phi, rows, words=range(6), steps=40).per_word)
    predicted = ws.theory.raf_sensitivity(n, d, mean_cosine=mean_cosine)
    assert predicted == pytest.approx(float(torch.cat(found).median()), rel=0.2)


def test_the_prediction_does_not_fade_with_the_number_of_words_when_d_grows_with_it():
    values = [ws.theory.raf_sensitivity(n, 8 * n) for n in (50, 100, 200)]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("mean_cosine", [-0.1, 1.0])
def test_a_mean_cosine_outside_the_range_is_refused(mean_cosine):
    with pytest.raises(InputError, match="`mean_cosine`"):
        ws.theory.raf_sensitivity(10, 10, mean_cosine=mean_cosine)
