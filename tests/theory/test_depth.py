"""The average case by layer against closed forms and Monte Carlo over weights; attention alone
where it collapses."""

import math

import pytest
import torch

import wordsens as ws
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
        # Distances shrink at least as the weights' least share says, whatever the text in the ball.
        longest = max(rows[0].norm(dim=1).max() for rows in (before, after))
        for layer, weights in enumerate(phi.layers):
            share = torch.exp(
                -2 * longest.square() * torch.linalg.matrix_norm(weights.scores[0], 2) / d**0.5
            )
            for rows in (before, after):
                apart, next_apart = (
                    torch.cdist(rows[at], rows[at]).max() for at in (layer, layer + 1)
                )
                assert next_apart <= (1 - share) * apart + rounding
        for layer in range(1, depth + 1):
            apart = sum(torch.cdist(rows[layer], rows[layer]).max() for rows in (before, after))
            means = n**0.5 * (after[layer].mean(dim=0) - before[layer].mean(dim=0)).norm()
            for later in range(layer, depth + 1):
                assert (
                    (after[later] - before[later]).norm() - means
                ).abs() <= n**0.5 * apart + rounding
