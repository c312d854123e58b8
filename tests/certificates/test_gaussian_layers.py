"""The lemmas on one Gaussian layer, against their definitions over finite sets of input changes.

Every mean is taken over 200 layers of fixed seed; with another seed a true bound would fail by
chance, by five standard errors, with probability below 3e-7 a comparison.
"""

import math

import pytest
import torch

import wordsens as ws
from wordsens.activations import ACTIVATIONS, activation_named
from wordsens.certificates.dense.bounds import chain_bound
from wordsens.certificates.dense.layer import (
    GaussianLayer,
    InputChange,
    beyond,
    expected_change,
    expected_width,
    first_hinge,
    likely_along,
    reached,
    reached_square,
    second_hinge,
)

LAYERS, MARGIN = 200, math.sqrt(2 * math.log(1e9))


def set_of_changes(phi, along, across, stream, count=6):
    """0, both multiples of phi, and `count` changes with a random component across phi; (m, D)."""
    unit = phi / torch.linalg.vector_norm(phi)
    beside = torch.randn(count, len(phi), generator=stream, dtype=torch.float64)
    beside -= (beside @ unit).unsqueeze(1) * unit
    beside *= across / torch.linalg.vector_norm(beside, dim=1, keepdim=True)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    shares = torch.cat([signs, torch.rand(count, generator=stream, dtype=torch.float64) * 2 - 1])
    return torch.cat(
        [
            torch.zeros_like(phi)[None],
            along * signs[:, None] * phi,
            beside + along * shares[2:, None] * phi,
        ]
    )


def known(phi, changes, stream):
    """The InputChange of a finite set, its width by 40,000 Gaussian vectors and five standard
    errors."""
    g = torch.randn(40_000, len(phi), generator=stream, dtype=torch.float64)
    squares = (g @ changes.T).amax(dim=1) ** 2
    width = math.sqrt(float(squares.mean() + 5 * squares.std() / math.sqrt(len(squares))))
    base = float(torch.linalg.vector_norm(phi))
    along = float((changes @ phi).abs().max()) / base**2
    return InputChange(
        norm=float(torch.linalg.vector_norm(changes, dim=1).max()),
        width=width,
        along=along,
        base=base,
    )


def drawn(law, h, phi, changes, sigma, stream):
    """sup ‖delta'‖, sup <g, delta'> and sup |<phi', delta'>| / ‖phi'‖² of LAYERS layers V with V
    phi = h."""
    base = law(h)
    suprema = []
    for _ in range(LAYERS):
        G = sigma * torch.randn(len(h), len(phi), generator=stream, dtype=torch.float64)
        V = G + torch.outer(h - G @ phi, phi) / (phi @ phi)
        moved = law(h + changes @ V.T) - base
        g = torch.randn(len(h), generator=stream, dtype=torch.float64)
        along = (moved @ base).abs().max() / (base @ base)
        suprema.append(
            torch.stack([torch.linalg.vector_norm(moved, dim=1).max(), (moved @ g).max(), along])
        )
    return torch.stack(suprema).unbind(1)


def exceeds(sample, bound):
    """Whether the mean of a sample is above a bound of its law's mean."""
    return float(sample.mean() - 5 * sample.std() / math.sqrt(len(sample))) > bound * (1 + 1e-12)


