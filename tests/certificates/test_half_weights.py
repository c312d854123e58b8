"""Rows of which the moved word has half, to the last bit: which output they are measured from is decided once."""

import numpy as np
import pytest
import torch
from tests.certificates.test_small_radii import by_hand

import wordsens as ws

STEEP = 60.0


def row_of_halves(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One-hot words and W, over the scale, with these scores in row 1; a direction of no word moves its first."""
    n = len(scores)
    matrix = np.eye(n + 1)
    matrix[n, n] = 0.0
    matrix[1, :n] = scores
    matrix[1, n] = STEEP / 2
    return np.eye(n, n + 1), matrix


def attained(rows: np.ndarray, matrix: np.ndarray, score: str, radius: float) -> float:
    """By moves of word 0 along and near the steep direction."""
    delta = np.zeros((402, rows.shape[1]))
    delta[:2, -1] = 1, -1
    delta[2:] = delta[:2].repeat(200, axis=0) + 0.2 * np.random.default_rng(0).standard_normal((400, rows.shape[1]))
    delta *= radius / np.linalg.norm(delta, axis=1, keepdims=True)
    texts = np.repeat(rows[None], len(delta), axis=0)
    texts[:, 0] += delta
    moved = np.linalg.norm(
        (by_hand(texts, matrix, score) - by_hand(rows, matrix, score)).reshape(len(delta), -1), axis=1
    )
    return float(moved.max() / np.linalg.norm(by_hand(rows, matrix, score)))


@pytest.mark.parametrize("effort", ["normal", "thorough"])
@pytest.mark.parametrize("radius", [0.0134, 0.1])
def test_softmax(effort: str, radius: float) -> None:
    crossed = 0
    for at in range(4):
        tied = 0.09 + 0.0005 * at
        rows, matrix = row_of_halves(np.array([tied, tied]))
        scale = np.sqrt(rows.shape[1])
        phi = ws.RandomAttentionFeatures.of_weight(torch.from_numpy(matrix * scale), "softmax")
        scores = rows @ (matrix * scale / scale) @ rows.T
        crossed += scores[1, 0] == scores[1, 1]
        upper = float(ws.certify(phi, torch.from_numpy(rows), words=[0], radius=radius, effort=effort))
        assert attained(rows, matrix, "softmax", radius) <= upper * (1 + 1e-9)
    assert crossed > 1


def test_divided_relu_one_last_bit_off() -> None:
    others = np.random.default_rng(3).uniform(0.1, 0.5, (4000, 2))
    rest = others.sum(axis=1)
    own = np.nextafter(rest, 9)
    halves = own / (own + rest) <= 0.5
    assert halves.sum() > 100
    for first, two in zip(own[halves][:8], others[halves][:8], strict=True):
        rows, matrix = row_of_halves(np.array([first, *two]))
        phi = ws.RandomAttentionFeatures.of_weight(torch.from_numpy(matrix * 2), "relu")
        upper = float(ws.certify(phi, torch.from_numpy(rows), words=[0], radius=0.02))
        assert attained(rows, matrix, "relu", 0.02) <= upper * (1 + 1e-9)
