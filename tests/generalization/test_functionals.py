"""The structured functionals of each map against the definition: the perturbed text built, mapped,
differentiated."""

import pytest
import torch

from wordsens.maps.attention.change import AttentionChange
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.base import AutogradChange
from wordsens.maps.dense import DeepRandomFeatures, RandomFeatures
from wordsens.maps.dense_change import WholeBlocksChange
from wordsens.maps.function import FunctionFeatures
from wordsens.maps.functionals import WordFunctionals, word_functionals
from wordsens.seeds import generator

N, D = 6, 10
MAPS = {
    **{
        f"{score}, {heads} heads, temperature {temperature}": (
            AttentionChange,
            lambda score=score, heads=heads, temperature=temperature: RandomAttentionFeatures(
                D, score, seed=1, heads=heads, temperature=temperature
            ),
        )
        for score in ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")
        for heads, temperature in ((1, 0.1), (2, 1.0))
    },
    "function": (AutogradChange, lambda: FunctionFeatures(lambda X: torch.tanh(X @ X.mT) @ X)),
    "rf": (WholeBlocksChange, lambda: RandomFeatures(N, D, 33, gaussian="dense")),
    "lazy rf": (WholeBlocksChange, lambda: RandomFeatures(N, D, 33, gaussian="lazy")),
    "drf": (
        WholeBlocksChange,
        lambda: DeepRandomFeatures(N, D, 3, activation="tanh", gaussian="dense"),
    ),
    "lazy drf": (
        WholeBlocksChange,
        lambda: DeepRandomFeatures(N, D, 3, activation="tanh", gaussian="lazy"),
    ),
}


def drawn(*shape, purpose):
    return torch.randn(*shape, generator=generator(3, purpose), dtype=torch.float64)


@pytest.mark.parametrize("name", MAPS)
def test_values_and_gradients_agree_with_the_definition(name):
    kind, build = MAPS[name]
    phi, X = build(), drawn(N, D, purpose="text")
    thetas = drawn(3, phi(X).numel(), purpose="thetas")
    structured = word_functionals(phi, X, thetas)
    assert type(structured._change) is kind
    groups, by_definition = torch.arange(N).unsqueeze(1), FunctionFeatures(phi.features)
    change = AutogradChange(by_definition, X, groups, memory_budget=1 << 28)
    plain = WordFunctionals(change, thetas)
    words = torch.arange(18) % N
    delta = drawn(18, D, purpose="delta") * torch.logspace(
        -3, 0.5, 18, dtype=torch.float64
    ).unsqueeze(1)

    def pull(values):
        return torch.cos(values) * torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    values, gradient = structured.values_and_gradient(delta, words, pull)
    expected, slope = plain.values_and_gradient(delta, words, pull)
    assert torch.allclose(values, expected, rtol=0, atol=1e-11 * float(expected.abs().max()))
    assert torch.allclose(gradient, slope, rtol=0, atol=1e-11 * float(slope.abs().max()))
    assert torch.allclose(structured.values(delta, words), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["softmax, 1 heads, temperature 0.1", "rf"])
def test_chunks_of_a_small_budget_change_nothing(name):
    phi, X = MAPS[name][1](), drawn(N, D, purpose="text")
    thetas = drawn(2, phi(X).numel(), purpose="thetas")
    whole, pieces = (
        word_functionals(phi, X, thetas),
        word_functionals(phi, X, thetas, memory_budget=1),
    )
    assert pieces.bytes_per_pair() > pieces.memory_budget
    delta, words = drawn(7, D, purpose="delta"), torch.arange(7) % N
    for one, other in zip(
        whole.values_and_gradient(delta, words, lambda v: v),
        pieces.values_and_gradient(delta, words, lambda v: v),
        strict=True,
    ):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)
