"""Whatever is reported can be recomputed from the witnesses with NumPy alone, to 1e-9 in float64."""

import numpy as np
import pytest
from tests.peers.numpy_maps import attention, fully_connected

import wordsens as ws
from wordsens.maps.attention.scores import SCORES


def recomputed(features, X, r):
    base = features(X)
    values = []
    for word, delta in zip(r.words.numpy(), r.perturbations.numpy(), strict=True):
        moved = X.copy()
        moved[word] = moved[word] + delta
        values.append(np.linalg.norm(features(moved) - base) / np.linalg.norm(base))
    return np.array(values)


@pytest.mark.parametrize(("text", "score"), [*(("gaussian", score) for score in SCORES), ("review", "softmax")])
def test_attention(text, score):
    if text == "gaussian":
        X = ws.gaussian_text(15, 24, seed=3)
    else:
        X = ws.embed(["I love her much and she never loved me back"], encoder="minilm")[0]
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], score=score, seed=1)
    r = ws.word_sensitivity(phi, X, search="quick", certificate=False)
    W = phi.weight.numpy()
    values = recomputed(lambda rows: attention(W, score, rows), X.rows.numpy(), r)
    np.testing.assert_allclose(values, r.per_word.numpy(), rtol=1e-9)
    assert (np.linalg.norm(r.perturbations.numpy(), axis=1) <= np.sqrt(X.rows.shape[1]) * (1 + 1e-12)).all()


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_random_features(depth):
    X = ws.gaussian_text(9, 8, seed=4)
    phi = ws.RandomFeatures(9, 8, seed=2) if depth == 1 else ws.DeepRandomFeatures(9, 8, depth, seed=2)
    r = ws.word_sensitivity(phi, X, search="quick", certificate=False)
    weights = [weight.numpy() for weight in phi.weights]
    values = recomputed(lambda rows: fully_connected(weights, "relu", rows), X.rows.numpy(), r)
    np.testing.assert_allclose(values, r.per_word.numpy(), rtol=1e-9)
    if depth == 1:
        features = np.maximum(phi.weight.numpy() @ X.rows.numpy().ravel(), 0)
        np.testing.assert_allclose(phi(X).numpy().ravel(), features, rtol=1e-12)


def test_weights_have_the_stated_variances():
    """Entries of V are N(0, 1/D), of later layers N(0, 2/k), of W N(0, 1/d).

    The mean square of m Gaussian entries has relative standard deviation sqrt(2/m); 5 of those: false alarm under 1e-5.
    """
    deep = ws.DeepRandomFeatures(20, 10, 2, seed=1)
    cases = [(deep.weights[0], 1 / 200), (deep.weights[1], 2 / 200), (ws.RandomAttentionFeatures(200).weight, 1 / 200)]
    for weight, variance in cases:
        ratio = float(weight.square().mean()) / variance
        assert abs(ratio - 1) < 5 * (2 / weight.numel()) ** 0.5
