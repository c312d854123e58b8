"""Networks: formulas, seeds, and their sensitivity by the library's search."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.studies import control
from wordsens.studies.control.networks import POOLINGS

ATTENTION = ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")


@pytest.mark.parametrize("score", ATTENTION)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_one_layer_of_attention_is_its_formula(score, pooling):
    one = control.Architecture(layer=score, pooling=pooling, temperature=2.0, residual=True)
    network = control.build_network(one, 5, 4, seed=1, dtype=torch.float64)
    X = ws.gaussian_text(5, 4, seed=2).rows
    block = network.blocks[0]
    Q, K, V = (
        X @ layer.weight.T + (0 if layer.bias is None else layer.bias)
        for layer in (block.query, block.key, block.value)
    )
    S = Q @ K.T / (2 * math.sqrt(4))
    A = {
        "softmax": lambda: S.exp() / S.exp().sum(1, keepdim=True),
        "relu": lambda: S.clamp(min=0) / S.clamp(min=0).sum(1, keepdim=True).clamp(min=1e-300),
        "relu-unnormalized": lambda: S.clamp(min=0) / 5,
        "sigmoid": lambda: 1 / (1 + (-S).exp()) / 5,
        "linear": lambda: S / 5,
    }[score]()
    rows = X + A @ V
    wanted = {"mean": rows.mean(0), "max": rows.max(0).values, "first": rows[0]}[pooling]
    assert torch.allclose(network.features(X), wanted, atol=1e-12)
    assert torch.allclose(network(X), wanted @ network.head.weight[0], atol=1e-12)


@pytest.mark.parametrize("layer", ["dense", *ATTENTION])
def test_batches_seeds_and_the_state_of_torch(layer):
    one = control.Architecture(layer=layer, layers=2)
    before = torch.get_rng_state()
    network, again, other = (control.build_network(one, 5, 4, seed) for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    X = torch.stack([ws.gaussian_text(5, 4, seed).rows.float() for seed in range(3)])
    assert torch.allclose(network(X), torch.stack([network(text) for text in X]), atol=1e-6)
    assert torch.equal(network(X), again(X))
    assert not torch.allclose(network(X), other(X))
    assert len(network.states(X)) == 2


def test_the_search_measures_a_network_and_each_of_its_layers():
    network = control.build_network(
        control.Architecture(layers=2, residual=True, norm=True, mlp=True),
        6,
        4,
        dtype=torch.float64,
    )
    X = ws.gaussian_text(6, 4, seed=5).rows
    network.requires_grad_(False)
    found = ws.word_sensitivity(network.feature_map(), X, search="quick")
    moved = X.clone()
    moved[found.word] += found.perturbations[found.word]
    change = network.features(moved) - network.features(X)
    assert found.value == pytest.approx(float(change.norm() / network.features(X).norm()), rel=1e-9)
    first = network.feature_map(layer=1)
    assert torch.equal(first(X), network.states(X)[0].flatten())
    assert torch.allclose(first(X.expand(2, 6, 4))[1], first(X), atol=1e-12)


@pytest.mark.parametrize("score", ["softmax", "relu", "sigmoid", "linear"])
@pytest.mark.parametrize("value", [True, False])
def test_a_first_layer_that_is_attention_alone_is_the_map_that_has_certificates(score, value):
    """Up to the division by n of scores that do not sum to one: a certificate is of relative
    changes."""
    architecture = control.Architecture(layer=score, temperature=2.0, value=value, layers=2)
    network = control.build_network(architecture, 6, 8, seed=3, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for weights in network.parameters():
        weights.data += 0.1 * torch.randn(weights.shape, generator=generator, dtype=weights.dtype)
    X = torch.randn(6, 8, generator=generator, dtype=torch.float64)
    divided = 1 if score in ("softmax", "relu") else 6
    assert torch.allclose(
        network.certified_layer()(X), divided * network.states(X)[0], rtol=1e-10, atol=1e-12
    )
    for other in ({"residual": True}, {"norm": True}, {"mlp": True}):
        architecture = control.Architecture(layer=score, **other)
        assert control.build_network(architecture, 6, 8).certified_layer() is None
    assert (
        control.build_network(control.Architecture(layer="dense"), 6, 8).certified_layer() is None
    )
