"""RF and DRF: what they compute, dense and on demand, and what they refuse."""

import pytest
import torch
from scipy import stats

import wordsens as ws
from tests.search.functions import plain_change
from wordsens.activations import ACTIVATIONS
from wordsens.errors import BudgetError
from wordsens.gaussian import DenseGaussian, OnDemandGaussian, matrix
from wordsens.seeds import generator
from wordsens.text.synthetic import gaussian_text

N, D = 5, 4
KINDS = ["dense", "lazy"]


@pytest.mark.parametrize("gaussian", KINDS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_depth_keeps_the_mean_square_of_pre_activations(gaussian, activation):
    """V_1 has variance 1/(n d), later layers 1/(k E[act²]): every pre-activation has mean square
    about 1."""
    phi = ws.DeepRandomFeatures(N, D, 3, width=2000, activation=activation, gaussian=gaussian)
    hidden = gaussian_text(N, D).rows.flatten()
    for layer in phi.layers:
        before = layer.multiply(hidden)
        # The mean square of 2,000 numbers of variance 1 has deviation 0.032; layers add up.
        assert float(before.square().mean()) == pytest.approx(1, abs=0.17)
        hidden = phi.activation(before)


@pytest.mark.parametrize("gaussian", KINDS)
def test_groups_of_words_move_together(gaussian):
    phi = ws.DeepRandomFeatures(N, D, 2, width=9, gaussian=gaussian)
    X, groups = gaussian_text(N, D).rows, torch.tensor([[0, 2], [4, 1]])
    delta = torch.randn(3, 2, D, generator=generator(0, "delta"), dtype=torch.float64)
    change, plain = phi.change(X, groups), plain_change(phi, X, groups)
    at = torch.tensor([1, 0, 1])
    for fast, slow in zip(
        change.value_and_gradient(delta, at), plain.value_and_gradient(delta, at), strict=True
    ):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)
    assert change.starts(torch.tensor([0, 1]), torch.ones(2, 2)).shape == (4, 2, 2, D)
    leading = change.starts(torch.tensor([0, 1]), torch.ones(2, 2))
    torch.testing.assert_close(leading[2:], -leading[:2], rtol=0, atol=0)


def test_many_texts_at_once_have_the_covariance_of_their_gram_matrix():
    """The pre-activations of N texts are N(0, X X^T / D), unit by unit; a further text continues
    the same matrix."""
    texts = torch.stack([gaussian_text(N, D, seed).rows for seed in range(7)])
    texts[5] = texts[0] + 0.1 * texts[1]
    phi = ws.RandomFeatures(N, D, width=3000, activation="identity", gaussian="lazy")
    features = torch.cat([phi(texts[:6]), phi(texts[6]).unsqueeze(0)])
    torch.testing.assert_close(features[5], features[0] + 0.1 * features[1])
    kept = [0, 1, 2, 3, 4, 6]
    flat = texts[kept].flatten(start_dim=1)
    factor = torch.linalg.cholesky(flat @ flat.T / (N * D))
    white = torch.linalg.solve_triangular(factor, features[kept], upper=False)
    assert stats.kstest(white.flatten().numpy(), "norm").pvalue > 1e-3
    # Correlations of 3,000 pairs have deviation 0.018.
    assert float((torch.corrcoef(white) - torch.eye(6)).abs().max()) < 0.08
    torch.testing.assert_close(phi(texts)[kept], features[kept])


def test_auto_is_dense_up_to_its_budget_and_lazy_past_it(monkeypatch):
    size = 2 * (N * D) ** 2 * 8
    monkeypatch.setattr(matrix, "AUTO_DENSE_BYTES", size)
    assert ws.DeepRandomFeatures(N, D, 2).gaussian == "dense"
    assert isinstance(ws.DeepRandomFeatures(N, D, 2).layers[1], DenseGaussian)
    monkeypatch.setattr(matrix, "AUTO_DENSE_BYTES", size - 1)
    assert ws.DeepRandomFeatures(N, D, 2).gaussian == "lazy"
    assert isinstance(ws.DeepRandomFeatures(N, D, 2).layers[1], OnDemandGaussian)
    assert ws.DeepRandomFeatures(N, D, 2, dtype=torch.float32).gaussian == "dense"


def test_a_dense_matrix_past_its_limit_names_the_remedy():
    with pytest.raises(
        BudgetError, match=r"98\.9 GiB, over the limit of 4 GiB; use gaussian='lazy'"
    ):
        ws.RandomFeatures(150, 768, gaussian="dense")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_answers_of_the_cpu():
    X = gaussian_text(N, D)
    values = [
        ws.word_sensitivity(
            ws.DeepRandomFeatures(N, D, 2, gaussian="lazy", device=device), X
        ).per_word.cpu()
        for device in ("cpu", "cuda")
    ]
    torch.testing.assert_close(values[0], values[1], rtol=1e-6, atol=0)


WORDS, SIZE = 6, 10


@pytest.mark.parametrize("depth", [1, 3])
def test_searches_fork_from_one_state(depth):
    """Two searches from one state agree; a search of the fork leaves the map as it was."""
    phi = ws.DeepRandomFeatures(WORDS, SIZE, depth, gaussian="lazy")
    X, Y = gaussian_text(WORDS, SIZE, 0), gaussian_text(WORDS, SIZE, 1)
    features, asked = phi(X), [layer.queries for layer in phi.layers]
    first, second, other = phi.fork(), phi.fork(), phi.fork(seed=5)
    found = [ws.word_sensitivity(fork, X, words=[1]) for fork in (first, second, other)]
    assert torch.equal(found[0].perturbations, found[1].perturbations)
    assert not torch.allclose(found[0].per_word, found[2].per_word, rtol=1e-6, atol=0)
    for fork in (first, second, other):
        torch.testing.assert_close(fork(X), features)
    assert [layer.queries for layer in phi.layers] == asked
    assert torch.equal(phi.fork()(Y), phi(Y))


def test_past_its_budget_a_search_says_what_to_do():
    n, d = 20, 24
    phi = ws.RandomFeatures(n, d, gaussian="lazy", gaussian_bytes=1 << 20)
    with pytest.raises(BudgetError, match="search fewer words, steps or starts, raise"):
        ws.word_sensitivity(phi, gaussian_text(n, d))
    assert phi.layers[0].bytes <= 1 << 20
