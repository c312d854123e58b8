"""Whole random-feature maps attacked: by an ascent of its own, by texts built from the weights, at
extreme radii."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.certificates.dense.bounds import by_law, by_weights
from wordsens.errors import InputError


def bounds(phi, rows, radius, method, words):
    reach = torch.full((len(words),), float(radius), dtype=torch.float64)
    return method(phi, rows, torch.tensor(words).unsqueeze(1), reach).upper.numpy()


def relu_network(weights, texts):
    """Features of (m, n d) texts, and the masks of the layers."""
    masks = []
    for weight in weights:
        texts = texts @ weight.T
        masks.append(texts > 0)
        texts = np.maximum(texts, 0)
    return texts, masks


def ascend(weights, rows, word, radius, starts, steps, seed=0):
    """The largest relative change of a ReLU network that full gradient steps on the sphere find;
    NumPy only."""
    d = rows.shape[1]
    flat, block = rows.ravel(), slice(word * d, (word + 1) * d)
    base = relu_network(weights, flat[None])[0]
    # Random starts, and both directions along the word itself.
    delta = np.random.default_rng(seed).standard_normal((starts, d))
    delta = np.concatenate([delta, rows[[word]], -rows[[word]]])
    best = 0.0
    for _ in range(steps):
        delta *= radius * (1 - 1e-12) / np.linalg.norm(delta, axis=1, keepdims=True)
        texts = np.tile(flat, (len(delta), 1))
        texts[:, block] += delta
        features, masks = relu_network(weights, texts)
        slope = features - base
        best = max(best, np.linalg.norm(slope, axis=1).max())
        for weight, mask in zip(weights[::-1], masks[::-1], strict=True):
            slope = (slope * mask) @ weight
        delta = delta / radius + slope[:, block] / np.linalg.norm(
            slope[:, block], axis=1, keepdims=True
        ).clip(1e-300)
    return best / np.linalg.norm(base)


@pytest.mark.parametrize(
    ("n", "d", "depth", "width", "radius"),
    [(20, 8, 4, None, 3.0), (3, 4, 5, 40, 1e3), (2, 3, 6, 12, 1e5), (4, 2, 3, 200, 0.01)],
)
def test_no_ascent_on_a_whole_network_goes_beyond_its_bounds(n, d, depth, width, radius):
    phi = ws.DeepRandomFeatures(n, d, depth, width, gaussian="dense", seed=5)
    rows = ws.gaussian_text(n, d, seed=5).rows
    weights = [weight.numpy() for weight in phi.weights]
    found = [ascend(weights, rows.numpy(), word, radius, 6, 20) for word in (0, n - 1)]
    for method in (by_weights, by_law):
        upper = bounds(phi, rows, radius, method, [0, n - 1])
        assert (found <= upper).all() and np.isfinite(upper).all()
    assert min(found) > 0.2 * radius / math.sqrt(d) / n  # the attack is one


def text_built_from_the_weights(phi, n, d, share=0.15):
    """Word 0 is next to nothing; the others make exactly those units active that its first
    coordinate moves most."""
    V = phi.weight
    weight = V[:, 0].abs()
    target = torch.where(weight > weight.quantile(1 - share), 1.0, -1.0).double()
    others = torch.linalg.lstsq(V[:, d:], target.unsqueeze(1)).solution
    rows = torch.cat([torch.full((d, 1), 1e-3, dtype=torch.float64), others]).reshape(n, d)
    return rows / torch.linalg.vector_norm(rows) * math.sqrt(n * d)


def test_a_text_built_from_the_weights_goes_beyond_what_the_law_allows_and_is_told_so():
    n, d, width, radius = 480, 2, 800, 1e-3
    phi = ws.RandomFeatures(n, d, width, gaussian="dense", seed=1)
    rows = text_built_from_the_weights(phi, n, d)
    moved = rows.clone()
    moved[0, 0] += radius * (1 - 1e-9)
    base = phi(rows)
    attained = float(torch.linalg.vector_norm(phi(moved) - base) / torch.linalg.vector_norm(base))
    assert attained > 1.02 * bounds(phi, rows, radius, by_law, [0])[0]
    certificate = ws.certificate(phi, rows, words=0, radius=radius, text_depends_on_weights=True)
    assert certificate is not None and certificate.rigor == "certified"
    assert attained <= certificate.value <= 1.5 * attained
    found = ws.word_sensitivity(
        phi, rows, words=0, radius=radius, text_depends_on_weights=True, search="quick"
    )
    assert found.upper == certificate.value


def test_a_map_without_matrices_has_no_bound_for_a_text_that_depends_on_it():
    phi, X = ws.RandomFeatures(4, 6, gaussian="lazy"), ws.gaussian_text(4, 6)
    lazy = ws.certificate(phi, X)
    assert (
        lazy is not None
        and lazy.rigor
        == "with probability 1 - 1e-9 over the weights, for a text chosen without them"
    )
    assert ws.certificate(phi, X, text_depends_on_weights=True) is None
    with pytest.raises(InputError, match="gaussian='dense'"):
        ws.certify(phi, X, text_depends_on_weights=True)
    found = ws.word_sensitivity(phi, X, text_depends_on_weights=True, search="quick")
    assert found.upper is found.upper_per_word is found.rigor is None
    attention = ws.certificate(ws.RandomAttentionFeatures(6), X, text_depends_on_weights=True)
    assert attention is not None and attention.rigor == "certified"


@pytest.mark.usefixtures("unchecked_types")  # checks triple the time
@pytest.mark.parametrize(
    ("activation", "depth"), [("relu", 1), ("tanh", 1), ("gelu", 1), ("relu", 3), ("erf", 3)]
)
def test_bounds_hold_at_every_radius(activation, depth):
    n, d, words = 4, 5, [0, 3]
    phi = ws.DeepRandomFeatures(n, d, depth, 30, activation, "dense", seed=6)
    X = ws.gaussian_text(n, d, seed=6)
    small = ws.jacobian_sensitivity(phi, X).per_word.numpy()[words]
    base = phi(X.rows)
    for method in (by_weights, by_law):
        for radius in (1e-300, 1e-290, 1e-170, 1e-12):
            upper = bounds(phi, X.rows, radius, method, words)
            assert (upper >= radius * small * (1 - 1e-9)).all()
            if radius >= 1e-290:  # and no looser than at an ordinary small radius
                assert upper / radius == pytest.approx(
                    bounds(phi, X.rows, 1e-9, method, words) / 1e-9, rel=1e-4
                )
        for radius in (1e-3, math.sqrt(d), 1e2 * math.sqrt(d), 1e4 * math.sqrt(d), 1e300):
            upper = bounds(phi, X.rows, radius, method, words)
            directions = torch.randn(
                100, d, generator=torch.Generator().manual_seed(7), dtype=torch.float64
            )
            directions *= (
                radius * (1 - 1e-9) / torch.linalg.vector_norm(directions, dim=1, keepdim=True)
            )
            for word, limit in zip(words, upper, strict=True):
                texts = X.rows.repeat(100, 1, 1)
                texts[:, word] += directions
                moved = phi(texts) - base
                size = moved.abs().max().clamp(min=1e-300)  # squares of 1e300 overflow
                attained = float(
                    (size * torch.linalg.vector_norm(moved / size, dim=1)).max() / base.norm()
                )
                # Differences of features carry rounding errors of some units in the last place.
                assert attained <= limit * (1 + 1e-12) + 1e-14
            assert not np.isnan(upper).any()
