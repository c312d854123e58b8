"""Attention of two words in the plane, against a search that cannot miss: a fine polar grid over the disc."""

import math

import numpy as np
import pytest
from tests.peers import numpy_maps

import wordsens as ws

RADIUS = math.sqrt(2)


def polar_grid(lengths=150, angles=720):
    """Points of the disc, its rim included."""
    r, angle = np.meshgrid(RADIUS * np.linspace(0, 1, lengths), np.linspace(0, 2 * np.pi, angles, endpoint=False))
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1).reshape(-1, 2)


GRID = polar_grid()


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("score", numpy_maps.SCORES)
def test_the_search_reaches_the_maximum_over_the_grid(score, seed):
    phi = ws.RandomAttentionFeatures(2, score, seed=seed)
    X = ws.gaussian_text(2, 2, seed=seed).rows
    r = ws.word_sensitivity(phi, X)
    W = phi.weight.numpy()
    for word in range(2):
        seen = numpy_maps.relative_change(lambda text: numpy_maps.attention(W, score, text), X.numpy(), word, GRID)
        assert float(r.per_word[word]) >= seen.max() * (1 - 1e-4)
        # The grid is fine: what the search adds to it is small.
        assert float(r.per_word[word]) <= seen.max() * (1 + 1e-2)


def test_a_maximum_inside_the_disc_is_not_passed_over():
    """Some of the texts above have it: the rim alone would not do."""
    rim = GRID[np.linalg.norm(GRID, axis=1) > RADIUS * (1 - 1e-9)]
    inner = 0
    for score in numpy_maps.SCORES:
        for seed in range(4):
            W = ws.RandomAttentionFeatures(2, score, seed=seed).weight.numpy()
            X = ws.gaussian_text(2, 2, seed=seed).rows.numpy()
            for word in range(2):
                whole, edge = (
                    numpy_maps.relative_change(lambda text: numpy_maps.attention(W, score, text), X, word, points).max()
                    for points in (GRID, rim)
                )
                inner += bool(whole > edge * (1 + 1e-6))
    assert inner >= 1
