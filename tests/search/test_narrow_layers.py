"""Layers of few units: Krylov spaces end early, and whole words may move nothing."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.activations import ACTIVATIONS
from wordsens.search.ball import Ball


def test_four_units_of_eight_coordinates():
    r = ws.word_sensitivity(ws.RandomFeatures(3, 8, 4, seed=0), ws.gaussian_text(3, 8, seed=0))
    assert bool((r.per_word > 0).all())


@pytest.mark.slow
@settings(max_examples=60)
@given(
    n=st.integers(2, 6),
    d=st.integers(1, 8),
    width=st.integers(1, 12),
    depth=st.integers(1, 3),
    gaussian=st.sampled_from(["dense", "lazy"]),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    seed=st.integers(0, 50),
)
def test_every_narrow_layer_is_searched(n, d, width, depth, gaussian, activation, seed):
    """Finite values, witnesses inside their balls, and none below the best of forty random points by half a percent."""
    phi = ws.DeepRandomFeatures(n, d, depth, width, activation, gaussian, seed)
    X = ws.gaussian_text(n, d, seed=seed)
    assume(float(phi(X).norm()) > 0)
    r = ws.word_sensitivity(phi, X, certificate=False)
    ball = Ball(r.radius)
    assert bool(torch.isfinite(r.per_word).all())
    assert ball.contains(r.perturbations)
    if gaussian == "lazy":
        return
    drawn = ball.sample(40, dimension=d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    words = torch.arange(n).repeat(40)
    sampled = phi.word_change(X.rows).value(drawn.flatten(end_dim=1), words).sqrt().view(40, n) / phi(X).norm()
    assert bool((r.per_word >= sampled.amax(dim=0) * 0.995).all())


@pytest.mark.slow_cases("[789]-dense", "1?-dense")
@pytest.mark.parametrize("gaussian", ["dense", "lazy"])
@pytest.mark.parametrize("width", range(1, 13))
def test_both_kinds_of_matrix_at_every_width(gaussian, width):
    for seed in range(3):
        phi, X = ws.RandomFeatures(4, 6, width, gaussian=gaussian, seed=seed), ws.gaussian_text(4, 6, seed=seed)
        if float(phi(X).norm()) > 0:
            assert bool(torch.isfinite(ws.word_sensitivity(phi, X, certificate=False).per_word).all())


@pytest.mark.parametrize(("seed", "word", "before"), [(6, 7, 0.9322), (13, 8, 0.9316), (3, 4, 0.9623)])
def test_a_layer_of_few_features_is_searched_for_every_hill(seed, word, before):
    """Eight ReLU features of nearly equal rows, where the Krylov search alone reached that share; ascents in NumPy."""
    n, d, width = 12, 52, 8
    X = ws.gaussian_text(1, d, seed=4).rows + 1e-3 * ws.gaussian_text(n, d, seed=5).rows
    stream = np.random.default_rng(0)
    phi = ws.RandomFeatures(n, d, width, gaussian="dense", seed=seed)
    found = float(ws.word_sensitivity(phi, X, certificate=False).per_word[word])
    matrix = phi.weight.detach().numpy()
    rest, block = matrix @ X.numpy().ravel(), matrix[:, word * d : (word + 1) * d]
    x = stream.standard_normal((600, d))
    for step in range(400):
        x *= math.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
        moved = rest + x @ block.T
        slope = ((np.maximum(moved, 0) - np.maximum(rest, 0)) * (moved > 0)) @ block
        x += 0.5 * 0.99**step * math.sqrt(d) * slope / (np.linalg.norm(slope, axis=1, keepdims=True) + 1e-300)
    x *= math.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
    change = np.maximum(rest + x @ block.T, 0) - np.maximum(rest, 0)
    reached = found / (np.linalg.norm(change, axis=1).max() / float(phi(X).norm()))
    assert reached >= 0.999 > before
