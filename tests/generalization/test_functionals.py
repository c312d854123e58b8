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
from wordsens.maps.functionals import functional_values, functionals_change
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


@pytest.mark.parametrize("groups", [[[word] for word in range(N)], [[0, 3], [4, 1], [5, 2]]])
@pytest.mark.parametrize("name", MAPS)
def test_values_and_gradients_agree_with_the_definition(name, groups):
    kind, build = MAPS[name]
    phi, X, groups = build(), drawn(N, D, purpose="text"), torch.tensor(groups)
    thetas = drawn(3, phi(X).numel(), purpose="thetas")
    structured = functionals_change(phi, X, groups, 1 << 28)
    # Attention moves groups by autograd.
    alone = groups.shape[1] == 1 or kind is not AttentionChange
    assert type(structured) is (kind if alone else AutogradChange)
    by_definition = AutogradChange(FunctionFeatures(phi.features), X, groups, memory_budget=1 << 28)
    places = torch.arange(18) % len(groups)
    lengths = torch.logspace(-3, 0.5, 18, dtype=torch.float64).view(18, 1, 1)
    delta = drawn(18, groups.shape[1], D, purpose="delta") * lengths

    def pull(values):
        return torch.cos(values) * torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    values, gradient = structured.functionals(delta, places, thetas, pull)
    expected, slope = by_definition.functionals(delta, places, thetas, pull)
    assert torch.allclose(values, expected, rtol=0, atol=1e-11 * float(expected.abs().max()))
    assert torch.allclose(gradient, slope, rtol=0, atol=1e-11 * float(slope.abs().max()))
    plain = functional_values(structured, thetas, delta, places)
    assert torch.allclose(plain, values, rtol=0, atol=1e-12)
    structured.memory_budget = 1
    in_pieces = functional_values(structured, thetas, delta, places)
    assert torch.allclose(in_pieces, values, rtol=0, atol=1e-12)
