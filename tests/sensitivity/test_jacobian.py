"""The small-radius limit: the structured Jacobian against autograd's full one, and against measured
sensitivities."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
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


def dominant() -> ws.FeatureMap:
    return ws.RandomAttentionFeatures.of_weight(20 * ws.RandomAttentionFeatures(6, seed=2).weight)


def encoder_layer() -> Callable[[torch.Tensor], torch.Tensor]:
    layer = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).double().eval()
    return lambda X: layer(X.unsqueeze(0))[0]


def causal_attention() -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda X: torch.nn.functional.scaled_dot_product_attention(
        *[X.view(1, 1, 4, 6)] * 3, is_causal=True
    )[0, 0]


def summed_heads() -> ws.FeatureMap:
    shapes = ((2, 6, 3), (2, 6, 3), (2, 6, 4), (2, 4, 5))
    stream = generator(0, "heads")
    return ws.AttentionFeatures(
        *(torch.randn(shape, generator=stream, dtype=torch.float64) for shape in shapes)
    )


MAPS = {
    f"{score}, {heads} heads": lambda score=score, heads=heads: ws.RandomAttentionFeatures(
        6, score=score, seed=1, heads=heads, temperature=0.7
    )
    for score in SCORES
    for heads in (1, 2)
} | {
    "one dominant word": dominant,
    "heads that are added": summed_heads,
    "rf": lambda: ws.RandomFeatures(4, 6, activation="tanh", seed=0),
    "drf": lambda: ws.DeepRandomFeatures(4, 6, 3, seed=0),
    "function": lambda: ws.FunctionFeatures(lambda X: torch.sin(X).cumsum(dim=-2), batched=True),
    "fused attention": encoder_layer,
    "causal attention": causal_attention,
    "constant": lambda: lambda X: torch.ones(4, dtype=X.dtype) + 0 * X.sum(),
}


@pytest.mark.parametrize("name", MAPS)
def test_the_limit_is_the_largest_singular_value_of_autograds_jacobian(name: str) -> None:
    phi, rows = MAPS[name](), rows_of(4, 6, 2)
    if name == "one dominant word":
        rows[3] = rows[1]
    expected = full(phi, rows)
    r = ws.jacobian_sensitivity(phi, rows)
    assert torch.allclose(r.per_word, expected, rtol=1e-8)
    assert r.value == float(r.per_word.max())
    assert torch.allclose(
        ws.jacobian_sensitivity(phi, rows, [3, -4]).per_word, expected[[3, 0]], rtol=1e-8
    )


def test_more_coordinates_than_one_round_of_lanczos() -> None:
    rows = rows_of(4, 60, 3)
    for phi in (ws.RandomAttentionFeatures(60, seed=3), ws.RandomFeatures(4, 60, seed=3)):
        assert torch.allclose(
            ws.jacobian_sensitivity(phi, rows).per_word, full(phi, rows), rtol=1e-9
        )


@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_the_directions_are_right_singular_vectors_of_autograds_jacobian(score: str) -> None:
    rows = rows_of(5, 6, 3)
    phi = ws.RandomAttentionFeatures(6, score=score, seed=1)
    r = ws.jacobian_sensitivity(phi, rows, words=[3, 0])
    jacobian = torch.autograd.functional.jacobian(phi, rows).flatten(end_dim=1)
    for word, value, direction in zip((3, 0), r.per_word, r.perturbations, strict=True):
        top = torch.linalg.svd(jacobian[:, word]).Vh[0]
        assert abs(float(top @ direction)) == pytest.approx(1, abs=1e-6)
        assert float((jacobian[:, word] @ direction).norm() / phi(rows).norm()) == pytest.approx(
            float(value), rel=1e-9
        )
        assert float(direction[direction.abs().argmax()]) > 0


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_transformers_with_fused_attention(kind: str) -> None:
    model = model_of(kind, dtype=torch.float64)
    model.set_attn_implementation("sdpa")
    phi = ws.TransformerFeatures.from_pretrained((model, tokenizer()))
    X = phi.embed("the film was good")[0]
    assert torch.allclose(
        ws.jacobian_sensitivity(phi, X).per_word, full(phi, X.rows.double()), rtol=1e-6
    )


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
