"""The small-radius limit: the structured Jacobian against autograd's full one, and against measured sensitivities."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.errors import InputError
from wordsens.seeds import generator

SCORES = ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")


def rows_of(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=generator(seed, "rows"), dtype=torch.float64)


def full(phi, rows: torch.Tensor) -> torch.Tensor:
    """Every word's largest singular value, from autograd's whole Jacobian."""
    jacobian = torch.autograd.functional.jacobian(phi, rows).flatten(end_dim=-3)
    norms = torch.linalg.matrix_norm(jacobian.transpose(0, 1), 2)
    return norms / phi(rows).norm()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_agrees_with_autograd(score: str, heads: int) -> None:
    rows = rows_of(6, 5)
    phi = ws.RandomAttentionFeatures(5, score=score, seed=1, heads=heads, temperature=0.7)
    assert torch.allclose(ws.jacobian_sensitivity(phi, rows), full(phi, rows), rtol=1e-9)
    assert torch.allclose(ws.jacobian_sensitivity(phi, rows, words=[4, -6]), full(phi, rows)[[4, 0]], rtol=1e-9)


def test_attention_with_one_dominant_word_and_duplicated_rows() -> None:
    rows = rows_of(5, 4, 2)
    rows[4] = rows[1]
    phi = ws.RandomAttentionFeatures.of_weight(20 * ws.RandomAttentionFeatures(4, seed=2).weight)
    assert torch.allclose(ws.jacobian_sensitivity(phi, rows), full(phi, rows), rtol=1e-8)


def test_more_coordinates_than_one_round_of_lanczos() -> None:
    rows = rows_of(4, 60, 3)
    for phi in (ws.RandomAttentionFeatures(60, seed=3), ws.RandomFeatures(4, 60, seed=3)):
        assert torch.allclose(ws.jacobian_sensitivity(phi, rows), full(phi, rows), rtol=1e-9)


@pytest.mark.parametrize(
    "phi",
    [
        ws.RandomFeatures(4, 6, activation="tanh", seed=0),
        ws.DeepRandomFeatures(4, 6, 3, seed=0),
        ws.FunctionFeatures(lambda X: torch.sin(X).cumsum(dim=-2), batched=True),
    ],
    ids=["rf", "drf", "function"],
)
def test_other_maps_by_autograd(phi) -> None:
    rows = rows_of(4, 6, 4)
    assert torch.allclose(ws.jacobian_sensitivity(phi, rows), full(phi, rows), rtol=1e-9)


def test_a_linear_map_and_a_constant_one() -> None:
    rows = torch.ones(4, 9, dtype=torch.float64)
    assert torch.allclose(ws.jacobian_sensitivity(lambda X: 3 * X, rows), torch.full((4,), 1 / 6, dtype=torch.float64))
    assert ws.jacobian_sensitivity(lambda X: torch.ones(3), rows).tolist() == [0.0] * 4


@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_the_directions_are_right_singular_vectors_of_autograds_jacobian(score: str) -> None:
    rows = rows_of(5, 6, 3)
    phi = ws.RandomAttentionFeatures(6, score=score, seed=1)
    values, directions = ws.jacobian_sensitivity(phi, rows, words=[3, 0], directions=True)
    jacobian = torch.autograd.functional.jacobian(phi, rows).flatten(end_dim=1)
    for word, value, direction in zip((3, 0), values, directions, strict=True):
        top = torch.linalg.svd(jacobian[:, word]).Vh[0]
        assert abs(float(top @ direction)) == pytest.approx(1, abs=1e-6)
        assert float((jacobian[:, word] @ direction).norm() / phi(rows).norm()) == pytest.approx(float(value), rel=1e-9)
        assert float(direction[direction.abs().argmax()]) > 0


def encoder_layer() -> Callable[[torch.Tensor], torch.Tensor]:
    layer = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).double().eval()
    return lambda X: layer(X.unsqueeze(0))[0]


def causal_attention() -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda X: torch.nn.functional.scaled_dot_product_attention(*[X.view(1, 1, 4, 6)] * 3, is_causal=True)[0, 0]


@pytest.mark.parametrize("made", [encoder_layer, causal_attention])
def test_fused_attention_is_differentiated_twice(made) -> None:
    phi, rows = made(), rows_of(4, 6, 5)
    assert torch.allclose(ws.jacobian_sensitivity(phi, rows), full(phi, rows), rtol=1e-9)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_transformers_with_fused_attention(kind: str) -> None:
    model = model_of(kind, dtype=torch.float64)
    model.set_attn_implementation("sdpa")
    phi = ws.TransformerFeatures.from_pretrained((model, tokenizer()))
    X = phi.embed("the film was good")[0]
    assert torch.allclose(ws.jacobian_sensitivity(phi, X), full(phi, X.rows.double()), rtol=1e-6)


class OnceDifferentiable(torch.autograd.Function):
    """The sine, whose derivative has none."""

    @staticmethod
    def forward(ctx: Any, X: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(X)
        return X.sin()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        return slope * ctx.saved_tensors[0].cos()


def test_a_map_that_cannot_be_differentiated_twice_is_refused() -> None:
    with pytest.raises(InputError, match="needs derivatives of its gradient"):
        ws.jacobian_sensitivity(OnceDifferentiable.apply, rows_of(4, 6))
