"""Vectors kept as rows: components set in one reading, and splitting into what a basis spans and the rest."""

import pytest
import torch

from wordsens.gaussian.vectors import VectorStack, _well_conditioned, decompose


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
    """One projection leaves rounding in proportion to what it cancels; the panel's directions are projected again."""
    stack = VectorStack.of(torch.linalg.qr(gaussian(200, 30, seed=4)).Q.T)
    basis = stack.stacked()
    vectors = gaussian(4, 30, seed=5) @ basis + outside * gaussian(4, 200, seed=6)
    parts = decompose(stack, vectors)
    frame = torch.cat([basis, parts.directions])
    torch.testing.assert_close(frame @ frame.T, torch.eye(len(frame), dtype=frame.dtype), rtol=0, atol=1e-13)
    torch.testing.assert_close(torch.cat([parts.old, parts.new], dim=1) @ frame, vectors, rtol=0, atol=1e-12)
    assert len(parts.directions) == 4


def test_new_directions_are_rows_in_memory():
    """A solve that returns them as columns made every later product of a cell of deep features four times slower."""
    vectors = gaussian(4, 50, seed=7)
    found = _well_conditioned(vectors, torch.zeros(4, dtype=torch.float64), ())
    assert found is not None
    assert found[2].is_contiguous()
    torch.testing.assert_close(found[2] @ found[2].T, torch.eye(4, dtype=torch.float64))
    torch.testing.assert_close(found[1] @ found[2], vectors)
