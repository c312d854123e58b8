"""Attention maps and texts for the certificate tests: ordinary and hostile ones."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from jaxtyping import Float
from torch import Tensor

import wordsens as ws
from tests.search.functions import on_spheres
from wordsens.search.objective import Ball
from wordsens.seeds import generator

SCORES = ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")


@dataclass(frozen=True)
class Case:
    """A map, a text and a radius."""

    phi: ws.RandomAttentionFeatures
    rows: Float[Tensor, "n d"]
    radius: float


def gaussian_rows(n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
    return torch.randn(n, d, generator=generator(seed, "rows"), dtype=torch.float64)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Sizes 2 to 6 by 1 to 7, one or two heads; duplicated, parallel, rescaled, float32 rows;
    scores up to +-700."""
    n, d, seed = draw(st.integers(2, 6)), draw(st.integers(1, 7)), draw(st.integers(0, 10_000))
    rows = gaussian_rows(n, d, seed)
    match draw(st.sampled_from(["plain", "plain", "duplicated", "parallel", "rescaled"])):
        case "duplicated":
            rows[-1] = rows[0]
        case "parallel":
            rows = rows[:1] + 1e-5 * rows
        case "rescaled":
            rows = rows * torch.logspace(-2, 2, n, dtype=rows.dtype).unsqueeze(1)
    if draw(st.booleans()):
        rows = rows.float().double()
    heads = draw(st.sampled_from([1, 1, 2]))
    phi = ws.RandomAttentionFeatures(d, score=draw(st.sampled_from(SCORES)), seed=seed, heads=heads)
    largest = draw(st.sampled_from([None, 0.0, 1.0, 30.0, 700.0]))
    if largest is not None:
        # By hand: shape checks of lists look at a random entry, which a strategy may not.
        scores = rows @ phi.weight @ rows.T / d**0.5
        weight = phi.weight * (largest / scores.abs().max().clamp(min=1e-12))
        phi = ws.RandomAttentionFeatures.of_weight(weight, phi.score.name)
    radius = draw(st.sampled_from([1e-6, 1e-2, 0.3, 1.0, d**0.5, 20.0]))
    return Case(phi, rows, radius)


def random_perturbations(case: Case, count: int, seed: int) -> Float[Tensor, "count n d"]:
    """For every word, some perturbations on the sphere and some inside the ball."""
    n, d = case.rows.shape
    ball = Ball(torch.full((n,), case.radius, dtype=torch.float64))
    stream = generator(seed, "perturbations")
    drawn = on_spheres(ball, count, dimension=d, generator=stream)
    drawn[::4] *= torch.rand(len(drawn[::4]), n, 1, generator=stream, dtype=torch.float64)
    return drawn


def changes(case: Case, perturbations: Float[Tensor, "count n d"]) -> Float[Tensor, "count n"]:
    """‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ by definition, in float64."""
    phi, rows = case.phi, case.rows
    n = len(rows)
    base = phi(rows)
    word = torch.eye(n, dtype=rows.dtype).unsqueeze(-1)
    texts = rows + word * perturbations.unsqueeze(-2)
    moved = (phi(texts) - base).flatten(start_dim=2)
    return torch.linalg.vector_norm(moved, dim=2) / torch.linalg.vector_norm(base)


def rounding_of(case: Case) -> float:
    """What float64 may put `changes` off by: the bounds speak of exact arithmetic.

    Scores are off by a few units of the last place of the largest, the features by that, times the
    rows they weigh.
    """
    largest = 1 + float(case.phi.scores(case.rows).abs().max())
    base = float(torch.linalg.vector_norm(case.phi(case.rows)))
    moved = float(torch.linalg.vector_norm(case.rows)) + case.radius
    return 64 * torch.finfo(torch.float64).eps * largest * moved / base
