"""Maps that are steps, or nearly, within the ball, against every point of a fine grid: d = 2, in plain NumPy."""

import math

import numpy as np
import pytest
import torch
from wordsens.maps.attention.candidates import candidates

import wordsens as ws
from wordsens.maps.attention.word_change import AttentionWordChange
from wordsens.maps.plain_change import PlainWordChange
from wordsens.search.ball import Ball
from wordsens.search.krylov import krylov_search
from wordsens.search.linear_entry import LinearEntryObjective
from wordsens.seeds import generator


class Tanh(ws.Score):
    """tanh(s_l), not divided: no closed form."""

    name, normalized = "tanh", False

    def attention(self, scores):
        return scores.tanh()


class Squares(ws.Score):
    """s_l² divided by their sum: its temperature changes nothing."""

    name, normalized = "squares", True

    def attention(self, scores):
        return scores.square() / scores.square().sum(dim=-1, keepdim=True)


def argmax_weights(scores):
    """The limit of softmax as the temperature goes to zero."""
    return (scores == scores.max(axis=-1, keepdims=True)).astype(float)


def grid_values(X, W, word, radius):
    """‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ on 60 circles of 360 points."""
    lengths, angles = np.meshgrid(np.linspace(0, 1, 61)[1:], np.linspace(0, 2 * math.pi, 361)[:-1])
    delta = radius * (lengths * np.stack([np.cos(angles), np.sin(angles)])).reshape(2, -1).T
    texts = np.repeat(X[None], len(delta), axis=0)
    texts[:, word] += delta
    base = argmax_weights(X @ W @ X.T) @ X
    change = argmax_weights(texts @ W @ texts.transpose(0, 2, 1)) @ texts - base
    return np.linalg.norm(change, axis=(1, 2)) / np.linalg.norm(base)


@pytest.mark.parametrize(("n", "radius", "huge"), [(3, 1.4, 1.0), (4, 0.1, 1e4)])
def test_softmax_that_is_a_step(n, radius, huge):
    """At a temperature of 1e-20 squares left float32: .6 of the best point of the first, nothing of the second."""
    X = ws.gaussian_text(n, 2, seed=0).rows.numpy().copy()
    X[1] *= huge
    phi = ws.RandomAttentionFeatures(2, seed=1, temperature=1e-20)
    found = ws.word_sensitivity(phi, X, radius=radius, certificate=False)
    for word in range(n):
        best = grid_values(X, phi.weight.numpy(), word, radius).max()
        assert float(found.per_word[word]) >= 0.99 * best


def test_rows_that_a_word_just_reaches():
    """Five rows alike, and a radius 1 % past where one word draws them all: .70 of that point in float32, whose
    rounding was more than the scores' way past the edge."""
    X = ws.gaussian_text(10, 8, seed=10).rows.numpy().copy()
    X[:5] = X[0]
    phi = ws.RandomAttentionFeatures(8, seed=10, temperature=1e-10)
    W = phi.weight.numpy()
    scores, drawn = X @ W @ X.T, W.T @ X[0]
    radius = 1.01 * (scores[0].max() - scores[0, 1]) / np.linalg.norm(drawn)
    moved = X.copy()
    moved[1] += radius * drawn / np.linalg.norm(drawn)
    outputs = []
    for text in (X, moved):
        weights = argmax_weights(text @ W @ text.T)
        outputs.append(weights / weights.sum(axis=1, keepdims=True) @ text)
    there = np.linalg.norm(outputs[1] - outputs[0]) / np.linalg.norm(outputs[0])
    found = ws.word_sensitivity(phi, X, [1], radius, certificate=False)
    assert float(found.per_word) >= 0.999 * there


@pytest.mark.parametrize("temperature", [1.0, 1e9])
def test_squared_scores_beside_a_huge_row(temperature):
    """Against the Jacobian's leading direction, mapped in long doubles; word 2 was at .31 of it in float32."""
    n, d = 6, 8
    X = ws.gaussian_text(n, d, seed=0).rows.clone()
    X[1] *= 2e4
    phi = ws.RandomAttentionFeatures(d, Squares(), seed=0, temperature=temperature)
    radius = 0.02 * math.sqrt(d)
    found = ws.word_sensitivity(phi, X, radius=radius, certificate=False)
    jacobian = torch.autograd.functional.jacobian(lambda rows: phi(rows.unsqueeze(0)).flatten(), X)
    W = phi.weight.numpy().astype(np.longdouble)

    def features(text):
        squares = (text @ W @ text.T) ** 2
        return squares / squares.sum(axis=1, keepdims=True) @ text

    base = features(X.numpy().astype(np.longdouble))
    for word in range(n):
        best = 0.0
        for sign in (-1, 1):
            moved = X.numpy().astype(np.longdouble)
            moved[word] += sign * radius * torch.linalg.svd(jacobian[:, word])[2][0].numpy()
            best = max(best, float(np.sqrt(((features(moved) - base) ** 2).sum() / (base**2).sum())))
        assert float(found.per_word[word] + found.rounding[word]) >= 0.999 * best


# n, d, factor of row 1, radius / sqrt(d), temperature, heads, seed of map and text, word; what the attack of benchmarks
# found (`Attack` with its default budget), and the share of it that was found before.
OWN = [
    (3, 12, 1e3, 0.05, 1e-10, 1, 0, 0, 1.15512703, 0.0),
    (2, 24, 1e2, 0.05, 1.0, 2, 0, 0, 0.99947944, 0.0018),
    (8, 6, 1.0, 0.3, 1e-15, 1, 1, 7, 0.50491593, 0.6733),
]


