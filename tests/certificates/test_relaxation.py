"""Curves of the scores, verified norms and the joint constraint of attention's bounds."""

import pytest
import torch

import wordsens as ws
from tests.certificates.attention_cases import SCORES, gaussian_rows
from wordsens.certificates.attention.text import attention_text
from wordsens.certificates.base import gram_norm_bound
from wordsens.maps.attention.scores import SCORES as BY_NAME
from wordsens.maps.attention.scores import Certified, offered
from wordsens.seeds import generator


def prepared(score: str, n: int = 6, d: int = 9, seed: int = 0):
    rows = gaussian_rows(n, d, seed)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    text = attention_text(rows, phi.head_weights(len(rows), torch.float64), phi.score)
    return phi, rows, text


def curve_named(name: str):
    stream = generator(5, "curve")
    score = 3 * torch.randn(8, 4, generator=stream, dtype=torch.float64)
    reach = 4 * torch.rand(8, 4, generator=stream, dtype=torch.float64) + 0.1
    rest = torch.rand(8, 4, generator=stream, dtype=torch.float64)
    rest[0] = 0
    exact = {
        "softmax": lambda t: torch.sigmoid(score.unsqueeze(-1) - rest.unsqueeze(-1) + t),
        "relu": lambda t: _share(score.unsqueeze(-1) + t, rest.unsqueeze(-1)),
        "relu-unnormalized": lambda t: torch.relu(score.unsqueeze(-1) + t),
        "sigmoid": lambda t: torch.sigmoid(score.unsqueeze(-1) + t),
        "linear": lambda t: score.unsqueeze(-1) + t,
    }
    return offered(BY_NAME[name], Certified).curve(score, rest, reach), exact[name]


def _share(score: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
    weight = torch.relu(score)
    return torch.where(
        weight > 0, weight / (weight + rest).clamp(min=1e-300), torch.zeros_like(weight)
    )


@pytest.mark.parametrize("name", SCORES)
def test_curves_bound_slopes_and_turns_between_their_nodes(name: str) -> None:
    curve, exact = curve_named(name)
    assert bool((curve.t[..., 1:] >= curve.t[..., :-1]).all())
    assert bool((curve.p[..., 1:] >= curve.p[..., :-1] - 1e-15).all())
    assert torch.allclose(curve.p, exact(curve.t), atol=1e-12)
    gain = (curve.p - curve.before.unsqueeze(-1)) * curve.factor.unsqueeze(-1)
    assert torch.allclose(curve.g, gain, rtol=1e-9, atol=1e-9)
    left, width = curve.t[..., :-1], curve.t[..., 1:] - curve.t[..., :-1]
    wide = width > 1e-6
    step = 0.01 * width
    for place in (0.02, 0.3, 0.6, 0.95):
        at = left + place * width
        before, here, after = exact(at - step), exact(at), exact(at + step)
        slope = (after - before) / (2 * step)
        turn = (after - 2 * here + before) / step.square()
        assert bool((slope * width <= curve.rise * (1 + 1e-6) + 1e-6)[wide].all())
        noise = 1e-14 / step.square() * width.square()
        assert bool(
            (turn.abs() * width.square() <= curve.turn * (1 + 1e-3) + 1e-6 + noise)[wide].all()
        )


def test_verified_norms_are_above_and_close() -> None:
    hadamard = torch.ones(1, 1, dtype=torch.float64)
    for _ in range(5):
        hadamard = torch.cat(
            [torch.cat([hadamard, hadamard], 1), torch.cat([hadamard, -hadamard], 1)]
        )
    norm = gram_norm_bound(hadamard @ hadamard.T, inner=32)
    assert 32 <= norm <= 32 * (1 + 1e-8)
    assert gram_norm_bound(torch.zeros(3, 3, dtype=torch.float64), inner=3) == 0.0
    drawn = gaussian_rows(40, 60, 0)
    exact = torch.linalg.matrix_norm(drawn, 2).item() ** 2
    assert exact * (1 - 1e-14) <= gram_norm_bound(drawn @ drawn.T, inner=60) <= exact * (1 + 1e-8)


def test_the_joint_constraint_holds_for_every_direction() -> None:
    _, _, text = prepared("softmax", n=12, d=7)
    geometry = text.geometry
    points = gaussian_rows(2000, 7, 9)
    points = torch.cat(
        [points, torch.linalg.eigh(geometry.queries.T @ geometry.queries).eigenvectors.T]
    )
    points = points / torch.linalg.vector_norm(points, dim=1, keepdim=True)
    held = geometry.score_weight * (points @ geometry.queries.T).square().sum(dim=1)
    held = held + geometry.output_weight * (points @ geometry.offsets.T).square().sum(dim=1)
    assert float(held.max()) <= 1
    assert float(held.max()) >= 0.5