@pytest.mark.usefixtures("unchecked_types")  # checks triple the time
@pytest.mark.parametrize(("across", "along"), [(3.0, 0.0), (0.1, 1.5), (3.0, 6.0)])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_no_mean_over_a_finite_set_exceeds_its_bound(activation, across, along):
    stream = torch.Generator().manual_seed(11)
    law, k, D = activation_named(activation), 60, 12
    phi = torch.randn(D, generator=stream, dtype=torch.float64)
    # Mostly inactive units: they turn on past along = 1.
    h = torch.randn(k, generator=stream, dtype=torch.float64) - 0.7
    sigma = D**-0.5
    changes = set_of_changes(phi, along, across, stream)
    change = known(phi, changes, stream)
    layer = GaussianLayer(law, sigma, h, float(torch.linalg.vector_norm(law(h))))
    norms, widths, alongs = drawn(law, h, phi, changes, sigma, stream)
    assert not exceeds(norms, expected_change(layer, change))
    assert not exceeds(widths, expected_width(layer, change))
    # Holds with probability 1 - 4e-9 each: 200 layers fail by chance with probability below 1e-6.
    assert float(alongs.max()) <= likely_along(layer, change, MARGIN) * (1 + 1e-12)


def test_inactive_units_that_turn_on_are_counted():
    """h = -2 for 100 units, T = {0, -10 phi}, sigma = ‖phi‖ = 1: V delta = 20, so each unit changes
    by 18."""
    layer = GaussianLayer(
        activation_named("relu"), 1.0, torch.full((100,), -2.0, dtype=torch.float64), 1.0
    )
    change = InputChange(norm=10.0, width=math.sqrt(50.0), along=10.0, base=1.0)
    assert expected_change(layer, change) >= 180
    # E_g sup <g, delta'> = 180 E g_+.
    assert expected_width(layer, change) >= 180 / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("k", [4, 400])
def test_the_width_of_one_change_across_the_input_is_nearly_exact(k):
    """T = {0, delta, -delta} across phi, act the identity: E sup |<g, V delta>| is sigma rho E ‖g‖
    sqrt(2 / pi), and the lemma's sigma sqrt(k) rho no more than sqrt(pi / 2) sqrt(k) / E ‖g‖ of
    it."""
    sigma, rho = 0.3, 5.0
    layer = GaussianLayer(
        activation_named("identity"), sigma, torch.ones(k, dtype=torch.float64), math.sqrt(k)
    )
    found = expected_width(layer, InputChange(norm=rho, width=rho, along=0.0, base=1.0))
    length = math.sqrt(2) * math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2))
    exact = sigma * rho * length * math.sqrt(2 / math.pi)
    assert exact <= found <= exact * math.sqrt(math.pi / 2) * math.sqrt(k) / length * (1 + 1e-12)


@pytest.mark.parametrize("along", [0.0, 0.4, 3.0])
def test_lemma_4_of_relu_is_that_of_the_page(along):
    """Lemma 4 of docs/proofs.md, its mean by quadrature."""
    h = torch.tensor([0.5, -1.0, 2.0, 3.0], dtype=torch.float64)
    sigma, rho, width, margin = 0.5, 6.0, 7.0, 2.0
    features, tau = h.clamp(min=0), sigma * rho
    output = float(features.norm())
    layer = GaussianLayer(activation_named("relu"), sigma, h, output)
    change = InputChange(norm=rho, width=width, along=along, base=1.0)
    g = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    law = torch.exp(-0.5 * g**2) / math.sqrt(2 * math.pi)
    past = (tau * g.clamp(min=0) - (1 - along) * h.abs().unsqueeze(1)).clamp(min=0)
    crossing = float(features @ torch.trapezoid(past * law, g))
    mean = along * output**2 + (sigma * width + tau / math.sqrt(2 * math.pi)) * output + crossing
    assert likely_along(layer, change, margin) == pytest.approx(
        mean / output**2 + sigma * rho * margin / output, rel=1e-6
    )


