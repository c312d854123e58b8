"""Many texts at once, then adaptive queries on the same matrix: the law of a dense matrix, for a regression's numbers.

Random features of N texts, a min-norm model on them, and one word of a further text moved along the model's gradient:
two-sample Kolmogorov-Smirnov tests over 200 draws each, fixed seeds; false-alarm rate over fresh seeds 1e-3 in all
(Bonferroni). The planted bug shows that the test has power.
"""

import math
from functools import cache

import jaxtyping
import pytest
import torch
from scipy import stats

import wordsens as ws
from wordsens.gaussian.conditioned import ConditionedGaussian
from wordsens.maps.contract import perturbed_texts
from wordsens.text.synthetic import gaussian_text

FALSE_ALARMS = 1e-3
DRAWS = 200
# Fewer texts than coordinates: else their features determine V_i, and nothing is left to condition.
N, D, WIDTH, TEXTS, WORD = 3, 16, 24, 8, 1
TRAINING = torch.stack([gaussian_text(N, D, seed=seed).rows for seed in range(TEXTS)])
LABELS = torch.tensor([1.0, -1.0] * (TEXTS // 2), dtype=torch.float64)
X = gaussian_text(N, D, seed=TEXTS).rows


@pytest.fixture(autouse=True)
def unchecked_shapes(monkeypatch):
    """Thousands of tiny products take a fifth of the time without."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(gaussian, seed):
    """‖theta*‖, the output at X, its move along the gradient, the feature alignment, and the gradient's length."""
    phi = ws.RandomFeatures(N, D, width=WIDTH, gaussian=gaussian, seed=seed)
    features = phi(TRAINING)
    theta = torch.linalg.pinv(features) @ LABELS
    preactivation = phi.layers[0].multiply(X.flatten())
    slope = theta * phi.activation.derivative(preactivation)
    gradient = phi.layers[0].multiply_block_transposed(slope, WORD * D, (WORD + 1) * D)
    delta = math.sqrt(D) * gradient / gradient.norm()
    before, after = phi(X), phi(perturbed_texts(X, torch.tensor([[WORD]]), delta.view(1, 1, D))[0])
    return theta.norm(), before @ theta, (after - before) @ theta, after @ before / (before @ before), gradient.norm()


def draws(gaussian):
    offset = 0 if gaussian == "dense" else 10**6
    return torch.tensor([draw(gaussian, offset + seed) for seed in range(DRAWS)], dtype=torch.float64)


@cache
def dense_draws():
    return draws("dense")


def smallest_level(first, second):
    """The smallest p-value over the statistics, times their number."""
    levels = [stats.ks_2samp(a, b).pvalue for a, b in zip(first.T.numpy(), second.T.numpy(), strict=True)]
    return len(levels) * min(levels)


def test_a_regression_and_its_one_word_change_have_the_law_of_a_dense_matrix():
    assert smallest_level(dense_draws(), draws("lazy")) > FALSE_ALARMS


def test_dropping_the_conditioning_term_is_found(monkeypatch):
    def forgetful(self, side, other, parts, answer_support):
        fresh = self.source.draw(side.answers, len(parts.directions))
        return fresh if answer_support is None else fresh * answer_support

    monkeypatch.setattr(ConditionedGaussian, "_fresh_answers", forgetful)
    assert smallest_level(dense_draws(), draws("lazy")) < 1e-12
