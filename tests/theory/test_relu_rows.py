"""ReLU attention's rows for the scalar problem: against sampling, and what they predict against the
search."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

import wordsens as ws
from wordsens.theory.rows import Direction, alike_rows, relu_self_row, weight_moments


def row_i(n, d, q, c, lowered, deviations=0.0):
    shares = torch.tensor([c, 0.0, 0.0, 1.0, lowered], dtype=torch.float64)
    return relu_self_row(alike_rows(n, d, q, 0.0, torch.relu), Direction(*shares), deviations)


@pytest.mark.parametrize(
    ("n", "shift", "variance"), [(6, 0.0, 1.0), (40, 0.0, 1.0), (40, -0.4, 0.7)]
)
def test_the_moments_of_the_weights_agree_with_monte_carlo(n, shift, variance):
    """100,000 rows of seed 0; with another one, outside five standard errors with probability below
    1e-6."""
    scores = torch.randn(
        100_000, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    positive = (shift + math.sqrt(variance) * scores).clamp(min=0)
    weights = positive / positive.sum(dim=1, keepdim=True).clamp(min=1e-300)
    products = (weights * scores).sum(dim=1).square() - (weights * scores).square().sum(dim=1)
    moments = weight_moments(n, torch.relu, shift, variance)
    for found, ours in zip((weights.square().sum(dim=1), products), moments, strict=True):
        error = float(found.std()) / math.sqrt(len(found))
        assert float(ours) == pytest.approx(float(found.mean()), abs=5 * error)


@pytest.mark.parametrize("lowered", [0.0, 0.8, 6.0])
def test_row_i_agrees_with_plain_sampling(lowered):
    """1,000 rows of 400 scores: what lowering them costs, and the squared change at a score with
    the word itself.

    Words are orthogonal, Delta apart from them but for its part along x_i. Means of quotients are
    taken as quotients of means, hence 3 %: of order 1/n.
    """
    n, d, c, count = 400, 768, 0.3, 1000
    row = row_i(n, d, 0.0, c, lowered)
    random, length = torch.Generator().manual_seed(0), 2 + 2 * c
    before = torch.randn(count, n, generator=random, dtype=torch.float64)
    new = math.sqrt(1 - c**2) * torch.randn(count, n, generator=random, dtype=torch.float64)
    after, cut = (1 + c) * before + new, lowered * math.sqrt(length)
    taken = after.clamp(min=0, max=cut)
    paid = taken.square().sum(dim=1)
    assert float(row.lowering) == pytest.approx(float(paid.mean()), rel=0.01, abs=1e-9)
    of_word = (1 + c) * before[:200].unsqueeze(2) + math.sqrt(1 - c**2) * torch.linspace(
        -3, 3, 13
    ).double()
    law = torch.exp(-(torch.linspace(-3, 3, 13).double() ** 2) / 2)
    expected = of_word.clamp(min=0, max=cut) ** 2 @ (law / law.sum())
    cheaper = row_i(n, d, 0.0, c, lowered, deviations=1.0)
    assert float(row.lowering - cheaper.lowering) ** 2 == pytest.approx(
        float(expected.var()) * n, rel=0.05, abs=1e-9
    )
    rest, old = after.clamp(min=0) - taken, before.clamp(min=0)
    for itself in (-1.0, 40.0, 160.0):
        total = rest.sum(dim=1, keepdim=True) + max(itself, 0.0)
        weights = rest / total.clamp(min=1e-300)
        share = max(itself, 0.0) / total.squeeze(1).clamp(min=1e-300)
        moved = (weights - old / old.sum(dim=1, keepdim=True)).square().sum(
            dim=1
        ) + share**2 * length
        if float(total.min()) > 0:
            assert float(row.change(torch.tensor([itself]).double())) == pytest.approx(
                float(moved.mean()), rel=0.03
            )


def test_rows_that_share_a_direction_lower_their_scores_together():
    """What single scores are lowered by, and what all are, x where x / q is the sum of the former,
    on a fine grid; together is cheaper than each by itself."""
    n, q, c, lowered = 100, 0.3, 0.3, 1.5
    length = 2 + 2 * c * math.sqrt(1 - q)
    scores = np.linspace(-8, 8, 40_001) * math.sqrt((1 - q) * length)
    law = np.exp(-(np.linspace(-8, 8, 40_001) ** 2) / 2)
    law /= law.sum()
    cut = lowered * math.sqrt((1 - q) * length)

    def singly(x):
        return np.clip(scores - x, 0, cut)

    x = brentq(lambda x: n * q * singly(x) @ law - x, 0, 100)
    found = float(row_i(n, 384, q, c, lowered).lowering)
    assert found == pytest.approx(n * singly(x) ** 2 @ law + x**2 / q, rel=1e-5)
    assert found < float(row_i(n, 384, 0.0, c, lowered).lowering) / 2


@pytest.mark.slow_cases("40-192-*")
@pytest.mark.parametrize(("n", "d", "tolerance"), [(40, 192, 0.05), (120, 92, 0.1)])
def test_a_typical_word_and_the_largest_are_near_the_prediction(n, d, tolerance):
    """S ‖phi(X)‖ of 20 words of one map and text. At n = 120, d = 92 rows can be left to their word
    nearly never."""
    rows, phi = (
        ws.gaussian_text(n, d, seed=1).rows,
        ws.RandomAttentionFeatures(d, score="relu", seed=1),
    )
    found = ws.word_sensitivity(phi, rows, words=range(20), certificate=False).per_word
    found = found * float(phi(rows).norm()) / math.sqrt(d)
    norm = math.sqrt(n * alike_rows(n, d, 0.0, 1.0, torch.relu).retained)
    typical, largest = (
        ws.theory.raf_sensitivity(n, d, score="relu", words=words) * norm for words in (1, 20)
    )
    assert typical == pytest.approx(float(found.median()), rel=tolerance)
    assert largest == pytest.approx(float(found.max()), rel=tolerance)


def test_a_prediction_belongs_to_a_relu_map_and_a_text_without_a_mean_cosine():
    rows = ws.gaussian_text(24, 48, seed=0).rows
    found = ws.theory.predict(ws.RandomAttentionFeatures(48, score="relu", seed=0), rows)
    assert found is not None and found.kind == "prediction"
    assert found.value == ws.theory.raf_sensitivity(24, 48, score="relu")
    assert [reason.split(" ")[0] for reason in found.outside] == ["d"]
    shared = ws.correlated_text(24, 48, 0.3, seed=0).rows
    assert ws.theory.predict(ws.RandomAttentionFeatures(48, score="relu", seed=0), shared) is None
