"""A word's row that a perturbation makes zero, or nearly: the value is the map's, in a batch of any size."""

import pytest
import torch

import wordsens as ws


class Squares(ws.Score):
    name, normalized = "squares", True

    def attention(self, scores):
        squares = scores.square()
        return squares / squares.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


@pytest.mark.parametrize("left", [0.0, 1e-14])
@pytest.mark.parametrize("batch", [1, 2, 8, 33])
def test_a_row_that_vanishes_has_the_value_of_the_map_in_every_batch(left, batch):
    phi = ws.RandomAttentionFeatures(3, heads=2, score=Squares(), seed=1)
    X = ws.gaussian_text(6, 3, seed=2).rows
    X[4] *= 1e5
    delta = left * X[1] - X[0]
    moved = X.clone()
    moved[0] = X[0] + delta
    wanted = float((phi(moved) - phi(X)).square().sum())
    change = phi.word_change(X, memory_budget=10**8)
    found = change.value(delta.expand(batch, -1).contiguous(), torch.zeros(batch, dtype=torch.long))
    assert found.tolist() == pytest.approx([wanted] * batch, rel=1e-6)
