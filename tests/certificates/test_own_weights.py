"""The word's own row from tables of its weights: valid for any multipliers, and near what an ascent finds."""

import math

import numpy as np
import pytest
import torch
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_small_radii import by_hand

import wordsens as ws
from wordsens.certificates.attention.bounds import _scaled
from wordsens.certificates.attention.own_lagrangian import OwnLagrangian, OwnMultipliers
from wordsens.certificates.attention.own_weights import OwnRows, own_weights_bound
from wordsens.certificates.attention.quadratic_bound import QuadraticBound
from wordsens.certificates.attention.rounding import rounding_errors
from wordsens.certificates.attention.text import attention_text
from wordsens.maps.attention.scores import Certified, Tabulated, offered
from wordsens.seeds import generator

TABULATED = ("softmax", "relu", "relu-unnormalized", "sigmoid")


def own_changes(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, delta: np.ndarray) -> np.ndarray:
    """How far row `word` moves, for each row of `delta`; `matrix` is W over the scale."""
    texts = np.repeat(rows[None], len(delta), axis=0)
    texts[:, word] += delta
    moved = by_hand(texts, matrix, score)[:, word] - by_hand(rows, matrix, score)[word]
    return np.linalg.norm(moved, axis=1)


def climbed(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, radius: float) -> float:
    """The largest change of the own row that random and pointed perturbations and an ascent find."""
    d = rows.shape[1]
    delta = np.concatenate([np.random.default_rng(0).standard_normal((100, d)), rows @ matrix.T, -rows @ matrix.T])
    delta *= radius / np.linalg.norm(delta, axis=1, keepdims=True)
    values = own_changes(rows, matrix, score, word, delta)
    found = values.max()
    for best in delta[values.argsort()[-4:]]:
        for size in (0.5, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05):
            steps = 1e-5 * radius * np.concatenate([np.eye(d), -np.eye(d)])
            around = own_changes(rows, matrix, score, word, best + steps)
            slope = around[:d] - around[d:]
            best = best + size * radius * slope / max(np.linalg.norm(slope), 1e-300)
            best *= radius / np.linalg.norm(best)
            found = max(found, own_changes(rows, matrix, score, word, best[None])[0])
    return float(found)


def prepared(rows: torch.Tensor, phi: ws.RandomAttentionFeatures):
    scaled, heads, unit = _scaled(phi, rows)
    score = offered(phi.score, Certified)
    assert score is not None
    text = attention_text(scaled, [head.weights for head in heads], score)
    errors = rounding_errors(text)
    return text, errors, QuadraticBound(text, errors).twist, unit


@pytest.mark.slow_cases("*-20-64-0", "*-6-16-3", "*-0.15-9-4-5", "relu-unnormalized-*")
@pytest.mark.parametrize(("n", "d", "seed"), [(20, 64, 0), (6, 16, 3), (9, 4, 5)])
@pytest.mark.parametrize("share", [0.05, 0.15, 0.3, 0.4])
@pytest.mark.parametrize("score", TABULATED)
def test_no_climb_of_the_own_row_exceeds_its_bound(score: str, n: int, d: int, seed: int, share: float) -> None:
    rows = gaussian_rows(n, d, seed)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    text, errors, twist, unit = prepared(rows, phi)
    matrix, radius = phi.matrices[0].double().numpy() / math.sqrt(d), share * math.sqrt(d)
    words = torch.tensor([0, n // 2])
    bounds = (
        own_weights_bound(text, errors, twist, words, torch.full((2,), radius / unit, dtype=torch.float64)) * radius
    )
    for word, bound in zip(words.tolist(), bounds.tolist(), strict=True):
        found = climbed(rows.numpy(), matrix, score, word, radius)
        assert found <= bound
        if d == 64 and score == "softmax" and share < 0.4:
            assert bound <= 1.75 * found
        elif d == 64 and share < 0.2:
            assert bound <= 1.8 * found


@pytest.mark.parametrize("score", TABULATED)
def test_any_multipliers_give_a_bound(score: str) -> None:
    n, d, word, radius = 8, 12, 3, 0.6
    rows = gaussian_rows(n, d, 1)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=1)
    text, errors, twist, unit = prepared(rows, phi)
    tabulated = offered(phi.score, Tabulated)
    assert tabulated is not None
    problem = OwnRows(text, tabulated, errors, float(twist[0]), 0).problem(
        torch.tensor([word]), torch.tensor([radius / unit], dtype=torch.float64)
    )
    assert problem is not None
    lagrangian = problem.rows
    found = climbed(rows.numpy(), phi.matrices[0].double().numpy() / math.sqrt(d), score, word, radius)
    random = generator(0, "rows")
    count = lagrangian.least.shape[1]

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    for _ in range(300):
        size = float(lagrangian.caps.max()) * 10 ** float(draw(1) - 1)
        lam, mu = (size * draw(1, count).exp() for _ in range(2))
        alpha = 0.5 * draw(1, count, n) / lagrangian.moved[0].diagonal().mean().sqrt()
        gamma = 0.5 * draw(1, count, n) / lagrangian.apart[0].diagonal().mean().sqrt()
        s = -size * draw(1, count).abs() * lagrangian.divided
        nu = 0.9 * torch.sigmoid(draw(1, count))
        bound = lagrangian.bound(OwnMultipliers(lam, mu, alpha, gamma, s, nu))
        assert (float(bound.max()) + float(problem.error)) * unit >= found


@pytest.mark.slow_cases("relu*")
@pytest.mark.parametrize("score", TABULATED)
def test_the_terms_that_hold_y_and_b_are_needed(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without lam and mu, which charge for ‖y‖ and ‖b‖, the bound falls below what is attained."""
    rows, radius = gaussian_rows(20, 64, 0), 0.15 * 8
    phi = ws.RandomAttentionFeatures(64, score=score, seed=0)
    text, errors, twist, unit = prepared(rows, phi)
    found = climbed(rows.numpy(), phi.matrices[0].double().numpy() / 8, score, 6, radius)
    arguments = (text, errors, twist, torch.tensor([6]), torch.tensor([radius / unit], dtype=torch.float64))
    assert found <= float(own_weights_bound(*arguments)) * radius
    monkeypatch.setattr(OwnLagrangian, "_outside", lambda self, by: 0 * by.lam)
    assert found > float(own_weights_bound(*arguments)) * radius
