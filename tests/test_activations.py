"""Activations: derivatives, Lipschitz constants and mean squares are what they are said to be."""

import math

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr

import wordsens as ws
from tests.peers import numpy_maps
from wordsens.activations import ACTIVATIONS, Activation, as_activation
from wordsens.errors import InputError

EVERY = pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)


def grid(dtype=torch.float64):
    return torch.linspace(-6, 6, 24_001, dtype=dtype)


@EVERY
def test_the_derivative_is_autograds(activation):
    z = grid().requires_grad_()
    (slope,) = torch.autograd.grad(activation(z).sum(), z)
    smooth = z.detach() != 0
    torch.testing.assert_close(
        activation.derivative(z.detach())[smooth], slope[smooth], rtol=1e-13, atol=1e-14
    )


@EVERY
def test_the_function_is_its_numpy_twin(activation):
    expected = numpy_maps.ACTIVATIONS[activation.name](grid().numpy())
    torch.testing.assert_close(
        activation(grid()), torch.from_numpy(expected), rtol=1e-13, atol=1e-14
    )


@EVERY
def test_the_lipschitz_constant_is_attained_and_never_exceeded(activation):
    """On slopes over intervals, which are the derivative's means; the slack is the rounding of a
    quotient."""
    z = grid()
    quotients = (activation(z[1:]) - activation(z[:-1])).abs() / (z[1:] - z[:-1])
    assert float(quotients.max()) <= activation.lipschitz * (1 + 1e-11)
    assert float(activation.derivative(z).abs().max()) <= activation.lipschitz
    assert float(quotients.max()) >= activation.lipschitz * (1 - 1e-6)


@EVERY
def test_the_mean_square_is_that_of_a_gaussian(activation):
    """Monte Carlo over 10⁶ draws; 5 standard errors, so a false alarm over fresh seeds has
    probability 6e-7."""
    z = torch.randn(10**6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    squares = activation(z).square()
    standard_error = float(squares.std()) / 1000
    assert abs(float(squares.mean()) - activation.mean_square) < 5 * standard_error
    assert activation.he_variance == 1 / activation.mean_square


def test_gelu_keeps_its_digits_in_the_tail():
    """Against SciPy's logarithm of the normal distribution function; torch's gelu is 2e-6 off at -7
    and 0 below -9."""
    z = torch.linspace(-30, -2, 57, dtype=torch.float64)
    expected = z * torch.from_numpy(np.exp(log_ndtr(z.numpy())))
    torch.testing.assert_close(ACTIVATIONS["gelu"](z), expected, rtol=1e-12, atol=0)


def test_mean_squares_in_closed_form():
    assert ACTIVATIONS["relu"].he_variance == 2.0
    assert ACTIVATIONS["erf"].mean_square == pytest.approx(
        2 / math.pi * math.asin(2 / 3), rel=1e-15
    )
    # E[gelu(z)²] = 1/3 + 1/(2 sqrt(3) pi)
    gelu = 1 / 3 + 1 / (2 * math.sqrt(3) * math.pi)
    assert ACTIVATIONS["gelu"].mean_square == pytest.approx(gelu, rel=1e-12)


@EVERY
def test_an_activation_of_ones_own_function_agrees_with_the_shipped_one(activation):
    """The derivative by autograd and E[act(z)²] by quadrature, against the shipped closed forms."""
    one = Activation.of(activation.function, lipschitz=activation.lipschitz)
    z = torch.linspace(-4, 4, 41, dtype=torch.float64)
    torch.testing.assert_close(one.derivative(z), activation.derivative(z), rtol=1e-9, atol=1e-12)
    assert one.mean_square == pytest.approx(activation.mean_square, rel=1e-8)
    assert one.kinked == activation.kinked and as_activation(activation.function) is activation


def test_random_features_of_a_torch_function():
    """Against the definition in NumPy, and a witness that attains what is reported."""
    phi, X = ws.RandomFeatures(5, 4, activation=torch.sin, seed=1), ws.gaussian_text(5, 4, seed=2)
    expected = np.sin(phi.weights[0].numpy() @ X.rows.numpy().ravel())
    np.testing.assert_allclose(phi(X).numpy(), expected, rtol=1e-12)
    result = ws.word_sensitivity(phi, X, search="quick")
    at = int((result.words == result.word).nonzero())
    moved = X.rows.numpy().copy()
    moved[result.word] += result.perturbations[at].numpy()
    change = np.sin(phi.weights[0].numpy() @ moved.ravel()) - expected
    assert np.linalg.norm(change) / np.linalg.norm(expected) == pytest.approx(
        result.value, rel=1e-9
    )
    assert result.upper is None
    bounded = ws.RandomFeatures(5, 4, activation=Activation.of(torch.sin, lipschitz=1.0), seed=1)
    upper = ws.word_sensitivity(bounded, X, search="quick").upper
    assert upper is not None and upper >= result.value


@pytest.mark.parametrize(
    "function", [lambda z: z.sum(), lambda z: 1 / z.clamp(min=0), lambda z: z.no_such_method()]
)
def test_what_is_no_activation_is_refused(function):
    with pytest.raises(InputError, match=r"`activation` \(<lambda>\)"):
        Activation.of(function)


@pytest.mark.parametrize(
    "kind", [ws.RandomAttentionFeatures, lambda d, **options: ws.RandomFeatures(4, d, **options)]
)
def test_a_wrong_dtype_or_device_is_one_line(kind):
    with pytest.raises(
        InputError, match=r"`dtype` \(='float32'\) must be a floating-point type of torch; pass t"
    ):
        kind(8, dtype="float32")
    with pytest.raises(InputError, match=r"`device` \(='gpu'\) is not available here; use 'cpu'"):
        kind(8, device="gpu")
