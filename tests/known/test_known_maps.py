"""word_sensitivity finds the exact answer where it is known."""

import math

import pytest
import torch
from tests.known.known_maps import Bump, Constant, Identity, Linear, Pooled, Selection

import wordsens as ws

N, D = 5, 7
RADIUS = torch.tensor([0.1, 1.0, 2.0, math.sqrt(D), 30.0], dtype=torch.float64)


def measured(phi, X, radius=RADIUS, **options):
    """The sensitivity, once it is known that it does not exceed the exact one."""
    r = ws.word_sensitivity(phi, X, radius=radius, **options)
    exact = phi.exact(X, radius.to(X.device))
    assert bool((r.per_word <= exact * (1 + 1e-12) + 1e-15).all())
    return r, exact


@pytest.mark.parametrize("features", [1, 3, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_linear_maps_stretch_a_word_by_their_operator_norm(features, seed, device):
    X = ws.gaussian_text(N, D, seed=seed).rows.to(device)
    r, exact = measured(Linear(N, D, features, seed, device=device), X)
    torch.testing.assert_close(r.per_word, exact, rtol=1e-7, atol=0)


def test_a_linear_map_with_two_equal_singular_values(device):
    """Ties leave the witness free, and the value as it is."""
    phi = Linear(2, 3, 3, device=device)
    phi.A = torch.cat([2 * torch.eye(3), torch.diag(torch.tensor([1.0, 5.0, 5.0]))], dim=1).double().to(device)
    phi.blocks = phi.A.unflatten(1, (2, 3)).transpose(0, 1)
    X = ws.gaussian_text(2, 3, seed=0).rows.to(device)
    r, exact = measured(phi, X, torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(r.per_word, exact, rtol=1e-10, atol=0)
    assert abs(float(r.perturbations[1, 0])) < 1e-4


@pytest.mark.parametrize("activation", ["identity", "leaky_relu"])
def test_random_features_that_are_linear(activation, device):
    """The identity is linear everywhere; leaky ReLU where no pre-activation changes sign, in a ball this small."""
    phi = ws.RandomFeatures(N, D, activation=activation, gaussian="dense", seed=0, device=device)
    X = ws.gaussian_text(N, D, seed=0).rows.to(device)
    before = phi.weight @ X.flatten()
    blocks = (phi.activation.derivative(before).unsqueeze(1) * phi.weight).unflatten(1, (N, D)).transpose(0, 1)
    norms = torch.linalg.matrix_norm(blocks, ord=2)
    radius = 0.5 * float(before.abs().min() / phi.weight.norm(dim=1).max())
    r = ws.word_sensitivity(phi, X, radius=radius)
    torch.testing.assert_close(r.per_word, radius * norms / phi(X).norm(), rtol=1e-7, atol=0)


def test_the_identity_is_as_sensitive_in_every_direction(device):
    X = ws.gaussian_text(N, D, seed=1).rows.to(device)
    r, exact = measured(Identity(device=device), X)
    torch.testing.assert_close(r.per_word, exact, rtol=1e-12, atol=0)
    assert bool(r.converged.all())


def test_a_constant_map_is_not_sensitive(device):
    r, exact = measured(Constant(device=device), ws.gaussian_text(N, D, seed=2).rows.to(device))
    assert r.value == 0.0
    assert torch.equal(r.per_word, exact)


@pytest.mark.parametrize("word", [0, 3])
def test_the_selection_of_one_word_sees_that_word_only(word, device):
    r, exact = measured(Selection(word, device=device), ws.gaussian_text(N, D, seed=3).rows.to(device))
    torch.testing.assert_close(r.per_word, exact, rtol=1e-12, atol=0)
    assert r.word == word
    assert r.per_word.count_nonzero() == 1


def test_a_pooled_text_shares_its_sensitivity_among_its_words(device):
    X = ws.gaussian_text(N, D, seed=4).rows.to(device)
    r, exact = measured(Pooled(device=device), X)
    torch.testing.assert_close(r.per_word, exact, rtol=1e-12, atol=0)
    assert r.word == int(RADIUS.argmax())


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("width", [0.7, 1.5])
def test_a_maximum_inside_the_ball_is_found_there(share, width, device):
    X = ws.gaussian_text(N, D, seed=5).rows.to(device)
    radius = torch.full((N,), 2.0, dtype=torch.float64)
    offset = torch.linspace(-1, 2, D, dtype=torch.float64, device=device)
    offset *= share * 2.0 / offset.norm()
    r, exact = measured(Bump(X[0] + offset, width, device=device), X, radius)
    torch.testing.assert_close(r.per_word, exact, rtol=1e-8, atol=0)
    torch.testing.assert_close(r.perturbations[0], offset, rtol=0, atol=1e-3)
    assert float(r.perturbations[0].norm()) < 0.99 * 2.0
