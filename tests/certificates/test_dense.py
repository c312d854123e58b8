"""Upper bounds of random features and deep random features: nothing exceeds them, and they are not
loose."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.activations import ACTIVATIONS, activation_named
from wordsens.certificates.dense.bounds import by_law, by_weights
from wordsens.certificates.dense.layer import chords, steepest_secant
from wordsens.errors import InputError
from wordsens.sensitivity.one_word import relative_change


def text(n, d, seed=0, dtype=torch.float64):
    rows = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True) * math.sqrt(d)


def bounds(phi, rows, radius, method):
    words = torch.arange(len(rows)).unsqueeze(1)
    reach = torch.full((len(rows),), float(radius), dtype=torch.float64)
    return method(phi, rows, words, reach)


def sampled(phi, rows, radius, count, seed=0):
    """The largest relative change of each word over random perturbations on the sphere."""
    n, d = rows.shape
    directions = torch.randn(
        count, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    directions *= radius * (1 - 1e-6) / torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    words = torch.arange(n).repeat(count).unsqueeze(1)
    found = relative_change(phi, rows, words, directions.reshape(-1, 1, d).to(rows.dtype))
    return found.reshape(count, n).amax(dim=0)


def exceeded(values, upper, rounding=0.0):
    """The words whose value is above their bound."""
    return (values > upper * (1 + rounding) + rounding).nonzero().flatten().tolist()


@settings(max_examples=12)
@given(
    n=st.integers(2, 5),
    d=st.integers(1, 6),
    width=st.integers(2, 30),
    depth=st.integers(1, 3),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    log_radius=st.floats(-4, 2),
    single=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_no_value_exceeds_its_certificate(n, d, width, depth, activation, log_radius, single, seed):
    dtype = torch.float32 if single else torch.float64
    phi = ws.DeepRandomFeatures(n, d, depth, width, activation, "dense", seed, dtype=dtype)
    rows, radius = text(n, d, seed, dtype), 10.0**log_radius
    if float(torch.linalg.vector_norm(phi(rows))) < 1e-3:
        return
    # The bounds are about exact arithmetic: float32 features carry their own rounding.
    rounding = 2e-4 if single else 1e-12
    plan = ws.SearchPlan("quick", starts=3, steps=10)
    searched = ws.word_sensitivity(
        phi, rows, radius=radius, search=plan, certificate=False
    ).per_word
    found = torch.maximum(searched, sampled(phi, rows, radius, 50, seed))
    for method in (by_weights, by_law):
        assert exceeded(found, bounds(phi, rows, radius, method).upper, rounding) == []


@pytest.mark.parametrize("width", [9, 40])
def test_the_bound_of_a_linear_map_is_exact_so_one_five_percent_too_small_is_found(width):
    phi, rows = ws.RandomFeatures(4, 5, width, "identity", seed=2), text(4, 5, 2)
    certificate = bounds(phi, rows, 3.0, by_weights)
    blocks = phi.weight.reshape(width, 4, 5).transpose(0, 1)
    exact = 3.0 * torch.linalg.matrix_norm(blocks, 2) / torch.linalg.vector_norm(phi(rows))
    assert torch.allclose(certificate.upper, exact, rtol=1e-8)
    found = ws.word_sensitivity(phi, rows, radius=3.0).per_word
    assert exceeded(found, certificate.upper) == []
    assert exceeded(found, 0.95 * certificate.upper) == [0, 1, 2, 3]


def test_a_five_percent_too_small_bound_of_relu_is_found_at_a_small_radius():
    phi, rows = ws.RandomFeatures(4, 8, 64, seed=3), text(4, 8, 3)
    certificate = bounds(phi, rows, 1e-5, by_weights)
    found = ws.word_sensitivity(
        phi, rows, radius=1e-5, search=ws.SearchPlan("quick", starts=6, steps=200)
    ).per_word
    assert exceeded(found, certificate.upper, 1e-9) == []
    assert exceeded(found, 0.95 * certificate.upper) == [0, 1, 2, 3]


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "tanh", "gelu", "erf"])
def test_at_a_small_radius_the_bound_is_the_jacobians_norm(activation):
    phi, rows = ws.RandomFeatures(4, 5, 30, activation, seed=4), text(4, 5, 4)
    slopes = phi.activation.derivative(phi.weight @ rows.flatten()).unsqueeze(1)
    blocks = (phi.weight * slopes).reshape(30, 4, 5).transpose(0, 1)
    exact = torch.linalg.matrix_norm(blocks, 2) / torch.linalg.vector_norm(phi(rows))
    upper = bounds(phi, rows, 1e-6, by_weights).upper / 1e-6
    assert torch.allclose(upper, exact, rtol=1e-5)
    assert bool((upper >= exact * (1 - 1e-9)).all())


def test_the_bracket_of_random_features_is_at_most_one_point_two():
    phi, rows = ws.RandomFeatures(50, 32, seed=5, gaussian="dense"), text(50, 32, 5)
    words = list(range(0, 50, 10))
    found = ws.word_sensitivity(phi, rows, words=words, search="quick").per_word
    radius = torch.full((5,), math.sqrt(32), dtype=torch.float64)
    ratio = by_weights(phi, rows, torch.tensor(words).unsqueeze(1), radius).upper / found
    assert bool((ratio >= 1).all())
    assert float(ratio.median()) <= 1.2


def test_the_bracket_without_the_matrix_is_at_most_one_point_two():
    phi, rows = (
        ws.RandomFeatures(50, 192, seed=6, gaussian="lazy", gaussian_bytes=1 << 30),
        text(50, 192, 6),
    )
    found = ws.word_sensitivity(phi, rows, words=[0], search="quick")
    certificate = ws.certificate(phi, rows, words=[0])
    assert 1 <= float(certificate.upper) / found.value <= 1.2
    assert (
        certificate.rigor
        == "with probability 1 - 1e-9 over the weights, for a text chosen without them"
    )


def test_deep_bounds_without_the_matrices_are_far_below_the_product_of_norms():
    phi, rows = ws.DeepRandomFeatures(20, 48, 2, seed=7, gaussian="dense"), text(20, 48, 7)
    weights, gaussian = (
        bounds(phi, rows, math.sqrt(48), method).upper for method in (by_weights, by_law)
    )
    assert bool((gaussian < 0.85 * weights).all())
    found = ws.word_sensitivity(phi, rows, words=[0, 1], search="quick").per_word
    assert exceeded(found, gaussian[:2]) == []


def test_the_public_names_dispatch_and_say_how_rigorous_they_are():
    phi, rows = ws.RandomFeatures(3, 4, seed=8), text(3, 4, 8)
    certificate = ws.certificate(phi, rows, words=[2, 0], radius=[1.0, 2.0])
    assert certificate.rigor == "certified"
    assert certificate.words.tolist() == [2, 0]
    assert torch.equal(ws.certify(phi, rows, words=[2, 0], radius=[1.0, 2.0]), certificate.upper)


def test_what_cannot_be_done_is_refused():
    phi, rows = ws.RandomFeatures(3, 4, gaussian="lazy"), text(3, 4)
    with pytest.raises(InputError, match="sampled on demand"):
        bounds(phi, rows, 1.0, by_weights)
    radius = torch.tensor([1.0], dtype=torch.float64)
    with pytest.raises(InputError, match="`failure_probability`"):
        by_law(phi, rows, torch.tensor([[0]]), radius, failure_probability=0.0)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("log_reach", [-9, -6, -3, -2, -1, 0, 0.5, 1, 1.5])
def test_no_secant_is_steeper_than_its_bound(activation, log_reach):
    """At places all over the activation, and as far from 0 as parts of the reach: the kink just out
    of reach, in it, and anywhere between."""
    law, reach = activation_named(activation), 10.0**log_reach
    shares = torch.linspace(-1.5, 1.5, 61, dtype=torch.float64)
    at = torch.cat([torch.linspace(-6, 6, 49, dtype=torch.float64), shares * reach])
    bound = steepest_secant(law, at, torch.full_like(at, reach))
    steps = torch.linspace(-reach, reach, 1000, dtype=torch.float64).unsqueeze(1)
    rises = (law(at + steps) - law(at)).abs()
    assert bool((rises <= bound * steps.abs() * (1 + 1e-9) + 1e-14).all())
    assert bool((bound <= law.lipschitz).all())


def test_chords_lie_above_a_convex_function_and_are_exact_for_linear_ones():
    edges, weights, tail = chords()
    y = torch.linspace(0, 12, 200_001, dtype=torch.float64)
    law = torch.exp(-0.5 * y**2) / math.sqrt(2 * math.pi)
    linear = sum(weight * edge for weight, edge in zip(weights, edges, strict=True)) + tail[0]
    assert linear == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-9)
    square = sum(weight * edge**2 for weight, edge in zip(weights, edges, strict=True))
    exact = float(torch.trapezoid(y**2 * law, y))
    assert exact <= square + tail[1] <= 1.1 * exact
