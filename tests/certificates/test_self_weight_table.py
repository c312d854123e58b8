"""Row i from tables of its weights, where scores are not normalized: valid for any multipliers, and tight."""

import math

import numpy as np
import pytest
import torch
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_small_radii import by_hand

import wordsens as ws
from wordsens.certificates.attention import self_weight_table
from wordsens.certificates.attention.bounds import _scaled
from wordsens.certificates.attention.self_weight_table import self_table_bound
from wordsens.certificates.attention.text import attention_text, rounding_errors
from wordsens.maps.attention.scores import Certified, Tabulated, offered
from wordsens.seeds import generator

TABULATED = ("relu-unnormalized", "sigmoid")


def self_changes(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, delta: np.ndarray) -> np.ndarray:
    """How far row `word` moves, for each row of `delta`; `matrix` is W over the scale."""
    texts = np.repeat(rows[None], len(delta), axis=0)
    texts[:, word] += delta
    moved = by_hand(texts, matrix, score)[:, word] - by_hand(rows, matrix, score)[word]
    return np.linalg.norm(moved, axis=1)


def climbed(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, radius: float) -> float:
    """The largest change of row i that random and pointed perturbations and an ascent find."""
    d = rows.shape[1]
    delta = np.concatenate([np.random.default_rng(0).standard_normal((100, d)), rows @ matrix.T, -rows @ matrix.T])
    delta *= radius / np.linalg.norm(delta, axis=1, keepdims=True)
    values = self_changes(rows, matrix, score, word, delta)
    found = values.max()
    for best in delta[values.argsort()[-4:]]:
        for size in (0.5, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05):
            steps = 1e-5 * radius * np.concatenate([np.eye(d), -np.eye(d)])
            around = self_changes(rows, matrix, score, word, best + steps)
            slope = around[:d] - around[d:]
            best = best + size * radius * slope / max(np.linalg.norm(slope), 1e-300)
            best *= radius / np.linalg.norm(best)
            found = max(found, self_changes(rows, matrix, score, word, best[None])[0])
    return float(found)


def prepared(rows: torch.Tensor, phi: ws.RandomAttentionFeatures):
    scaled, heads, _, unit = _scaled(phi, rows)
    score = offered(phi.score, Certified)
    assert score is not None
    text = attention_text(scaled, heads, score)
    errors = rounding_errors(text)
    return text, errors, unit


def tabulated(phi: ws.RandomAttentionFeatures) -> Tabulated:
    score = offered(phi.score, Tabulated)
    assert score is not None
    return score


@pytest.mark.parametrize(("n", "d", "seed"), [(20, 64, 0), (9, 4, 5)])
@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("score", TABULATED)
def test_no_ascent_of_row_i_exceeds_its_bound(score: str, n: int, d: int, seed: int, share: float) -> None:
    rows = gaussian_rows(n, d, seed)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    text, errors, unit = prepared(rows, phi)
    matrix, radius = phi.matrices[0].double().numpy() / math.sqrt(d), share * math.sqrt(d)
    words, reach = torch.tensor([0, n // 2]), torch.full((2,), radius / unit, dtype=torch.float64)
    bounds = self_table_bound(text, tabulated(phi), errors, words, reach) * radius
    for word, bound in zip(words.tolist(), bounds.tolist(), strict=True):
        attained = climbed(rows.numpy(), matrix, score, word, radius)
        assert attained <= bound
        if d == 64 and share < 0.2:
            assert bound <= 1.8 * attained


@pytest.mark.parametrize("score", TABULATED)
def test_any_multipliers_give_a_bound(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, d, word, radius = 8, 12, 3, 0.6
    rows = gaussian_rows(n, d, 1)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=1)
    text, errors, unit = prepared(rows, phi)
    attained = climbed(rows.numpy(), phi.matrices[0].double().numpy() / math.sqrt(d), score, word, radius)
    random = generator(0, "rows")

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def drawn(problem: self_weight_table._Lagrangian) -> self_weight_table._Multipliers:
        size = float(problem.caps.max()) * 10 ** float(draw(1) - 1)
        lam, mu = (size * draw(1).exp() for _ in range(2))
        alpha = 0.5 * draw(1, n) / problem.moved[0].diagonal().mean().sqrt()
        gamma = 0.5 * draw(1, n) / problem.apart.diagonal().mean().sqrt()
        return self_weight_table._Multipliers(lam, mu, alpha, gamma, 0.9 * torch.sigmoid(draw(1)))

    monkeypatch.setattr(self_weight_table, "_search", drawn)
    one = torch.tensor([word]), torch.tensor([radius / unit], dtype=torch.float64)
    for _ in range(60):
        assert float(self_table_bound(text, tabulated(phi), errors, *one)) * radius >= attained