@pytest.mark.parametrize("name", ["tanh", "erf", "gelu"])
@pytest.mark.parametrize("along", [0.0, 0.6, 3.0])
def test_lemma_4_of_smooth_activations_without_width_is_a_mean_of_squares(name, along):
    """W = 0: s h + rho sigma g moves every unit, and act is off its tangent by sup |act''| / 2
    times the square; the mean by quadrature."""
    h = torch.tensor([0.5, -1.0, 2.0, 0.1], dtype=torch.float64)
    law, tau = activation_named(name), 0.8
    features = law(h)
    output = float(features.norm())
    change = InputChange(norm=tau / 0.5, width=0.0, along=along, base=1.0)
    g = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    density = torch.exp(-0.5 * g**2) / math.sqrt(2 * math.pi)
    squares = torch.trapezoid((along * h.abs().unsqueeze(1) + tau * g.abs()).square() * density, g)
    z = torch.linspace(-4, 4, 80_001, dtype=torch.float64)
    turns = torch.gradient(law.derivative(z), spacing=float(z[1] - z[0]))[0]
    linear = features * law.derivative(h)
    mean = 0.5 * float(turns.abs().max()) * float(features.abs() @ squares)
    mean += along * abs(float(linear @ h)) + tau / math.sqrt(2 * math.pi) * float(linear.norm())
    found = likely_along(GaussianLayer(law, 0.5, h, output), change, 0.0)
    assert found == pytest.approx(mean / output**2, rel=1e-5)


def test_two_layers_are_chained_as_the_page_says():
    """tanh, whose layers are bounded one after the other. The root of E sup <g, delta>² is at most
    that of the squared mean plus rho²."""
    stream, margin, radius, length, d = torch.Generator().manual_seed(5), 4.0, 2.0, 3.0, 6
    layers = []
    for k in (40, 30):
        h = torch.randn(k, generator=stream, dtype=torch.float64)
        output = float(torch.tanh(h).norm())
        layers.append(GaussianLayer(activation_named("tanh"), 0.2, h, output))
    bases = [9.0, layers[0].output, layers[1].output]
    start = InputChange(radius, radius * math.sqrt(d), radius * length / 81.0, 9.0)
    off = 0.2 * radius * margin
    norm = expected_change(layers[0], start) + off
    width = math.hypot(expected_width(layers[0], start) + off, norm)
    assert width < norm * math.sqrt(40)
    along = likely_along(layers[0], start, margin)
    change = InputChange(norm, width, min(along, norm / bases[1]), bases[1])
    last = expected_change(layers[1], change) + 0.2 * norm * margin
    found = chain_bound(layers, bases, length=length, radius=radius, dimension=d, margin=margin)
    assert found == pytest.approx(last, rel=1e-12)


def test_hinges_agree_with_quadrature():
    """Of a Gaussian g, and of its positive part."""
    g = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    law = torch.exp(-0.5 * g**2) / math.sqrt(2 * math.pi)
    for b in (-2.0, 0.0, 0.7, 3.0):
        at = torch.tensor([b], dtype=torch.float64)
        for variable, powers in (
            (g, (first_hinge, second_hinge)),
            (g.clamp(min=0), (reached, reached_square)),
        ):
            for power, closed in enumerate(powers, start=1):
                integral = float(torch.trapezoid((variable - b).clamp(min=0) ** power * law, g))
                assert float(closed(at)) == pytest.approx(integral, rel=1e-7)
    far = torch.where(0.5 * g.abs() >= 0.4, (0.5 * g.abs() + 0.3) ** 2, 0)
    closed = beyond(
        0.5, torch.tensor([0.3], dtype=torch.float64), torch.tensor([0.4], dtype=torch.float64)
    )
    assert float(closed) == pytest.approx(float(torch.trapezoid(far * law, g)), rel=1e-4)


def test_rows_of_one_length_share_their_bound_and_others_have_their_own():
    phi, X = (
        ws.DeepRandomFeatures(4, 16, depth=2, gaussian="lazy", seed=0),
        ws.gaussian_text(4, 16, seed=0).rows,
    )
    assert len(set(ws.certify(phi, X).tolist())) == 1
    scaled = torch.tensor([1.0, 2.0, 2.0, 3.0], dtype=torch.float64).unsqueeze(1) * X
    assert len(set(ws.certify(phi, scaled).tolist())) == 3
