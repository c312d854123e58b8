"""RF and DRF: what they compute, dense and on demand, and what they refuse."""

import math

import pytest
import torch
from benchmarks.plain import dense_features, gaussian_weights
from scipy import stats

import wordsens as ws
from wordsens.activations import ACTIVATIONS
from wordsens.errors import BudgetError, InputError
from wordsens.gaussian import DenseGaussian, OnDemandGaussian
from wordsens.maps import dense as dense_module
from wordsens.maps.base import PlainGroupChange, PlainWordChange
from wordsens.maps.mapping import perturbed_texts
from wordsens.seeds import generator
from wordsens.text.synthetic import gaussian_text

N, D = 5, 4
KINDS = ["dense", "lazy"]


@pytest.mark.parametrize("depth", [1, 3])
def test_the_features_are_those_of_the_straightforward_map(depth):
    phi = ws.DeepRandomFeatures(N, D, depth, width=11, gaussian="dense")
    X = gaussian_text(N, D).rows
    torch.testing.assert_close(phi(X), dense_features(phi.weights, X))
    assert [V.shape for V in phi.weights] == [V.shape for V in gaussian_weights(N, D, depth, width=11)]


@pytest.mark.parametrize("gaussian", KINDS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_depth_keeps_the_mean_square_of_pre_activations(gaussian, activation):
    """V_1 has variance 1/(n d), later layers 1/(k E[act²]): every pre-activation has mean square about 1."""
    phi = ws.DeepRandomFeatures(N, D, 3, width=2000, activation=activation, gaussian=gaussian)
    hidden = gaussian_text(N, D).rows.flatten()
    for layer in phi.layers:
        before = layer.multiply(hidden)
        # The mean square of 2,000 numbers of variance 1 has deviation 0.032; layers add up.
        assert float(before.square().mean()) == pytest.approx(1, abs=0.17)
        hidden = phi.activation(before)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_forward_and_backward_by_hand_are_those_of_autograd(activation, depth):
    for gaussian in KINDS:
        phi = ws.DeepRandomFeatures(N, D, depth, width=9, activation=activation, gaussian=gaussian)
        X = gaussian_text(N, D).rows
        words = torch.tensor([0, 3, 3, 1])
        delta = torch.randn(4, D, generator=generator(0, "delta"), dtype=torch.float64)
        change, plain = phi.word_change(X), PlainWordChange(phi, X, memory_budget=1 << 20)
        for fast, slow in zip(
            change.value_and_gradient(delta, words), plain.value_and_gradient(delta, words), strict=True
        ):
            torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(change.value(delta, words), plain.value(delta, words))


@pytest.mark.parametrize("room", [1 << 20, 1])
def test_blocks_apart_from_their_matrix_give_its_products(room):
    phi, X = ws.RandomFeatures(N, D, seed=1, gaussian="dense"), gaussian_text(N, D).rows
    change = phi.word_change(X, memory_budget=room)
    words = torch.arange(N)
    delta = gaussian_text(N, D, seed=5).rows
    entered = change.enter(delta, words)
    blocks = phi.weight.unflatten(1, (N, D)).transpose(0, 1)
    torch.testing.assert_close(entered, torch.einsum("nkd,nd->nk", blocks, delta))
    back = torch.einsum("nkd,nk->nd", blocks, entered)
    torch.testing.assert_close(change.enter_transposed(entered, words), back)


@pytest.mark.parametrize("gaussian", KINDS)
def test_groups_of_words_move_together(gaussian):
    phi = ws.DeepRandomFeatures(N, D, 2, width=9, gaussian=gaussian)
    X, groups = gaussian_text(N, D).rows, torch.tensor([[0, 2], [4, 1]])
    delta = torch.randn(3, 2, D, generator=generator(0, "delta"), dtype=torch.float64)
    change, plain = phi.group_change(X, groups), PlainGroupChange(phi, X, groups, memory_budget=1 << 20)
    at = torch.tensor([1, 0, 1])
    for fast, slow in zip(change.value_and_gradient(delta, at), plain.value_and_gradient(delta, at), strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)
    assert change.starts(torch.tensor([0, 1]), torch.ones(2)).shape == (4, 2, 2, D)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_along_a_great_circle(activation):
    """f and f' / 2 of `along` against finite differences; f'' / 2 too where act'' = 0."""
    phi = ws.RandomFeatures(N, D, width=9, activation=activation)
    change = phi.word_change(gaussian_text(N, D).rows)
    words = torch.tensor([0, 2])
    entered, across = (
        change.enter(torch.randn(2, D, generator=generator(0, name), dtype=torch.float64), words) for name in "ab"
    )
    angle, step = torch.tensor([0.3, 0.9], dtype=torch.float64), 1e-6
    value, first, second = change.along(entered, across, angle)
    low, high = change.along(entered, across, angle - step), change.along(entered, across, angle + step)
    torch.testing.assert_close(first, (high[0] - low[0]) / (4 * step), rtol=1e-6, atol=1e-8)
    if activation in ("relu", "leaky_relu", "identity"):
        torch.testing.assert_close(second, (high[1] - low[1]) / (2 * step), rtol=1e-6, atol=1e-8)
    at_angle = angle.cos().unsqueeze(1) * entered + angle.sin().unsqueeze(1) * across
    psi = phi.activation(phi.layers[0].multiply(change.rows.flatten()) + at_angle) - phi(change.rows)
    torch.testing.assert_close(value, psi.square().sum(dim=1))


def test_many_texts_at_once_have_the_covariance_of_their_gram_matrix():
    """The pre-activations of N texts are N(0, X X^T / D), unit by unit; a further text continues the same matrix."""
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


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_witness_is_recomputed_on_the_same_matrix(activation, depth):
    """Also where the matrix is never built: mapping the perturbed text gives what the search saw, to rounding."""
    phi = ws.DeepRandomFeatures(N, D, depth, width=15, activation=activation, gaussian="lazy")
    X = gaussian_text(N, D)
    r = ws.word_sensitivity(phi, X, words=[0, 2, 4])
    texts = perturbed_texts(X.rows, r.words.unsqueeze(1), r.perturbations.unsqueeze(1))
    again = (phi(texts) - phi(X)).norm(dim=1) / phi(X).norm()
    torch.testing.assert_close(again, r.per_word, rtol=1e-10, atol=0)
    change = phi.word_change(X.rows)
    seen = change.value(r.perturbations, r.words).sqrt() / phi(X).norm()
    torch.testing.assert_close(seen, r.per_word, rtol=1e-10, atol=0)
    assert bool((r.perturbations.norm(dim=1) <= math.sqrt(D)).all())


def test_the_same_calls_on_a_lazy_map_get_the_same_answers():
    X, Y = gaussian_text(N, D, 0), gaussian_text(N, D, 1)

    def calls(seed):
        phi = ws.DeepRandomFeatures(N, D, 2, gaussian="lazy", seed=seed)
        first = ws.word_sensitivity(phi, X)
        return torch.cat([phi(Y), first.per_word, first.perturbations.flatten()])

    assert torch.equal(calls(0), calls(0))
    assert not torch.allclose(calls(0), calls(1))


def test_auto_is_dense_up_to_its_budget_and_lazy_past_it(monkeypatch):
    size = 2 * (N * D) ** 2 * 8
    monkeypatch.setattr(dense_module, "AUTO_DENSE_BYTES", size)
    assert ws.DeepRandomFeatures(N, D, 2).gaussian == "dense"
    assert isinstance(ws.DeepRandomFeatures(N, D, 2).layers[1], DenseGaussian)
    monkeypatch.setattr(dense_module, "AUTO_DENSE_BYTES", size - 1)
    assert ws.DeepRandomFeatures(N, D, 2).gaussian == "lazy"
    assert isinstance(ws.DeepRandomFeatures(N, D, 2).layers[1], OnDemandGaussian)
    assert ws.DeepRandomFeatures(N, D, 2, dtype=torch.float32).gaussian == "dense"


@pytest.mark.parametrize("read", [lambda phi: phi.weight, lambda phi: phi.weights])
def test_a_lazy_map_has_no_weights_to_read(read):
    with pytest.raises(InputError, match=r"sampled on demand and never built; build it with gaussian='dense'"):
        read(ws.RandomFeatures(N, D, gaussian="lazy"))


def test_an_unknown_kind_is_refused():
    with pytest.raises(
        InputError, match=r"`gaussian` \(='lasy'\) must be one of auto, dense, lazy; did you mean 'lazy'"
    ):
        ws.RandomFeatures(N, D, gaussian="lasy")


def test_a_dense_matrix_past_its_limit_names_the_remedy():
    with pytest.raises(BudgetError, match=r"98\.9 GiB, over the limit of 4 GiB; use gaussian='lazy'"):
        ws.RandomFeatures(150, 768, gaussian="dense")


def test_a_lazy_map_that_is_asked_too_much_names_the_remedy():
    phi = ws.RandomFeatures(50, 20, gaussian="lazy", gaussian_bytes=1 << 20)
    with pytest.raises(BudgetError, match="raise `gaussian_bytes`"):
        phi(torch.stack([gaussian_text(50, 20, seed).rows for seed in range(100)]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_answers_of_the_cpu():
    X = gaussian_text(N, D)
    values = [
        ws.word_sensitivity(ws.DeepRandomFeatures(N, D, 2, gaussian="lazy", device=device), X).per_word.cpu()
        for device in ("cpu", "cuda")
    ]
    torch.testing.assert_close(values[0], values[1], rtol=1e-6, atol=0)
