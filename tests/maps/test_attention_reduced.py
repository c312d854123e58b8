"""Attention's change in few coordinates, exact and sketched: against the definition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.maps.attention.reduced import ReducedAttentionChange
from wordsens.maps.attention.scores import SCORES
from wordsens.maps.mapping import perturbed_texts


def gaussian(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def reduced_of(phi, X, *, exact=False):
    change = phi.word_change(X)
    return ReducedAttentionChange(change.rows, change.heads, change.memory_budget, exact=exact)


def scores_of(phi, X):
    return phi.scores(X).view(-1, len(X), len(X))


def sketched(phi, X, words, delta):
    """sum_j ‖change of row j‖², row i's with its scores with other words as they were, where r_ji . Delta is replaced.

    Rows are attended to plainly. Of a row, p and a its weights of word i after and before, 2 p g r . Delta with
    g r = (p - a) (x_i - m), m its output without word i, becomes 2 p g (x_i - c) . Delta, g = (p - a) / (1 - a), or
    p - a where a > 1/2, and c the mean of the outputs. Of scores that are not divided nothing is replaced.
    """
    found = []
    for word, step in zip(words.tolist(), delta, strict=True):
        moved = X.clone()
        moved[word] += step
        total = 0.0
        for before, after in zip(scores_of(phi, X), scores_of(phi, moved), strict=True):
            scores = before.clone()
            scores[:, word] = after[:, word]
            old, new = phi.score.attention(before), phi.score.attention(scores)
            total = total + (new @ moved - old @ X).square().sum()
            if phi.score.normalized:
                p, a = new[:, word], old[:, word]
                others = old.clone()
                others[:, word] = 0
                missing = torch.where(others.sum(dim=1) > 0, others.sum(dim=1), 1.0)
                rest = X[word] - (others @ X) / missing.unsqueeze(1)
                rest[old.sum(dim=1) == 0] = X[word]
                gain = torch.where(a > 0.5, p - a, (p - a) / (1 - a).clamp(min=0.5))
                about = (X[word] - (old @ X).mean(dim=0)) @ step
                total = total + (2 * p * (gain * about - (p - a) * (rest @ step))).sum()
        found.append(total)
    return torch.stack(found)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    n=st.integers(2, 8),
    d=st.integers(2, 9),
    heads=st.integers(1, 2),
    score=st.sampled_from(sorted(SCORES)),
    temperature=st.sampled_from([1.0, 0.05]),
    exact=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_is_the_change_or_its_sketch(n, d, heads, score, temperature, exact, seed):
    X = gaussian(n, d, seed=seed)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed, heads=heads, temperature=temperature)
    if float(phi(X).norm()) == 0:
        return
    reduced = reduced_of(phi, X, exact=exact)
    words = torch.arange(n).repeat(2)
    points = gaussian(2 * n, *reduced.shape, seed=seed + 1)
    delta = reduced.raised(points, words)
    torch.testing.assert_close(reduced.lowered(delta, words), points, rtol=1e-9, atol=1e-9)
    change = (phi(perturbed_texts(X, words.unsqueeze(1), delta.unsqueeze(1))) - phi(X)).flatten(start_dim=1)
    wanted = change.square().sum(dim=1) if exact else sketched(phi, X, words, delta)
    torch.testing.assert_close(reduced.value(points, words), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("score", sorted(SCORES))
def test_the_gradient(score, exact):
    X, phi = gaussian(6, 9, seed=1), ws.RandomAttentionFeatures(9, score=score, seed=1)
    reduced, words = reduced_of(phi, X, exact=exact), torch.arange(6)
    points = gaussian(6, *reduced.shape, seed=2)
    _, slope = reduced.value_and_gradient(points, words)
    step = 1e-6
    for at in range(reduced.shape[0]):
        ahead, behind = points.clone(), points.clone()
        ahead[:, at] += step
        behind[:, at] -= step
        numeric = (reduced.value(ahead, words) - reduced.value(behind, words)) / (2 * step)
        torch.testing.assert_close(slope[:, at], numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("exact", [False, True])
def test_a_dominated_row_keeps_its_digits(exact):
    """Scores in the hundreds: rows that one word takes all of."""
    X = 20 * gaussian(5, 8, seed=3)
    phi = ws.RandomAttentionFeatures(8, seed=3)
    assert float(phi.attention(X).max()) > 1 - 1e-12
    reduced, words = reduced_of(phi, X, exact=exact), torch.arange(5)
    points = gaussian(5, *reduced.shape, seed=4)
    delta = reduced.raised(points, words)
    change = phi(perturbed_texts(X, words.unsqueeze(1), delta.unsqueeze(1))) - phi(X)
    wanted = change.square().sum(dim=(1, 2)) if exact else sketched(phi, X, words, delta)
    torch.testing.assert_close(reduced.value(points, words), wanted, rtol=1e-9, atol=1e-9)


def test_fewer_coordinates_where_the_text_is_short():
    X = gaussian(5, 9, seed=0)
    assert reduced_of(ws.RandomAttentionFeatures(9), X).shape == (5,)
    # With row i: the two top eigenvectors, of which four ends, and an axis or two a word, as far as there is room.
    assert reduced_of(ws.RandomAttentionFeatures(19), gaussian(5, 19, seed=0), exact=True).shape == (5 + 6 + 2,)
    assert reduced_of(ws.RandomAttentionFeatures(9, heads=2), X).shape == (9,)
    assert reduced_of(ws.RandomAttentionFeatures(9), gaussian(12, 9, seed=0)).shape == (9,)


def test_long_texts_are_explored_so_and_short_ones_are_not():
    phi = ws.RandomAttentionFeatures(16)
    assert phi.word_change(ws.gaussian_text(199, 16).rows).reduced() is None
    assert phi.word_change(ws.gaussian_text(200, 16).rows).reduced() is not None


def test_a_short_text_is_explored_in_the_span_of_its_scores():
    change = ws.RandomAttentionFeatures(192).word_change(ws.gaussian_text(60, 192).rows)
    reduced = change.reduced()
    assert reduced.exact
    assert reduced.shape == (68,)
    assert len(reduced.softened(torch.full((60,), 192.0), [0.3])) == 1
    assert torch.equal(reduced.softened(torch.full((60,), 192.0), [0.3])[0].axes, reduced.axes)
    # Too few coordinates to spare; a small text, searched widely; own rows that need other directions.
    for score, n, d in (("softmax", 150, 192), ("softmax", 40, 192), ("relu", 60, 192), ("linear", 60, 192)):
        change = ws.RandomAttentionFeatures(d, score=score).word_change(ws.gaussian_text(n, d).rows)
        assert change.reduced() is None, (score, n)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_a_short_text_loses_little(monkeypatch):
    """The search in the span of the scores finds what the one in all coordinates does, in the mean over the words."""
    X, phi = ws.gaussian_text(40, 256, seed=3).rows, ws.RandomAttentionFeatures(256, seed=3)
    found = ws.word_sensitivity(phi, X, certificate=False)
    monkeypatch.setattr("wordsens.maps.attention.word_change._SHORTER", 100)
    whole = ws.word_sensitivity(phi, X, certificate=False)
    ratios = found.per_word / whole.per_word
    assert float(ratios.mean()) > 0.995
    assert float(ratios.min()) > 0.97


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_a_long_text_loses_nothing(monkeypatch):
    """The search in fewer coordinates finds what the whole one does, in the mean over the words of a text of 200."""
    X, phi = ws.gaussian_text(200, 256, seed=2).rows, ws.RandomAttentionFeatures(256, seed=2)
    found = ws.word_sensitivity(phi, X, certificate=False)
    monkeypatch.setattr("wordsens.maps.attention.word_change._LEAST_REDUCED", 10**6)
    whole = ws.word_sensitivity(phi, X, certificate=False, search=ws.SearchPlan(starts=24, generations=2))
    ratios = found.per_word / whole.per_word
    assert float(ratios.mean()) > 0.995
    assert float(ratios.min()) > 0.95


def test_kinks_are_searched_in_all_coordinates():
    """Under ReLU the changed word's own row may hold most of the change."""
    assert ws.RandomAttentionFeatures(16, score="relu").word_change(ws.gaussian_text(200, 16).rows).reduced() is None
