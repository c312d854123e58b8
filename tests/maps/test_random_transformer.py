"""Random transformers: against RAF, a NumPy forward of its own, and an independent ascent."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.maps.random_transformer import RandomTransformer

KINDS = [
    {"residual": False, "norm": None},
    {"residual": False, "norm": None, "values": True},
    {"norm": None},
    {"norm": "pre"},
    {"norm": "post", "mlp": 12},
    {"norm": "pre", "mlp": 12, "heads": 2, "head_dimension": 3, "temperature": 0.5},
    {"norm": "pre", "score": "relu"},
    {"norm": "pre", "causal": True},
]


def normalized(rows):
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)


def forward(phi: RandomTransformer, rows: np.ndarray) -> list[np.ndarray]:
    """The rows behind every layer, from the definition, in NumPy."""
    states = [rows]
    for weights in phi.layers:
        x = states[-1]
        matrices = {
            name: None if part is None else part.numpy() for name, part in vars(weights).items()
        }

        def attention(y, m=matrices):
            total = 0
            for head, matrix in enumerate(m["scores"]):
                scores = y @ matrix @ y.T / (phi.temperature * math.sqrt(y.shape[1]))
                scores = np.where(np.tri(len(y), dtype=bool) | (not phi.causal), scores, -np.inf)
                exps = (
                    np.maximum(scores, 0)
                    if phi.score.name == "relu"
                    else np.exp(scores - scores.max())
                )
                sums = exps.sum(axis=1, keepdims=True)
                mixed = np.divide(exps, sums, out=np.zeros_like(exps), where=sums > 0) @ y
                total = total + (
                    mixed if m["values"] is None else mixed @ m["values"][head] @ m["output"][head]
                )
            return total

        parts = [attention]
        if phi.mlp:
            parts.append(lambda y, m=matrices: np.maximum(y @ m["inner"], 0) @ m["outer"])
        for part in parts:
            x = part(normalized(x) if phi.norm == "pre" else x) + (x if phi.residual else 0)
            x = normalized(x) if phi.norm == "post" else x
        states.append(x)
    return states


@pytest.mark.parametrize("score", ["softmax", "relu", "sigmoid"])
@pytest.mark.parametrize("rank", [None, 2])
def test_one_layer_of_attention_alone_is_raf(score, rank):
    text = ws.gaussian_text(7, 12, seed=1).rows
    options = {"score": score, "temperature": 0.7, "head_dimension": rank, "seed": 4}
    phi = RandomTransformer(12, 1, residual=False, norm=None, **options)
    torch.testing.assert_close(
        phi(text), ws.RandomAttentionFeatures(12, **options)(text), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_layer_is_the_definitions(kind):
    phi = RandomTransformer(12, 3, seed=2, **kind)
    text = ws.gaussian_text(6, 12, seed=3).rows
    expected = forward(phi, text.numpy())
    for layer, (rows, wanted) in enumerate(zip(phi.states(text), expected, strict=True)):
        np.testing.assert_allclose(rows.numpy(), wanted, rtol=1e-10, atol=1e-10)
        if layer:
            np.testing.assert_allclose(
                phi.at(layer=layer)(text).numpy(), wanted, rtol=1e-10, atol=1e-10
            )
            shorter = RandomTransformer(12, layer, seed=2, **kind)
            np.testing.assert_allclose(shorter(text).numpy(), wanted, rtol=1e-10, atol=1e-10)


def test_entries_of_w_keep_their_variance_at_every_rank():
    # Means of d² heads = 256 entries of variance 1/d; five standard errors of a product's square
    # are below 20 %.
    for rank in (None, 1, 4, 64):
        weight = ws.RandomAttentionFeatures(64, heads=4, head_dimension=rank, seed=8).weight
        assert weight.square().mean().item() * 64 == pytest.approx(1, abs=0.2)
        if rank is not None:
            assert torch.linalg.matrix_rank(weight[0]).item() == rank


def ascent(phi: RandomTransformer, text: torch.Tensor, starts: int, steps: int) -> float:
    """S by projected gradient ascent from random points, every word by itself, through plain
    autograd."""
    stream = torch.Generator().manual_seed(0)
    radius, base, best = math.sqrt(text.shape[1]), phi(text), 0.0
    for word in range(len(text)):
        delta = torch.randn(starts, text.shape[1], generator=stream, dtype=text.dtype)
        for step in range(steps + 1):
            delta = (
                (delta * (radius / delta.norm(dim=1, keepdim=True)).clamp(max=1))
                .detach()
                .requires_grad_()
            )
            moved = torch.stack([text] * starts)
            moved[:, word] = moved[:, word] + delta
            squared = (phi(moved) - base).square().sum(dim=(1, 2))
            (slope,) = torch.autograd.grad(squared.sum(), delta)
            length = 0.3 * radius * (1 - step / steps)
            delta = delta + length * slope / slope.norm(dim=1, keepdim=True).clamp(min=1e-30)
        best = max(best, squared.max().sqrt().item() / base.norm().item())
    return best


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_search_reaches_an_independent_ascent(kind):
    for seed, (n, d, depth) in enumerate([(5, 12, 2), (8, 12, 3)]):
        phi, text = (
            RandomTransformer(d, depth, seed=seed, **kind),
            ws.gaussian_text(n, d, seed=seed).rows,
        )
        measured = ws.word_sensitivity(phi, text)
        assert measured.value >= 0.98 * ascent(phi, text, starts=8, steps=80)


def test_bad_sizes_are_refused():
    for kind, said in [
        ({"heads": 3}, "divide"),
        ({"heads": 2, "values": False}, "values"),
        ({"norm": "batch"}, "norm"),
        ({"mlp": -1}, "mlp"),
        ({"head_dimension": 0}, "head_dimension"),
    ]:
        with pytest.raises(InputError, match=said):
            RandomTransformer(8, 2, **kind)
    with pytest.raises(InputError, match="layer"):
        RandomTransformer(8, 2).at(layer=3)


def test_what_converged_means_is_noted_behind_several_layers_alone():
    phi, X = RandomTransformer(8, 3, seed=0), ws.gaussian_text(3, 8, seed=0)
    plan = ws.SearchPlan("quick", starts=1, steps=1)
    found = {
        depth: ws.word_sensitivity(phi.at(layer=depth), X, search=plan, certificate=False)
        for depth in (1, 2, 3)
    }
    assert [bool(found[depth].notes) for depth in (1, 2, 3)] == [False, True, True]
