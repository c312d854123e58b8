"""Lazy maps: forks, single precision, and searches of all words within a budget."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import BudgetError
from wordsens.maps.contract import perturbed_texts
from wordsens.text.synthetic import gaussian_text

N, D = 6, 10


@pytest.mark.parametrize("depth", [1, 3])
def test_searches_fork_from_one_state(depth):
    """Two searches from one state agree; a search of the fork leaves the map as it was."""
    phi = ws.DeepRandomFeatures(N, D, depth, gaussian="lazy")
    X, Y = gaussian_text(N, D, 0), gaussian_text(N, D, 1)
    features, asked = phi(X), [layer.queries for layer in phi.layers]
    first, second, other = phi.fork(), phi.fork(), phi.fork(seed=5)
    found = [ws.word_sensitivity(fork, X, words=[1]) for fork in (first, second, other)]
    assert torch.equal(found[0].perturbations, found[1].perturbations)
    assert not torch.allclose(found[0].per_word, found[2].per_word, rtol=1e-6, atol=0)
    for fork in (first, second, other):
        torch.testing.assert_close(fork(X), features)
    assert [layer.queries for layer in phi.layers] == asked
    assert torch.equal(phi.fork()(Y), phi(Y))


def test_a_fork_of_a_dense_map_is_the_same_map():
    phi = ws.DeepRandomFeatures(N, D, 2, gaussian="dense")
    X = gaussian_text(N, D).rows
    assert torch.equal(phi.fork(seed=3)(X), phi(X))


@pytest.mark.parametrize("depth", [1, 2])
def test_single_precision_gives_one_matrix_to_its_own_rounding(depth):
    """The witness, recomputed through the map, gives what the search saw; the value is that of a float64 map in law."""
    phi = ws.DeepRandomFeatures(20, 24, depth, gaussian="lazy", dtype=torch.float32)
    X = gaussian_text(20, 24)
    r = ws.word_sensitivity(phi, X, words=[3])
    rows = phi.accept(X.rows)
    moved = perturbed_texts(rows, r.words.unsqueeze(1), r.perturbations.unsqueeze(1))
    seen = phi.word_change(X.rows).squared_norm(r.perturbations, r.words).sqrt() / phi(rows).norm()
    again = (phi(moved) - phi(rows)).norm(dim=1) / phi(rows).norm()
    assert moved.dtype == phi(moved).dtype == torch.float32
    # Float32 features differ by rounding of 6e-8 sqrt(20) of a change; 3e-5 leaves room for a hundred products.
    torch.testing.assert_close(again, seen, rtol=3e-5, atol=0)
    double = [
        ws.word_sensitivity(ws.DeepRandomFeatures(20, 24, depth, gaussian="lazy", seed=seed), X, words=[3]).value
        for seed in range(6)
    ]
    # Over matrices S has a deviation of about 0.012: five of them.
    assert r.value == pytest.approx(sum(double) / 6, abs=0.06)


def test_all_words_fit_a_budget_that_one_search_each_would_pass():
    """The block of a word that is done is sealed once half of the budget is used; witnesses stay answerable."""
    n, d, limit = 20, 24, 4 << 20
    X = gaussian_text(n, d)
    free = ws.RandomFeatures(n, d, gaussian="lazy")
    tight = ws.RandomFeatures(n, d, gaussian="lazy", gaussian_bytes=limit)
    expected = ws.word_sensitivity(free, X, memory_budget=1)
    assert free.layers[0].bytes > limit
    r = ws.word_sensitivity(tight, X, memory_budget=1)
    torch.testing.assert_close(r.per_word, expected.per_word, rtol=1e-6, atol=0)
    assert tight.layers[0].bytes <= limit
    again = (phi_of(tight, X, r) - tight(X.rows)).norm(dim=1) / tight(X.rows).norm()
    torch.testing.assert_close(again, r.per_word)
    with pytest.raises(BudgetError, match="was sealed when its search was over"):
        tight(perturbed_texts(X.rows, torch.tensor([[n - 1]]), r.perturbations[-1:].flip(1).unsqueeze(1)))


def phi_of(phi, X, r):
    """The features at the witnesses."""
    return phi(perturbed_texts(X.rows, r.words.unsqueeze(1), r.perturbations.unsqueeze(1)))
