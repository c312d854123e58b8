"""Whatever is reported can be recomputed from the witnesses with NumPy alone, to 1e-9 in
float64."""

import numpy as np
import pytest

import wordsens as ws
from tests.peers.numpy_maps import attention, relative_change


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_attention_of_a_review(score):
    X = ws.embed(["I love her much and she never loved me back"], encoder="minilm")[0]
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], score=score, seed=1)
    r = ws.word_sensitivity(phi, X, search="quick", certificate=False)
    W = phi.weight.numpy()
    for word, delta, value in zip(
        r.words.tolist(), r.perturbations.numpy(), r.per_word.tolist(), strict=True
    ):
        again = relative_change(lambda rows: attention(W, score, rows), X.rows.numpy(), word, delta)
        assert value == pytest.approx(again, rel=1e-9)
    assert (
        np.linalg.norm(r.perturbations.numpy(), axis=1) <= np.sqrt(X.rows.shape[1]) * (1 + 1e-12)
    ).all()


def test_weights_have_the_stated_variances():
    """Entries of V are N(0, 1/D), of later layers N(0, 2/k), of W N(0, 1/d).

    The mean square of m Gaussian entries has relative standard deviation sqrt(2/m); 5 of those:
    false alarm under 1e-5.
    """
    deep = ws.DeepRandomFeatures(20, 10, 2, seed=1)
    cases = [
        (deep.weights[0], 1 / 200),
        (deep.weights[1], 2 / 200),
        (ws.RandomAttentionFeatures(200).weight, 1 / 200),
    ]
    for weight, variance in cases:
        ratio = float(weight.square().mean()) / variance
        assert abs(ratio - 1) < 5 * (2 / weight.numel()) ** 0.5
