"""Orthonormal sets: a panel made orthonormal, stacks of vectors, and Lanczos."""

import pytest
import torch

from wordsens.gaussian.vectors import VectorStack, decompose, lanczos
from wordsens.seeds import generator


def gaussian(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_set_components_gives_vectors_the_inner_products_wanted():
    stack = VectorStack.of(torch.linalg.qr(gaussian(40, 23, seed=1)).Q.T)
    basis, vectors, wanted = stack.stacked(), gaussian(5, 40, seed=2), gaussian(5, 23, seed=3)
    before = vectors.clone()
    found = stack.set_components(vectors, wanted)
    torch.testing.assert_close(found, before @ basis.T)
    torch.testing.assert_close(vectors @ basis.T, wanted)
    # Nothing else of the vectors has moved.
    torch.testing.assert_close(vectors - wanted @ basis, before - found @ basis)


@pytest.mark.parametrize("outside", [1e-3, 1e-9, 1e-13])
def test_a_panel_near_the_span_of_earlier_queries_stays_orthonormal(outside):
    """One projection leaves rounding in proportion to what it cancels; the panel's directions are
    projected again."""
    stack = VectorStack.of(torch.linalg.qr(gaussian(200, 30, seed=4)).Q.T)
    basis = stack.stacked()
    vectors = gaussian(4, 30, seed=5) @ basis + outside * gaussian(4, 200, seed=6)
    parts = decompose(stack, vectors)
    frame = torch.cat([basis, parts.directions])
    torch.testing.assert_close(
        frame @ frame.T, torch.eye(len(frame), dtype=frame.dtype), rtol=0, atol=1e-13
    )
    torch.testing.assert_close(
        torch.cat([parts.old, parts.new], dim=1) @ frame, vectors, rtol=0, atol=1e-12
    )
    assert len(parts.directions) == 4


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
