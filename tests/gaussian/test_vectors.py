"""Orthonormal sets: a panel made orthonormal, and Lanczos."""

import pytest
import torch

from wordsens.gaussian.vectors import decompose, lanczos
from wordsens.seeds import generator


def gaussian(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("outside", [1e-3, 1e-9, 1e-13])
def test_a_panel_near_the_span_of_earlier_queries_stays_orthonormal(outside):
    """One projection leaves rounding in proportion to what it cancels; the panel's directions are
    projected again."""
    basis = torch.linalg.qr(gaussian(200, 30, seed=4)).Q.T
    vectors = gaussian(4, 30, seed=5) @ basis + outside * gaussian(4, 200, seed=6)
    coordinates, directions = decompose(basis, vectors)
    frame = torch.cat([basis, directions])
    torch.testing.assert_close(
        frame @ frame.T, torch.eye(len(frame), dtype=frame.dtype), rtol=0, atol=1e-13
    )
    torch.testing.assert_close(coordinates @ frame, vectors, rtol=0, atol=1e-12)
    assert len(directions) == 4


def test_a_panel_has_as_many_directions_as_its_rank():
    """Also where vectors repeat, are tiny, or differ only in the ninth digit."""
    independent = gaussian(3, 200, seed=7)
    close = independent[:1] + 1e-9 * gaussian(1, 200, seed=8)
    dependent = gaussian(90, 3, seed=9) @ independent
    vectors = torch.cat([0 * independent, independent, dependent, close, 1e-30 * dependent])
    coordinates, directions = decompose(independent[:0], vectors)
    assert len(directions) == 4
    torch.testing.assert_close(
        directions @ directions.T, torch.eye(4, dtype=vectors.dtype), rtol=0, atol=1e-14
    )
    torch.testing.assert_close(coordinates @ directions, vectors, rtol=0, atol=1e-12)


def problems(b, m, rank):
    factors = torch.randn(b, m, rank, generator=generator(0, "factors"), dtype=torch.float64)
    return factors @ factors.mT, torch.randn(
        b, m, generator=generator(0, "starts"), dtype=torch.float64
    )


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
    torch.testing.assert_close(
        values, torch.linalg.eigvalsh(matrices).flip(1), rtol=1e-6, atol=1e-12
    )
    ritz = rotation @ basis
    torch.testing.assert_close(ritz @ matrices, values.unsqueeze(2) * ritz, rtol=1e-6, atol=1e-11)


def test_the_zero_operator():
    basis, rotation, values = lanczos(torch.zeros_like, torch.ones(1, 4, dtype=torch.float64), 3)
    torch.testing.assert_close(basis @ basis.mT, torch.eye(3, dtype=torch.float64).expand(1, 3, 3))
    assert bool(torch.isfinite(rotation @ basis).all())
    assert values.tolist() == [[0.0, 0.0, 0.0]]
