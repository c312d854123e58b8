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
    {"residual": False, "norm": None, "tied": True},
    {"norm": None, "attention": "l2", "tied": True, "values": False, "temperature": 3.0},
    {"norm": "pre", "attention": "l2", "heads": 2, "head_dimension": 20, "causal": True},
    {"norm": None, "attention": "normalized-dot", "head_dimension": 5, "score": "relu"},
    {"norm": "post", "attention": "normalized-dot", "tied": True, "head_dimension": 5},
]


def normalized(rows):
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)


def scores_of(phi: RandomTransformer, y: np.ndarray, m: dict, head: int) -> np.ndarray:
    """The scores of one head, pair by pair."""
    d = y.shape[1]
    if phi.attention == "dot":
        return y @ m["scores"][head] @ y.T / (phi.temperature * math.sqrt(d))
    queries, keys = y @ m["queries"][head], y @ m["keys"][head]
    if phi.attention == "l2":
        apart = ((queries[:, None] - keys) ** 2).sum(axis=2)
        return -apart / (2 * phi.temperature * math.sqrt(d))
    lengths = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(keys, axis=1))
    return math.sqrt(queries.shape[1]) / phi.temperature * (queries @ keys.T / lengths)


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
            for head in range(phi.heads):
                scores = scores_of(phi, y, m, head)
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
        ({"attention": "l1"}, "attention"),
        ({"attention": "l2", "score": "relu"}, "score.*softmax.*l2"),
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


@pytest.mark.parametrize("kind", ["dot", "normalized-dot", "l2"])
def test_the_scores_of_every_kind_scatter_by_one(kind):
    """300 rows of length sqrt(d), each with 300 keys: their standard deviation within a row is
    between .8 and 1.3 for square and for narrow W_Q; tied keys are W_K = W_Q and the scores are
    symmetric."""
    rows = ws.gaussian_text(300, 64, seed=5).rows
    for rank in (None, 8):
        phi = RandomTransformer(64, 1, norm=None, attention=kind, head_dimension=rank, seed=6)
        logs = phi.attention_of(rows).log()[0]
        assert 0.8 < logs.std(dim=1).mean().item() < 1.3
        tied = RandomTransformer(
            64, 1, norm=None, attention=kind, head_dimension=rank, tied=True, seed=6
        )
        logs = tied.attention_of(rows).log()[0]
        logs = logs - logs.diagonal().unsqueeze(1)
        if kind != "dot":  # a row's score with itself is the same for all
            torch.testing.assert_close(logs, logs.T)
            assert logs.max().item() < 1e-9
        else:
            own = (rows @ tied.layers[0].scores[0] @ rows.T / 8).diagonal()
            torch.testing.assert_close(logs + own.unsqueeze(1), (logs + own.unsqueeze(1)).T)


def test_attention_of_a_layer_mixes_the_rows_that_enter_it():
    phi = RandomTransformer(8, 2, residual=False, norm=None, attention="l2", tied=True, seed=1)
    rows = ws.gaussian_text(5, 8, seed=2).rows
    once, twice = (phi.attention_of(rows, layer)[0] for layer in (1, 2))
    torch.testing.assert_close(phi(rows), twice @ (once @ rows))
    with pytest.raises(InputError, match="layer"):
        phi.attention_of(rows, 3)
