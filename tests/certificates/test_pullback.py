"""Lemmas 5 and 6 of docs/proofs.md against their definitions, and the bounds of
deep maps.

Means are taken over layers of fixed seed; with another seed a true bound would fail by chance, by
five standard errors, with probability below 3e-7 a comparison.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.activations import activation_named
from wordsens.certificates.dense.bounds import chain_bound
from wordsens.certificates.dense.layer import (
    GaussianLayer,
    InputChange,
    shifted_squares,
    weighed_hinges,
)
from wordsens.certificates.dense.pullback import ALONG, NORM, WIDTH, Functional, Pullback

RELU, MARGIN = activation_named("relu"), math.sqrt(2 * math.log(1e9))
UNITS, COLUMNS, BALL = 600, 300, 12


def layer_and_ball(radius, lean, ball=BALL, units=UNITS, shift=0.0, scale=1.0):
    """A layer, its input phi, and an orthonormal basis of the ball's subspace, which phi has the
    share `lean` in."""
    stream = torch.Generator().manual_seed(21)
    phi = torch.randn(COLUMNS, generator=stream, dtype=torch.float64)
    others = torch.randn(COLUMNS, ball, generator=stream, dtype=torch.float64)
    others -= torch.outer(phi, phi @ others) / (phi @ phi)
    basis = torch.linalg.qr(others).Q
    unit = phi / torch.linalg.vector_norm(phi)
    basis[:, 0] = lean * unit + math.sqrt(1 - lean**2) * basis[:, 0]
    h = scale * torch.randn(units, generator=stream, dtype=torch.float64) + shift
    base = float(torch.linalg.vector_norm(phi))
    layer = GaussianLayer(RELU, math.sqrt(2 / units), h, float(torch.linalg.vector_norm(RELU(h))))
    change = InputChange(
        norm=radius, width=radius * math.sqrt(ball), along=radius * lean / base, base=base
    )
    return layer, change, phi, basis


def suprema(layer, phi, basis, radius, functional, layers):
    """Attained suprema over the ball of the functional of relu(h + V delta) - relu(h), each layer
    with its own g."""
    stream, h = torch.Generator().manual_seed(22), layer.preactivation
    base, found = RELU(h), []
    for _ in range(layers):
        G = layer.deviation * torch.randn(len(h), COLUMNS, generator=stream, dtype=torch.float64)
        V = (G + torch.outer(h - G @ phi, phi) / (phi @ phi)) @ basis
        g = torch.randn(len(h), generator=stream, dtype=torch.float64)
        sign = 1.0 if torch.rand((), generator=stream) < 0.5 else -1.0
        place = torch.randn(12, basis.shape[1], generator=stream, dtype=torch.float64)
        best = 0.0
        for _ in range(60):
            place = place / torch.linalg.vector_norm(place, dim=1, keepdim=True) * radius
            moved = h + place @ V.T
            change = RELU(moved) - base
            size = torch.sqrt(
                change.square().sum(dim=1, keepdim=True) + functional.constant**2
            ).clamp(min=1e-12)
            direction = functional.norm * change / size + functional.width * g
            direction = direction + sign * functional.along * base / (base @ base)
            value = functional.norm * size.squeeze(1) + functional.width * (change @ g)
            value = value + sign * functional.along * (change @ base) / (base @ base)
            best = max(best, float(value.max()))
            ascent = (direction * (moved > 0)) @ V
            place = place + radius * ascent / torch.linalg.vector_norm(ascent, dim=1, keepdim=True)
        found.append(best)
    return torch.tensor(found, dtype=torch.float64)


def bound(layer, change, functional, length, ball=BALL):
    """Lemma 5's bound of the mean sup over the ball; `length` is that of phi in the ball's
    subspace."""
    before, constant, lipschitz = Pullback(layer, change, MARGIN)(functional)
    return constant + before.over_ball(change.norm, length, change.base, ball), lipschitz


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("functional", "radius", "lean"),
    [
        (NORM, 0.5, 0.6),
        (NORM, 9.0, 0.0),
        (WIDTH, 9.0, 0.6),
        (ALONG, 0.5, 0.6),
        (Functional(norm=1.0, constant=1.5, along=2.0, width=0.05), 3.0, 0.6),
        (Functional(norm=0.4, constant=0.2, along=0.0, width=0.3), 0.5, 0.0),
        (Functional(along=30.0, width=1.0), 3.0, 0.0),
    ],
    ids=["norm near", "norm far", "width", "along", "all", "mixed", "no norm"],
)
def test_the_mean_supremum_of_a_functional_is_below_its_bound_and_not_far(functional, lean, radius):
    layer, change, phi, basis = layer_and_ball(radius, lean)
    found = suprema(layer, phi, basis, radius, functional, 30)
    mean, error = float(found.mean()), float(found.std()) / math.sqrt(len(found))
    upper, lipschitz = bound(layer, change, functional, lean * change.base)
    assert mean - 5 * error <= upper * (1 + 1e-12)
    assert upper <= 1.6 * mean + 0.2 * lipschitz * MARGIN
    # Lemma 6: a Lipschitz function of a Gaussian matrix; the sample's variance is at most C²
    # (chi-squared, 29 degrees).
    assert float(found.std()) <= 1.6 * math.hypot(
        lipschitz, functional.width * float(change.norm) * 1.6
    )
    assert float(found.max()) <= upper + 4 * math.hypot(
        lipschitz, functional.width * float(change.norm) * 1.6
    )


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("functional", "lean", "radius", "units", "shift", "scale", "near"),
    [
        (NORM, 0.0, 12.0, 4000, -0.6, 0.3, 2.1),  # inactive units that cross are most of the norm
        (
            WIDTH,
            0.0,
            12.0,
            4000,
            -0.6,
            0.3,
            9,
        ),  # and of the width, where those of either sign of g are charged
        (ALONG, 0.0, 12.0, 4000, 0.3, 0.1, 3),  # active units that stop at 0 are most of s
        (WIDTH, 1.0, 1.0, 600, 0.0, 9.0, 1.5),  # what moves along phi is most of it
        (NORM, 1.0, 12.0, 600, 0.0, 4.0, 1.5),
    ],
    ids=["crossing norm", "crossing width", "stopping", "width along phi", "norm along phi"],
)
def test_terms_that_are_small_elsewhere_are_counted(
    functional, lean, radius, units, shift, scale, near
):
    """Layers and balls of two dimensions in which one term of the bound is most of it."""
    layer, change, phi, basis = layer_and_ball(radius, lean, 2, units, shift, scale)
    layers = 20 if units > 1000 else 60
    found = suprema(layer, phi, basis, radius, functional, layers)
    upper, _ = bound(layer, change, functional, lean * change.base, 2)
    assert float(found.mean()) - 5 * float(found.std()) / math.sqrt(layers) <= upper
    assert upper <= near * float(found.mean())


def test_two_layers_together_cost_less_than_one_after_the_other():
    """Layers none of whose units cross: sqrt(2) sigma W is added for the two together, 2 sigma W
    for each apart."""
    stream = torch.Generator().manual_seed(23)
    k, d, radius = 4000, 40, 1e-3
    h = torch.randn(2, k, generator=stream, dtype=torch.float64)
    bases = [math.sqrt(k / 2), *(float(torch.linalg.vector_norm(RELU(row))) for row in h)]
    layers = [
        GaussianLayer(RELU, math.sqrt(2 / k), row, base)
        for row, base in zip(h, bases[1:], strict=True)
    ]
    given_ = {"length": 0.0, "radius": radius, "dimension": d, "margin": 0.0}
    gain = chain_bound(layers, bases, **given_) / radius - 1
    step = math.sqrt(2 * d / k)
    assert math.sqrt(2) * step * 0.98 <= gain <= 1.75 * step


@settings(max_examples=50)
@given(a=st.floats(0, 9), b=st.floats(-9, 9), m=st.floats(0, 9), p=st.floats(0, 3))
def test_square_roots_give_way_to_linear_terms_as_the_proof_says(a, b, m, p):
    inside = a * a + 2 * a * b + m
    if inside >= 0:
        assert (
            math.sqrt(inside)
            <= math.sqrt(a * a + m + 2 * abs(b) * math.sqrt(m) + 2 * b * b) + b + 1e-9
        )
    left = math.sqrt(a * a + m) + b * p
    assert left <= math.sqrt((a + b * p) ** 2 + m + 2 * max(b, 0) * p * math.sqrt(m)) + 1e-9


@pytest.mark.parametrize("shift", [0.0, 0.1, 1.5])
def test_weighed_and_shifted_hinges_are_above_their_means_and_near(shift):
    """Against a million draws; five standard errors."""
    stream = torch.Generator().manual_seed(24)
    far = torch.tensor([-0.5, 0.0, 0.4, 1.5, 3.0], dtype=torch.float64)
    y, gamma = torch.randn(2, 1_000_000, generator=stream, dtype=torch.float64).clamp(min=0)
    x = shift * y + gamma - far.unsqueeze(1)
    hinges = ((x + 0.7).clamp(min=0) ** 2 - (x - 0.7).clamp(min=0) ** 2) / 2.8
    for samples, bounded in [
        ((y * hinges).sum(dim=0), weighed_hinges(far, shift, 0.7)),
        (x.clamp(min=0).square().sum(dim=0), shifted_squares(far, shift)),
    ]:
        mean, error = float(samples.mean()), float(samples.std()) / 1000
        assert mean - 5 * error <= bounded <= 1.05 * mean + 5 * error


@pytest.mark.usefixtures("unchecked_types")
def test_deep_brackets_are_as_close_as_they_were_measured():
    """n = 50, d = 96, k = D: 1.5 at L = 2, 2.2 at L = 4; one layer at a time gave 1.7 and 3.2."""
    for depth, most in ((2, 1.55), (4, 2.3)):
        X = ws.gaussian_text(50, 96, seed=3)
        phi = ws.DeepRandomFeatures(50, 96, depth, seed=3)
        plan = "quick"
        found = ws.word_sensitivity(phi, X, words=[0], search=plan, certificate=False).value
        assert 1 <= float(ws.certify(phi, X, words=[0])[0]) / found <= most


@pytest.mark.parametrize(
    ("functional", "along", "width"), [(NORM, 0, 0), (ALONG, 1, 0), (WIDTH, 0, 1)]
)
def test_suprema_are_lipschitz_in_the_weights_as_the_lemma_has_it(functional, along, width):
    """C = sigma rho (norm + along / ‖phi'‖ + width steepness), the steepness at least 1."""
    layer, change, _, _ = layer_and_ball(0.5, 0.6)
    share = Pullback(layer, change, MARGIN)(functional)[2] / (layer.deviation * change.norm)
    least = functional.norm + along / layer.output + width
    assert least * (1 - 1e-12) <= share <= (4 if width else 1 + 1e-12) * least


def test_layers_with_few_active_units_are_left_to_the_single_layers_lemmas():
    h = torch.full((100,), -1.0, dtype=torch.float64)
    change = InputChange(norm=1.0, width=2.0, along=0.1, base=5.0)
    assert not Pullback(GaussianLayer(RELU, 0.1, h, 1.0), change, MARGIN).usable


@pytest.mark.parametrize("radius", [1e-280, 1e170])
def test_the_chain_loses_no_digit_at_extreme_radii(radius):
    X = ws.gaussian_text(20, 16, seed=1)
    phi = ws.DeepRandomFeatures(20, 16, 3, 900, seed=1)
    share = float(ws.certify(phi, X, words=[0], radius=radius)[0]) / radius
    near = float(ws.certify(phi, X, words=[0], radius=1e-9 if radius < 1 else 1e9)[0]) * (
        1e9 if radius < 1 else 1e-9
    )
    assert share == pytest.approx(near, rel=1e-5)