@pytest.mark.slow_cases("8-6-*")
@pytest.mark.parametrize(("n", "d", "huge", "radius", "temperature", "heads", "seed", "word", "attack", "before"), OWN)
def test_a_saturating_score_of_ones_own(n, d, huge, radius, temperature, heads, seed, word, attack, before):
    X = ws.gaussian_text(n, d, seed=seed).rows.clone()
    X[1] *= huge
    phi = ws.RandomAttentionFeatures(d, Tanh(), seed=seed, temperature=temperature, heads=heads)
    found = ws.word_sensitivity(phi, X, radius=radius * math.sqrt(d), certificate=False)
    assert before < 0.7
    assert float(found.per_word[word]) >= 0.99 * attack


@pytest.mark.parametrize("temperature", [1e-15, 1.0, 1e15])
def test_relatives_of_a_score_of_ones_own(temperature):
    """As many as there are shares where it saturates; none of a score that its temperature only scales."""
    X, radius = ws.gaussian_text(5, 4, seed=0).rows, torch.full((5,), 2.0, dtype=torch.float64)
    shares = [0.3, 0.1, 0.03, 0.003]
    found = {
        score.name: len(
            ws.RandomAttentionFeatures(4, score, temperature=temperature).word_change(X).softened(radius, shares)
        )
        for score in (Tanh(), Squares())
    }
    assert found["squares"] == 0
    assert found["tanh"] == {1e-15: 4, 1e15: 0}.get(temperature, found["tanh"])


def test_the_change_under_a_score_of_ones_own_is_that_of_the_map():
    """Values against mapping the perturbed text, gradients against autograd through it; float32 to its rounding."""
    X, stream = ws.gaussian_text(6, 5, seed=0).rows, torch.Generator().manual_seed(0)
    phi = ws.RandomAttentionFeatures(5, Tanh(), seed=0, heads=2)
    delta, words = torch.randn(12, 5, dtype=torch.float64, generator=stream), torch.arange(6).repeat(2)
    change = phi.word_change(X)
    wanted = PlainWordChange(phi, X, memory_budget=1 << 28).value_and_gradient(delta, words)
    for found, want in zip(change.value_and_gradient(delta, words), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-10, atol=1e-10)
    coarse = change.coarse().value(delta.float(), words)
    assert coarse.dtype == torch.float32
    torch.testing.assert_close(coarse.double(), wanted[0], rtol=1e-4, atol=1e-4)


def test_a_row_is_cleared_for_one_word():
    """With fewer words than coordinates: among the candidates some leave one positive score to the word's own row."""
    n, d = 5, 8
    X = ws.gaussian_text(n, d, seed=0).rows
    phi = ws.RandomAttentionFeatures(d, "relu", seed=0)
    change = phi.word_change(X)
    assert isinstance(change, AttentionWordChange)
    radius = torch.full((n,), 2 * math.sqrt(d), dtype=torch.float64)
    for cleared, wanted in ((False, False), (True, True)):
        points = candidates(X, change.heads, torch.arange(n), radius, cleared=cleared)[-2 * n :]
        for word in range(n):
            moved = X.repeat(len(points), 1, 1)
            moved[:, word] += radius[word] * points[:, word]
            scores = phi.scores(moved)[:, word]
            alone = ((scores > 0).sum(dim=1) == 1).sum()
            assert (int(alone) >= n) == wanted


@pytest.mark.parametrize("seed", range(6))
def test_circles_in_few_coordinates_report_true_squares(seed):
    """In the plane a direction may be what rounding left of it; its image was then taken for a long one, and won."""
    n, d = 12, 2
    half = ws.gaussian_text(n // 2, d, seed=seed).rows
    phi = ws.RandomFeatures(n, d, 24, "relu", gaussian="dense", seed=seed)
    change = phi.word_change(torch.cat([half, -half]))
    assert isinstance(change, LinearEntryObjective)
    words, ball = torch.arange(n), Ball(torch.full((n,), math.sqrt(d), dtype=torch.float64))
    found = krylov_search(change, words, ball, change.plan, generator=generator(0, "starts"))
    torch.testing.assert_close(found.squared, change.value(found.perturbations, words), rtol=1e-9, atol=0)


def test_scores_of_one_s_own_are_searched_along_the_longest_row():
    """Steep scores are flat but for steps, and beside a huge row only its scores with the word matter: along the
    directions that move these, ± W^T x and ± W x of the row, a word of a larger text attains what is found."""
    X = ws.gaussian_text(32, 37, seed=5).rows
    X[0] *= 1e5
    phi = ws.RandomAttentionFeatures(37, score=Tanh(), temperature=1e-6, heads=3, seed=7)
    words, radius = [3, 7, 21, 30], 0.5
    found = ws.word_sensitivity(phi, X, words, radius=radius, certificate=False)
    before = phi(X)
    for word, value in zip(words, found.per_word, strict=True):
        for matrix in phi.matrices:
            for direction in (X[0] @ matrix, -X[0] @ matrix, matrix @ X[0], -matrix @ X[0]):
                moved = X.clone()
                moved[word] += radius * direction / direction.norm()
                assert value > 0.99 * (phi(moved) - before).norm() / before.norm()
