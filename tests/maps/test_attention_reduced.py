"""Attention's change in few coordinates, with and without the word's own row: against the definition."""

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


def reduced_of(phi, X, *, own_row=False):
    change = phi.word_change(X)
    return ReducedAttentionChange(change.rows, change.heads, change.memory_budget, own_row=own_row)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    n=st.integers(2, 8),
    d=st.integers(2, 9),
    heads=st.integers(1, 2),
    score=st.sampled_from(sorted(SCORES)),
    temperature=st.sampled_from([1.0, 0.05]),
    own_row=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_is_the_change_of_the_other_rows_or_of_all(n, d, heads, score, temperature, own_row, seed):
    X = gaussian(n, d, seed=seed)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed, heads=heads, temperature=temperature)
    if float(phi(X).norm()) == 0:
        return
    reduced = reduced_of(phi, X, own_row=own_row)
    words = torch.arange(n).repeat(2)
    points = gaussian(2 * n, *reduced.shape, seed=seed + 1)
    delta = points @ reduced.basis
    change = (phi(perturbed_texts(X, words.unsqueeze(1), delta.unsqueeze(1))) - phi(X)).view(2 * n, heads, n, d)
    if not own_row:
        change[torch.arange(2 * n), :, words] = 0
    wanted = change.square().sum(dim=(1, 2, 3))
    torch.testing.assert_close(reduced.value(points, words), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("own_row", [False, True])
@pytest.mark.parametrize("score", sorted(SCORES))
def test_the_gradient(score, own_row):
    X, phi = gaussian(6, 9, seed=1), ws.RandomAttentionFeatures(9, score=score, seed=1)
    reduced, words = reduced_of(phi, X, own_row=own_row), torch.arange(6)
    points = gaussian(6, *reduced.shape, seed=2)
    _, slope = reduced.value_and_gradient(points, words)
    step = 1e-6
    for at in range(reduced.shape[0]):
        ahead, behind = points.clone(), points.clone()
        ahead[:, at] += step
        behind[:, at] -= step
        numeric = (reduced.value(ahead, words) - reduced.value(behind, words)) / (2 * step)
        torch.testing.assert_close(slope[:, at], numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("own_row", [False, True])
def test_a_dominated_row_keeps_its_digits(own_row):
    """Scores in the hundreds: rows that one word takes all of."""
    X = 20 * gaussian(5, 8, seed=3)
    phi = ws.RandomAttentionFeatures(8, seed=3)
    assert float(phi.attention(X).max()) > 1 - 1e-12
    reduced, words = reduced_of(phi, X, own_row=own_row), torch.arange(5)
    points = gaussian(5, *reduced.shape, seed=4)
    change = phi(perturbed_texts(X, words.unsqueeze(1), (points @ reduced.basis).unsqueeze(1))) - phi(X)
    if not own_row:
        change[words, words] = 0
    wanted = change.square().sum(dim=(1, 2))
    torch.testing.assert_close(reduced.value(points, words), wanted, rtol=1e-9, atol=1e-9)


def test_fewer_coordinates_where_the_text_is_short():
    X = gaussian(5, 9, seed=0)
    assert reduced_of(ws.RandomAttentionFeatures(9), X).shape == (5,)
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
    assert reduced.shape == (66,)
    assert len(reduced.softened(torch.full((60,), 192.0), [0.3])) == 1
    assert torch.equal(reduced.softened(torch.full((60,), 192.0), [0.3])[0].basis, reduced.basis)
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
