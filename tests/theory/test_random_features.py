"""Random features: dual kernels and the spectral edge against Monte Carlo, predictions against
measurements."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.activations import ACTIVATIONS, activation_named
from wordsens.errors import InputError
from wordsens.text import orthogonal_text
from wordsens.theory.random_features import (
    TYPICAL_SHIFT,
    dual_kernel,
    finite_width_sensitivity,
    jacobian_edge,
    orthogonal_change,
    quadrature_kernel,
    tracy_widom_quantile,
)


def moments(first, second, correlation):
    values = [torch.tensor(value, dtype=torch.float64) for value in (first, second)]
    return *values, correlation * (values[0] * values[1]).sqrt()


@pytest.mark.parametrize(("depth", "scaled"), [(1, 0.986), (2, 0.973), (4, 0.947), (8, 0.899)])
def test_relu_at_fifty_words_has_the_known_values(depth, scaled):
    assert ws.theory.rf_sensitivity_infinite_width(50, depth) * math.sqrt(50) == pytest.approx(
        scaled, abs=5e-4
    )


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_kernel_agrees_with_monte_carlo(activation):
    """500,000 pairs of fixed seed; with another one, outside five standard errors with probability
    below 1e-6."""
    law, pair = activation_named(activation), moments(0.8, 1.7, -0.4)
    z = torch.randn(2, 500_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, second = (
        math.sqrt(0.8) * z[0],
        math.sqrt(1.7) * (-0.4 * z[0] + math.sqrt(1 - 0.16) * z[1]),
    )
    products = law(first) * law(second)
    error = float(products.std()) / math.sqrt(len(products))
    assert float(dual_kernel(law, *pair)) == pytest.approx(float(products.mean()), abs=5 * error)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.5, 0.99])
def test_quadrature_agrees_with_the_closed_forms(correlation):
    pair = moments(1.0, 1.3, correlation)
    for name, tolerance in (
        ("erf", 1e-7),
        ("identity", 1e-11),
        ("relu", 5e-3),
        ("leaky_relu", 5e-3),
    ):
        law = activation_named(name)
        assert float(quadrature_kernel(law, *pair)) == pytest.approx(
            float(dual_kernel(law, *pair)), abs=tolerance
        )


@pytest.mark.parametrize("depth", [1, 3])
def test_a_wide_layer_changes_as_the_kernel_says(depth):
    """A Delta that does not look at the weights. Over 8 maps of fixed seed; five standard errors,
    as above."""
    n, d, width = 5, 20, 3000
    rows = orthogonal_text(n, d, seed=0).rows.double()
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
        found.append(
            float(torch.linalg.vector_norm(changed - base) / torch.linalg.vector_norm(base))
        )
    found = torch.tensor(found)
    error = float(found.std()) / math.sqrt(len(found))
    assert orthogonal_change(n, depth) == pytest.approx(float(found.mean()), abs=5 * error)
    assert error < 0.02


def test_a_linear_map_moves_by_the_share_of_one_word():
    assert ws.theory.rf_sensitivity_infinite_width(16, 3, activation="identity") == pytest.approx(
        0.25, rel=1e-9
    )


def test_what_is_not_a_size_is_refused():
    with pytest.raises(InputError, match="`n`"):
        ws.theory.rf_sensitivity_infinite_width(1)
    with pytest.raises(InputError, match="`activation`"):
        ws.theory.rf_sensitivity_infinite_width(5, activation="rely")


@pytest.mark.parametrize(("dimension", "width"), [(10, 10), (48, 960), (192, 200)])
def test_one_layer_has_the_marchenko_pastur_edge(dimension, width):
    active, _ = jacobian_edge(activation_named("relu"), depth=1, dimension=dimension, width=width)
    assert active == pytest.approx((1 + math.sqrt(2 * dimension / width)) ** 2, rel=1e-9)
    linear, found = jacobian_edge(
        activation_named("identity"), depth=1, dimension=dimension, width=width
    )
    assert linear == pytest.approx((1 + math.sqrt(dimension / width)) ** 2, rel=1e-9)
    # Johnstone (2001): the Tracy-Widom scale of a Wishart matrix with `width` samples, over
    # `width`.
    scale = (
        (math.sqrt(width) + math.sqrt(dimension))
        * (width**-0.5 + dimension**-0.5) ** (1 / 3)
        / width
    )
    assert found == pytest.approx(scale, rel=1e-4)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_edge_agrees_with_products_of_random_matrices(activation):
    """24 products of fixed seed. The formula is a limit: 3 % is what is left of it at dimension
    40."""
    law, dimension, width, depth = activation_named(activation), 40, 400, 3
    stream = torch.Generator().manual_seed(0)
    found = []
    for _ in range(24):
        product = torch.eye(dimension, dtype=torch.float64)
        for _ in range(depth):
            weight = torch.randn(width, len(product), generator=stream, dtype=torch.float64)
            slopes = law.derivative(torch.randn(width, 1, generator=stream, dtype=torch.float64))
            product = slopes * (weight @ product) * math.sqrt(law.he_variance / width)
        found.append(float(torch.linalg.matrix_norm(product, 2)))
    edge, scale = jacobian_edge(law, depth=depth, dimension=dimension, width=width)
    assert math.sqrt(edge + scale * TYPICAL_SHIFT) == pytest.approx(
        sum(found) / len(found), rel=0.03
    )


@pytest.mark.parametrize(
    ("probability", "quantile"), [(0.05, -3.1808), (0.5, -1.2686), (0.95, 0.9793), (0.99, 2.0234)]
)
def test_tracy_widom_quantiles_are_those_of_the_tables(probability, quantile):
    assert tracy_widom_quantile(probability) == pytest.approx(quantile, abs=0.02)


def measured(n, d, *, width, depth, activation, seeds, words):
    found = []
    for seed in range(seeds):
        phi = ws.DeepRandomFeatures(n, d, depth, width, activation, "dense", seed)
        rows = ws.gaussian_text(n, d, seed=seed).rows
        found.append(
            ws.word_sensitivity(
                phi, rows, words=range(words), search=ws.SearchPlan(starts=3, steps=100)
            ).per_word
        )
    return float(torch.cat(found).mean())


@pytest.mark.slow_cases("20-32-None-4-*", "20-32-None-2-*", "20-48-*")
@pytest.mark.parametrize(
    ("n", "d", "width", "depth", "activation", "tolerance"),
    [
        (20, 48, None, 1, "relu", 0.02),
        (40, 24, 240, 1, "relu", 0.03),
        (20, 24, 1920, 1, "relu", 0.02),
        (20, 32, None, 2, "relu", 0.05),
        (20, 32, None, 4, "relu", 0.05),
        (20, 32, None, 1, "tanh", 0.03),
        (20, 32, None, 1, "gelu", 0.05),
    ],
)
def test_a_typical_word_is_as_sensitive_as_predicted(n, d, width, depth, activation, tolerance):
    """8 maps of fixed seed, 3 words each."""
    found = measured(n, d, width=width, depth=depth, activation=activation, seeds=8, words=3)
    predicted = ws.theory.rf_sensitivity(n, d, width, depth, activation=activation, words=1)
    assert predicted == pytest.approx(found, rel=tolerance)


def test_the_largest_over_all_words_is_predicted_too():
    n, d, found = 20, 24, []
    for seed in range(6):
        phi = ws.RandomFeatures(n, d, seed=seed)
        found.append(
            ws.word_sensitivity(
                phi,
                ws.gaussian_text(n, d, seed=seed).rows,
                search=ws.SearchPlan(starts=3, steps=60),
            ).value
        )
    assert ws.theory.rf_sensitivity(n, d) == pytest.approx(sum(found) / len(found), rel=0.03)
    assert ws.theory.rf_sensitivity(n, d) > ws.theory.rf_sensitivity(n, d, words=1)


def test_a_very_wide_map_reaches_the_infinite_width():
    wide = ws.theory.rf_sensitivity(30, 8, 10**12, 3)
    assert wide == pytest.approx(ws.theory.rf_sensitivity_infinite_width(30, 3), rel=1e-3)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("depth", [1, 3])
def test_one_word_of_very_many_moves_as_the_linearised_map(activation, depth):
    """n = 10^5: little is lost to curvature, and S sqrt(n) is the root of the Jacobian's edge."""
    n, d, width = 10**5, 96, 4000
    edge, scale = jacobian_edge(activation_named(activation), depth=depth, dimension=d, width=width)
    found = finite_width_sensitivity(n, d, width, depth, activation, 1)
    assert found * math.sqrt(n) == pytest.approx(math.sqrt(edge + scale * TYPICAL_SHIFT), rel=2e-2)
