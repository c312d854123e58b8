"""Lanczos against full eigendecompositions."""

import torch

from wordsens.gaussian.vectors import lanczos
from wordsens.seeds import generator


def problems(b, m, rank):
    factors = torch.randn(b, m, rank, generator=generator(0, "factors"), dtype=torch.float64)
    return factors @ factors.mT, torch.randn(b, m, generator=generator(0, "starts"), dtype=torch.float64)


def test_the_whole_space_gives_every_eigenvalue():
    matrices, start = problems(3, 7, 7)
    basis, rotation, values = lanczos(lambda q: torch.einsum("bij,bj->bi", matrices, q), start, 20)
    eye = torch.eye(7, dtype=torch.float64).expand(3, 7, 7)
    torch.testing.assert_close(basis @ basis.mT, eye)
    torch.testing.assert_close(values, torch.linalg.eigvalsh(matrices).flip(1))
    ritz = rotation @ basis
    torch.testing.assert_close(ritz @ matrices, values.unsqueeze(2) * ritz, rtol=1e-9, atol=1e-9)


def test_few_steps_find_the_largest_eigenvalue():
    matrices, start = problems(4, 60, 80)
    _, _, values = lanczos(lambda q: torch.einsum("bij,bj->bi", matrices, q), start, 25)
    exact = torch.linalg.eigvalsh(matrices)[:, -1]
    assert bool((values[:, 0] <= exact * (1 + 1e-12)).all())
    torch.testing.assert_close(values[:, 0], exact, rtol=1e-3, atol=0)


def test_an_exhausted_space_is_completed():
    matrices, start = problems(2, 9, 3)
    basis, rotation, values = lanczos(lambda q: torch.einsum("bij,bj->bi", matrices, q), start, 9)
    torch.testing.assert_close(basis @ basis.mT, torch.eye(9, dtype=torch.float64).expand(2, 9, 9))
    torch.testing.assert_close(values, torch.linalg.eigvalsh(matrices).flip(1), rtol=1e-6, atol=1e-12)
    ritz = rotation @ basis
    torch.testing.assert_close(ritz @ matrices, values.unsqueeze(2) * ritz, rtol=1e-6, atol=1e-11)


def test_the_zero_operator():
    basis, rotation, values = lanczos(torch.zeros_like, torch.ones(1, 4, dtype=torch.float64), 3)
    torch.testing.assert_close(basis @ basis.mT, torch.eye(3, dtype=torch.float64).expand(1, 3, 3))
    assert bool(torch.isfinite(rotation @ basis).all())
    assert values.tolist() == [[0.0, 0.0, 0.0]]
