"""Matrix products in which every row meets the matrix of its own text."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

Counts = Sequence[int] | None
"""How many rows, in order, belong to each text; None where there is one text, and one matrix without a text axis."""


def times(
    vectors: Float[Tensor, "b k"], matrices: Float[Tensor, "*texts k c"], counts: Counts = None
) -> Float[Tensor, "b c"]:
    """vectors @ matrix, of each row's own text.

    >>> times(torch.ones(3, 1), torch.tensor([[[1.0]], [[5.0]]]), counts=[1, 2]).flatten()
    tensor([1., 5., 5.])
    """
    if counts is None:
        return vectors @ matrices
    if len(set(counts)) == 1:
        return torch.bmm(vectors.unflatten(0, (len(counts), -1)), matrices).flatten(end_dim=1)
    result = vectors.new_empty(len(vectors), matrices.shape[-1])
    for text, part in _parts(counts):
        torch.mm(vectors[part], matrices[text], out=result[part])
    return result


def add_and_double(
    result: Float[Tensor, "b c"],
    vectors: Float[Tensor, "b k"],
    matrices: Float[Tensor, "*texts k c"],
    counts: Counts = None,
) -> Float[Tensor, "b c"]:
    """2 (result + vectors @ matrix), in place, of each row's own text."""
    if counts is None:
        return result.addmm_(vectors, matrices, beta=2, alpha=2)
    if len(set(counts)) == 1:
        by_text = result.unflatten(0, (len(counts), -1))
        by_text.baddbmm_(vectors.unflatten(0, (len(counts), -1)), matrices, beta=2, alpha=2)
        return result
    for text, part in _parts(counts):
        result[part].addmm_(vectors[part], matrices[text], beta=2, alpha=2)
    return result


def _parts(counts: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """The texts that have rows, and which rows."""
    start = 0
    for text, count in enumerate(counts):
        if count:
            yield text, slice(start, start + count)
        start += count
