"""The search of maps that say nothing of themselves: against their closed forms, and where there is no gradient."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.search.ball import Ball
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import attained


@pytest.mark.slow_cases("10-12-2")
@pytest.mark.parametrize(("n", "d", "seed"), [(10, 12, 2), (6, 8, 0)])
def test_attention_as_a_plain_function_finds_what_the_closed_form_finds(n, d, seed):
    phi, X = ws.RandomAttentionFeatures(d, seed=seed), ws.gaussian_text(n, d, seed=seed)
    known = ws.word_sensitivity(phi, X, certificate=False)
    plain = ws.word_sensitivity(lambda text: phi.features(text), X)
    assert bool((plain.per_word >= 0.98 * known.per_word).all())


@pytest.mark.parametrize("radius", [1e-5, 1e-3])
def test_small_radii_reach_the_jacobians_limit(radius):
    X = ws.gaussian_text(5, 40, seed=1)
    phi = ws.FunctionFeatures(lambda text: torch.tanh(text @ text.T) @ text)
    limit = ws.jacobian_sensitivity(phi, X)
    assert bool((ws.word_sensitivity(phi, X, radius=radius).per_word >= 0.99 * radius * limit).all())


def test_a_piecewise_constant_map_is_sampled_and_not_called_converged():
    """At least what 2,000 random points of the sphere find, and no word is called converged."""
    X = ws.gaussian_text(6, 8, seed=0)
    phi = ws.FunctionFeatures(lambda text: torch.sign(text @ text.mT + 0.3), batched=True)
    r = ws.word_sensitivity(phi, X)
    ball = Ball(torch.full((6,), math.sqrt(8), dtype=torch.float64))
    drawn = ball.sample(2000, dimension=8, generator=generator(1, "draws"), dtype=torch.float64)
    words = torch.arange(6).repeat(2000).unsqueeze(1)
    best = attained(phi, X.rows, words, drawn.reshape(-1, 1, 8)).view(2000, 6).amax(dim=0)
    assert bool((r.per_word >= best * (1 - 1e-12)).all())
    assert not bool(r.converged.any())


@pytest.mark.slow_cases("10.0-erf", "4.0-tanh")
@pytest.mark.parametrize("activation", ["tanh", "erf"])
@pytest.mark.parametrize("share", [4.0, 10.0])
def test_saturating_layers_at_large_radii(activation, share):
    """Against ascents from 200 random patterns of signs, each direction V^T s climbed by plain gradient steps."""
    n, d = 5, 8
    phi = ws.RandomFeatures(n, d, activation=activation, gaussian="dense", seed=2)
    X, radius = ws.gaussian_text(n, d, seed=52), share * math.sqrt(d)
    r = ws.word_sensitivity(phi, X, radius=radius, certificate=False)
    change, words = phi.word_change(X.rows), torch.arange(n).repeat(200)
    x = torch.nn.functional.normalize(
        torch.randn(200 * n, d, generator=generator(3, "signs"), dtype=torch.float64), dim=1
    )
    squared, slope = change.value_and_gradient(radius * x, words)
    step = torch.full_like(squared, 0.3)
    for _ in range(60):
        uphill = torch.nn.functional.normalize(slope - (slope * x).sum(dim=1, keepdim=True) * x, dim=1)
        trial = torch.nn.functional.normalize(x + step.unsqueeze(1) * uphill, dim=1)
        value, gradient = change.value_and_gradient(radius * trial, words)
        better = value > squared
        x, slope = torch.where(better[:, None], trial, x), torch.where(better[:, None], gradient, slope)
        squared, step = torch.maximum(value, squared), torch.where(better, step * 1.3, step / 2).clamp(max=2)
    best = squared.view(200, n).amax(dim=0).sqrt() / change.base_norm
    assert bool((r.per_word >= 0.98 * best).all())
