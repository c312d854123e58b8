"""The semi-empirical prediction for softmax attention, and its parts."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.theory.attention import _scalar_problem, _Text, attention_concentration


@pytest.mark.parametrize(("n", "variance"), [(2, 1.0), (10, 1.0), (50, 0.5)])
def test_the_concentration_agrees_with_monte_carlo(n, variance):
    """100,000 rows of fixed seed; with another one, outside five standard errors with probability below 1e-6."""
    scores = torch.randn(100_000, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = torch.softmax(math.sqrt(variance) * scores, dim=1).square().sum(dim=1)
    error = float(found.std()) / math.sqrt(len(found))
    assert attention_concentration(n, variance) == pytest.approx(float(found.mean()), abs=5 * error)


@pytest.mark.parametrize(
    ("n", "d", "mean_cosine", "most"), [(20, 192, 0.0, 0.05), (60, 192, 0.0, 0.05), (40, 192, 0.3, 0.08)]
)
def test_a_typical_word_is_near_the_prediction(n, d, mean_cosine, most):
    """Two maps and texts of fixed seeds; their medians scatter by 2 %. Without the logit, 5 to 10 % low."""
    found = []
    for seed in range(2):
        rows = ws.correlated_text(n, d, mean_cosine, seed=seed).rows
        phi = ws.RandomAttentionFeatures(d, seed=seed)
        found.append(
            ws.word_sensitivity(
                phi, rows, words=range(6), search=ws.SearchPlan(steps=40), certificate=False
            ).per_word.median()
        )
    predicted = ws.theory.raf_sensitivity(n, d, mean_cosine=mean_cosine)
    assert predicted == pytest.approx(float(torch.stack(found).mean()), rel=most)


def test_moving_along_the_word_adds_the_gaussian_of_the_logit():
    """What c adds to t_j is s_j = u_j . x_i / ‖x_i‖ sqrt(d); the logit of row j's attention to word i is made of it."""
    n, d, word = 200, 768, 3
    rows = ws.orthogonal_text(n, d, seed=0).rows
    phi = ws.RandomAttentionFeatures(d, seed=0)
    attention = phi.attention(rows)[:, word]
    queries = rows @ phi.weight / math.sqrt(d)
    others = torch.arange(n) != word
    pair = torch.stack([queries @ rows[word] / math.sqrt(d), torch.logit(attention)])[:, others]
    assert float(torch.corrcoef(pair)[0, 1]) > 0.99
    # sqrt(d) u_j . v_i, of unit variance: at 200 rows within five standard errors.
    assert float((math.sqrt(d) * pair[0]).var()) == pytest.approx(1, rel=5 * math.sqrt(2 / n))


@pytest.mark.parametrize(("n", "d", "q", "c", "b"), [(20, 96, 0.0, 0.5, 0.0), (80, 192, 0.3, 0.6, 0.5)])
def test_the_scalar_problem_agrees_with_plain_sampling(n, d, q, c, b):
    """20,000 draws of (s, g), a fine grid of t and x, in NumPy; its standard error is below .5 %."""
    random = np.random.default_rng(0)
    own = 1 - q
    concentration = own * attention_concentration(n, own)
    s, g = math.sqrt(own) * random.standard_normal(20_000), random.standard_normal(20_000)
    z = b * math.sqrt(q * d) + c * s + math.sqrt(own * (1 - c**2)) * g
    a = 1 / (1 + (n - 1) * np.exp(own / 2 - math.sqrt(own) * s))
    least, best = math.inf, []
    for x in np.geomspace(0.3, 100, 60):
        sup = np.full(len(z), -np.inf)
        for t in np.linspace(z.min(), z.max() + math.sqrt(d), 500):
            p = 1 / (1 + (1 / a - 1) * np.exp(-t))
            psi = p**2 + (p - a) ** 2 * (own + concentration) + 2 * p * (p - a) * c * math.sqrt(own)
            sup = np.maximum(sup, psi - (t - z) ** 2 / (2 * x))
        best.append(d * own * (1 - b**2 - c**2) / (2 * x) + n * sup.mean())
    least = min(best)
    assert _scalar_problem(_Text(n, d, q, concentration), c, b) == pytest.approx(least, rel=0.015)


def test_the_prediction_does_not_fade_with_the_number_of_words_when_d_grows_with_it():
    values = [ws.theory.raf_sensitivity(n, 8 * n) for n in (50, 100, 200)]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("mean_cosine", [-0.1, 1.0])
def test_a_mean_cosine_outside_the_range_is_refused(mean_cosine):
    with pytest.raises(InputError, match="`mean_cosine`"):
        ws.theory.raf_sensitivity(10, 10, mean_cosine=mean_cosine)
