"""Layers of few units: Krylov spaces end early, and whole words may move nothing."""

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
    sampled = phi.word_change(X.rows).squared_norm(drawn.flatten(end_dim=1), words).sqrt().view(40, n) / phi(X).norm()
    assert bool((r.per_word >= sampled.amax(dim=0) * 0.995).all())


@pytest.mark.parametrize("gaussian", ["dense", "lazy"])
@pytest.mark.parametrize("width", range(1, 13))
def test_both_kinds_of_matrix_at_every_width(gaussian, width):
    for seed in range(3):
        phi, X = ws.RandomFeatures(4, 6, width, gaussian=gaussian, seed=seed), ws.gaussian_text(4, 6, seed=seed)
        if float(phi(X).norm()) > 0:
            assert bool(torch.isfinite(ws.word_sensitivity(phi, X, certificate=False).per_word).all())
