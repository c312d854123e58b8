"""Infinitely wide layers: closed forms against quadrature and Monte Carlo, and the largest value over the ball."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.activations import ACTIVATIONS, activation_named
from wordsens.errors import InputError
from wordsens.theory.random_features import (
    Moments,
    dual_kernel,
    gauss_hermite,
    mean_square,
    orthogonal_change,
    quadrature_kernel,
)


def moments(first, second, correlation):
    values = [torch.tensor(value, dtype=torch.float64) for value in (first, second)]
    return Moments(*values, product=correlation * (values[0] * values[1]).sqrt())


@pytest.mark.parametrize(("depth", "scaled"), [(1, 0.986), (2, 0.973), (4, 0.947), (8, 0.899)])
def test_relu_at_fifty_words_has_the_known_values(depth, scaled):
    assert ws.theory.rf_sensitivity_infinite_width(50, depth) * math.sqrt(50) == pytest.approx(scaled, abs=5e-4)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_kernel_agrees_with_monte_carlo(activation):
    """500,000 pairs of fixed seed; with another one, outside five standard errors with probability below 1e-6."""
    law, pair = activation_named(activation), moments(0.8, 1.7, -0.4)
    z = torch.randn(2, 500_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, second = math.sqrt(0.8) * z[0], math.sqrt(1.7) * (-0.4 * z[0] + math.sqrt(1 - 0.16) * z[1])
    products = law(first) * law(second)
    error = float(products.std()) / math.sqrt(len(products))
    assert float(dual_kernel(law, pair)) == pytest.approx(float(products.mean()), abs=5 * error)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.5, 0.99])
def test_quadrature_agrees_with_the_closed_forms(correlation):
    pair = moments(1.0, 1.3, correlation)
    for name, tolerance in (("erf", 1e-7), ("identity", 1e-11), ("relu", 5e-3), ("leaky_relu", 5e-3)):
        law = activation_named(name)
        assert float(quadrature_kernel(law, pair)) == pytest.approx(float(dual_kernel(law, pair)), abs=tolerance)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_mean_square_is_the_kernel_of_equal_inputs(activation):
    law, variance = activation_named(activation), torch.tensor([0.5, 1.0], dtype=torch.float64)
    both = dual_kernel(law, Moments(variance, variance, variance))
    assert torch.allclose(mean_square(law, variance), both, rtol=1e-6)
    assert float(mean_square(law, variance)[1]) == pytest.approx(law.mean_square, rel=1e-6)


def test_gauss_hermite_nodes_integrate_polynomials():
    nodes, weights = gauss_hermite(10)
    assert float(weights.sum()) == pytest.approx(1)
    assert float(weights @ nodes**4) == pytest.approx(3)
    assert float(weights @ nodes**18) == pytest.approx(math.prod(range(1, 18, 2)), rel=1e-9)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_wide_layer_changes_as_the_kernel_says(depth):
    """A Delta that does not look at the weights. Over 8 maps of fixed seed; five standard errors, as above."""
    n, d, width = 5, 20, 3000
    rows = ws.orthogonal_text(n, d, seed=0).rows.double()
    delta = rows[1] * 0
    delta[0], delta[1] = rows[0][1], -rows[0][0]
    delta = delta / torch.linalg.vector_norm(delta) * math.sqrt(d)
    assert abs(float(delta @ rows[0])) < 1e-9
    moved = rows.clone()
    moved[0] += delta
    found = []
    for seed in range(8):
        phi = ws.DeepRandomFeatures(n, d, depth, width, seed=seed, dtype=torch.float32)
        base, changed = phi(rows), phi(moved)
        found.append(float(torch.linalg.vector_norm(changed - base) / torch.linalg.vector_norm(base)))
    found = torch.tensor(found)
    error = float(found.std()) / math.sqrt(len(found))
    assert orthogonal_change(n, depth) == pytest.approx(float(found.mean()), abs=5 * error)
    assert error < 0.02


@pytest.mark.parametrize("activation", ["relu", "erf", "identity"])
def test_the_largest_value_is_at_least_that_of_any_delta(activation):
    from wordsens.theory.random_features import _squared

    law = activation_named(activation)
    best = ws.theory.rf_sensitivity_infinite_width(7, 2, activation=activation)
    length = torch.linspace(0, 1, 101, dtype=torch.float64).unsqueeze(1)
    component = torch.linspace(-1, 1, 201, dtype=torch.float64) * length
    everything = _squared(law, 7, 2, length, component).max()
    assert math.sqrt(float(everything)) <= best * (1 + 1e-12)
    assert best == pytest.approx(math.sqrt(float(everything)), rel=1e-3)


def test_a_linear_map_moves_by_the_share_of_one_word():
    assert ws.theory.rf_sensitivity_infinite_width(16, 3, activation="identity") == pytest.approx(0.25, rel=1e-9)


def test_what_is_not_a_size_is_refused():
    with pytest.raises(InputError, match="`n`"):
        ws.theory.rf_sensitivity_infinite_width(1)
    with pytest.raises(InputError, match="`activation`"):
        ws.theory.rf_sensitivity_infinite_width(5, activation="rely")
