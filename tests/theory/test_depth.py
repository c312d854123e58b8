"""The average case by layer against closed forms and Monte Carlo over weights; attention alone
where it collapses."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.theory import average_by_layer


def test_uniform_attention_has_a_closed_form():
    # At a huge temperature every weight is 1/n. With values and a residual, K becomes K + 1 (1' K 1
    # / n²) 1'.
    text, n, d = ws.gaussian_text(5, 20, seed=1), 5, 20
    phi = ws.RandomTransformer(d, 1, norm=None, temperature=1e9)
    gram = text.rows @ text.rows.T / d
    before = gram.trace() + n * gram.mean()
    radius = 3.0
    expected = math.sqrt(radius**2 / d * (1 + 1 / n) / before)
    predicted, error = average_by_layer(phi, text, 2, radius, paths=3)
    assert predicted.item() == pytest.approx(expected, rel=1e-6)
    assert error.item() < 1e-6  # scores count for nothing here


KINDS = [
    {"residual": False, "norm": None},
    {"norm": None, "values": False},
    {"norm": None, "head_dimension": 4},
    {"norm": None},
    {"residual": False, "norm": None, "values": True},
    {"norm": "pre", "mlp": 384},
    {"norm": "post", "heads": 4, "mlp": 384},
    {"norm": "pre", "score": "relu", "temperature": 0.5},
    {"norm": "pre", "causal": True},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_law_is_that_of_random_weights(kind):
    """Means over 60 seeds within four standard errors (of both) plus 4 % for d = 192: 27
    comparisons, a false alarm in 500 runs at most, were there no bias."""
    n, d, depth, word = 5, 192, 3, 1
    text = ws.gaussian_text(n, d, seed=2).rows
    moved, changes = torch.Generator().manual_seed(3), []
    for seed in range(60):
        phi = ws.RandomTransformer(d, depth, seed=seed, **kind)
        other = text.clone()
        delta = torch.randn(d, generator=moved, dtype=torch.float64)
        other[word] += math.sqrt(d) * delta / delta.norm()
        pairs = zip(phi.states(text)[1:], phi.states(other)[1:], strict=True)
        changes.append(
            [((after - before).norm() / before.norm()).item() for before, after in pairs]
        )
    measured = torch.tensor(changes, dtype=torch.float64)
    predicted, predicted_error = average_by_layer(phi, text, word, paths=120)
    error = (measured.var(dim=0) / 60 + predicted_error.square()).sqrt()
    assert ((measured.mean(dim=0) - predicted).abs() <= 4 * error + 0.04 * predicted).all()


@pytest.mark.parametrize("kind", [{"tied": True}, {"attention": "l2"}], ids=str)
def test_only_untied_dot_products_have_the_law(kind):
    with pytest.raises(InputError, match=r"tied=.*untied dot products"):
        average_by_layer(ws.RandomTransformer(8, 1, **kind), ws.gaussian_text(3, 8, seed=0), 0)


def test_the_standard_error_is_the_scatter_of_the_means():
    """Forty seeds of eight paths: the ratio of the two has a standard deviation of .13 (chi with 39
    degrees of freedom, and with 280); within .5, a false alarm in 5,000."""
    phi, text = ws.RandomTransformer(32, 2, norm=None), ws.gaussian_text(4, 32, seed=2)
    found = [average_by_layer(phi, text, 1, seed=seed, paths=8) for seed in range(40)]
    means, errors = (torch.stack(part) for part in zip(*found, strict=True))
    ratio = errors.square().mean(dim=0).sqrt() / means.std(dim=0)
    assert ((ratio - 1).abs() < 0.5).all()


def test_attention_alone_changes_no_more_once_its_rows_are_equal():
    """docs/theory/depth.md, proposition 1, for the witness of a search and for random moves, every
    l <= m."""
    n, d, depth, rounding = 8, 24, 6, 1e-10
    phi, text = (
        ws.RandomTransformer(d, depth, residual=False, norm=None, seed=4),
        ws.gaussian_text(n, d, seed=5).rows,
    )
    witness = ws.word_sensitivity(phi, text, [3], search="quick", certificate=False).perturbations[
        0
    ]
    stream = torch.Generator().manual_seed(6)
    for delta in (witness, torch.randn(d, generator=stream, dtype=torch.float64)):
        other = text.clone()
        other[3] += delta
        before, after = phi.states(text), phi.states(other)
        for layer in range(1, depth + 1):
            apart = sum(torch.cdist(rows[layer], rows[layer]).max() for rows in (before, after))
            means = n**0.5 * (after[layer].mean(dim=0) - before[layer].mean(dim=0)).norm()
            for later in range(layer, depth + 1):
                assert (
                    (after[later] - before[later]).norm() - means
                ).abs() <= n**0.5 * apart + rounding


def attention_alone(rows, matrix, temperature, causal):
    """One layer of softmax attention in NumPy, and its largest score in size."""
    n, d = rows.shape
    scores = rows @ matrix @ rows.T / (temperature * math.sqrt(d))
    seen = np.tril(np.ones((n, n), dtype=bool)) if causal else np.ones((n, n), dtype=bool)
    weights = np.where(seen, np.exp(scores - scores.max(axis=1, keepdims=True)), 0.0)
    return weights / weights.sum(axis=1, keepdims=True) @ rows, np.abs(scores[seen]).max()


def from_first(rows):
    return np.linalg.norm(rows - rows[0], axis=1).max()


def diameter(rows):
    return np.linalg.norm(rows[:, None] - rows, axis=2).max()


@pytest.mark.parametrize(("causal", "apart"), [(False, diameter), (True, from_first)])
def test_every_layer_of_attention_alone_draws_the_rows_together(causal, apart):
    """The rates of docs/theory/depth.md, propositions 1 and 2, on 240 texts of eight layers each,
    whose scores are near 0 in some layers and large in others; the map is that of plain NumPy."""
    random = np.random.default_rng(0)
    for seed in range(240):
        n, d = random.integers(2, 12), random.integers(2, 20)
        temperature = 10 ** random.uniform(-0.5, 0.5)
        rows = 10 ** random.uniform(-1, 0.5) * random.standard_normal((n, d))
        phi = ws.RandomTransformer(
            d, 8, residual=False, norm=None, causal=causal, temperature=temperature, seed=seed
        )
        for weights in phi.layers:
            weights.scores.mul_(10 ** random.uniform(-2, 0.5))
        states = phi.states(torch.from_numpy(rows))
        longest = np.linalg.norm(rows, axis=1).max()
        for weights, mapped in zip(phi.layers, states[1:], strict=True):
            matrix = weights.scores[0].numpy()
            after, s = attention_alone(rows, matrix, temperature, causal)
            most = longest**2 * np.linalg.norm(matrix, 2) / (temperature * math.sqrt(d))
            assert s <= most * (1 + 1e-12)
            share = math.exp(-2 * s) / (n if causal else 1)
            assert apart(after) <= (1 - share) * apart(rows) + 1e-14 * longest
            assert np.allclose(mapped, after, rtol=1e-9, atol=1e-12)
            assert not causal or np.array_equal(mapped[0], states[0][0])
            rows = mapped.numpy()


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_under_a_causal_mask_only_the_first_word_is_left(share):
    """Behind 60 layers rows differ by less than 1e-9: S of word 1 is radius / ‖x_1‖ for every Delta
    on the sphere, and 0 of the others, also by a search."""
    phi = ws.RandomTransformer(16, 60, residual=False, norm=None, causal=True, seed=1)
    text = ws.gaussian_text(6, 16, seed=2).rows
    found = ws.word_sensitivity(phi, text, radius=share * 4.0, search="quick", certificate=False)
    assert from_first(phi(text).numpy()) < 1e-9
    assert found.per_word[0].item() == pytest.approx(share * 4.0 / text[0].norm().item(), abs=1e-6)
    assert found.per_word[1:].max().item() < 1e-6


def test_with_values_rows_become_equal_too():
    """The conjecture of docs/theory/depth.md on 20 networks: no two rows farther apart than 1e-4 of
    their mean's length."""
    for seed in range(20):
        phi = ws.RandomTransformer(32, 12, residual=False, norm=None, values=True, seed=seed)
        rows = phi(ws.gaussian_text(10, 32, seed=seed))
        assert torch.cdist(rows, rows).max() < 1e-4 * rows.mean(dim=0).norm()
