"""The sweep over z: places that are left unsearched cost nothing, and Newton systems are solved as plain NumPy does."""

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.certificates.attention import multipliers
from wordsens.certificates.attention.multipliers import MultiplierSearch
from wordsens.certificates.attention.text import attention_text
from wordsens.maps.attention.scores import Certified, offered


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_bounds_are_those_of_a_search_at_every_place_or_lower(score, monkeypatch):
    phi, X = ws.RandomAttentionFeatures(48, score, seed=3), ws.gaussian_text(24, 48, seed=4)
    searched = []
    improve = MultiplierSearch.improve
    monkeypatch.setattr(
        MultiplierSearch,
        "improve",
        lambda *given, **more: searched.append(len(given[2].lam)) or improve(*given, **more),
    )
    bounds = ws.certify(phi, X)
    few = sum(searched)
    searched.clear()
    monkeypatch.setattr(multipliers._Sweep, "_without_search", lambda *given: None)
    everywhere = ws.certify(phi, X)
    assert few < 0.8 * sum(searched)
    assert bool((bounds <= everywhere * (1 + 1e-9)).all())
    assert bool((bounds >= 0.9 * everywhere).all())


def test_newton_systems_are_solved():
    """(S - h h^T / k + diag(c)) x = b over the rows that count, S = U (I - a U^T U)^-1 U^T, in at most 8 unknowns."""
    phi, X = ws.RandomAttentionFeatures(16, seed=1), ws.gaussian_text(7, 16, seed=2)
    text = attention_text(X.rows, phi.head_weights(7, torch.float64, isometric=True), offered(phi.score, Certified))
    search, stream = MultiplierSearch(text.geometry), np.random.default_rng(5)
    sides, h, curvature = stream.normal(size=(2, 3, 7)), stream.normal(size=(3, 7)), stream.uniform(1, 3, size=(3, 7))
    counted = 1 - np.eye(7)[[1, 4, 6]]
    k = 9 + h.shape[1] * (h**2).sum(axis=1)
    push = multipliers._Push(torch.from_numpy(h), torch.from_numpy(k))
    found = search._solve(
        torch.from_numpy(sides * counted), torch.from_numpy(curvature), push, torch.from_numpy(counted)
    ).numpy()
    U, a = text.geometry.queries.numpy(), text.geometry.score_weight
    S = U @ np.linalg.inv(np.eye(16) - a * U.T @ U) @ U.T
    for word in range(3):
        rows = counted[word] > 0
        system = S - np.outer(h[word], h[word]) / k[word] + np.diag(curvature[word])
        right = np.linalg.solve(system[np.ix_(rows, rows)], sides[:, word, rows].T).T
        np.testing.assert_allclose(found[:, word, rows], right, rtol=1e-9, atol=1e-12)
        assert not found[:, word, ~rows].any()
    coarse = search._solved(*(torch.from_numpy(array) for array in (1e-30 * sides * counted, curvature)), push,
                            torch.from_numpy(counted)).numpy()  # fmt: skip
    np.testing.assert_allclose(1e30 * coarse, found, rtol=1e-5, atol=1e-6)
    steep = search._solved(*(torch.from_numpy(array) for array in (sides * counted, 1e30 * curvature)), push,
                           torch.from_numpy(counted)).numpy()  # fmt: skip
    np.testing.assert_allclose(1e30 * steep, sides * counted / curvature, rtol=1e-9, atol=1e-12)
