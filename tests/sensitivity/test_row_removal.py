"""Deleting a row: against the definition, written out."""

import torch

import wordsens as ws
from wordsens.maps.function import FunctionFeatures
from wordsens.sensitivity.removals import row_removal


def test_attention_without_a_word_is_compared_row_by_row():
    X, phi = ws.gaussian_text(5, 8, seed=0), ws.RandomAttentionFeatures(8, seed=0)
    scores = X.rows @ phi.weight @ X.rows.T / 8**0.5
    whole = torch.softmax(scores, dim=1) @ X.rows
    kept = [0, 1, 3, 4]
    left = torch.softmax(scores[kept][:, kept], dim=1) @ X.rows[kept]
    assert abs(row_removal(phi, X, 2) - float((left - whole[kept]).norm() / whole.norm())) < 1e-12


def test_pooled_features_are_compared_as_they_are():
    X = ws.gaussian_text(4, 6, seed=1)
    phi = FunctionFeatures(lambda rows: rows.mean(dim=-2), batched=True)
    change = X.rows[[0, 1, 2]].mean(dim=0) - X.rows.mean(dim=0)
    assert abs(row_removal(phi, X, 3) - float(change.norm() / X.rows.mean(dim=0).norm())) < 1e-12


def test_a_dense_layer_takes_no_shorter_text():
    assert row_removal(ws.RandomFeatures(4, 6, seed=0), ws.gaussian_text(4, 6, seed=0), 0) is None
