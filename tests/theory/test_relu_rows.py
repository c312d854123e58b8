"""ReLU attention's row i for the scalar problem, against sampling."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.theory.rows import Direction, alike_rows, relu_self_row


def row_i(n, d, c, lowered, deviations=0.0):
    shares = torch.tensor([c, 0.0, 0.0, 1.0, lowered], dtype=torch.float64)
    return relu_self_row(alike_rows(n, d, 0.0, 0.0, torch.relu), Direction(*shares), deviations)


@pytest.mark.parametrize("lowered", [0.0, 0.8, 6.0])
def test_row_i_agrees_with_plain_sampling(lowered):
    """1,000 rows of 400 scores: what lowering them costs, and the squared change at a score with
    the word itself.

    Words are orthogonal, Delta apart from them but for its part along x_i. Means of quotients are
    taken as quotients of means, hence 3 %: of order 1/n.
    """
    n, d, c, count = 400, 768, 0.3, 1000
    row = row_i(n, d, c, lowered)
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
    cheaper = row_i(n, d, c, lowered, deviations=1.0)
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


def test_a_prediction_belongs_to_a_relu_map_and_a_text_without_a_mean_cosine():
    rows = ws.gaussian_text(24, 48, seed=0).rows
    found = ws.theory.predict(ws.RandomAttentionFeatures(48, score="relu", seed=0), rows)
    assert found is not None and found.kind == "prediction"
    assert found.value == ws.theory.raf_sensitivity(24, 48, score="relu")
    assert [reason.split(" ")[0] for reason in found.outside] == ["d"]
    shared = ws.correlated_text(24, 48, 0.3, seed=0).rows
    assert ws.theory.predict(ws.RandomAttentionFeatures(48, score="relu", seed=0), shared) is None
