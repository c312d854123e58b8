"""A Gaussian matrix that is drawn once and kept."""

import math
from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import BudgetError
from wordsens.gaussian.contract import Entries, GaussianMatrix
from wordsens.seeds import Seed, generator

DENSE_BYTES = 4 << 30
"""The largest dense matrix that is built: 4 GiB."""


class DenseGaussian(GaussianMatrix):
    """The matrix, drawn once and kept: O(rows * columns) memory and time a product.

    Raises BudgetError when it would take more than `DENSE_BYTES`.
    """

    def __init__(self, rows: int, columns: int, *, seed: Seed, purpose: str = "gaussian", **entries: Unpack[Entries]):
        super().__init__(rows, columns, **entries)
        dtype = self.dtype
        size = dense_bytes(rows, columns, dtype)
        if size > DENSE_BYTES:
            raise BudgetError(
                f"a dense {rows} x {columns} matrix in {dtype} takes {size / 2**30:.1f} GiB, over the limit of "
                f"{DENSE_BYTES / 2**30:.0f} GiB; use gaussian='lazy', which never builds it"
            )
        self.matrix: Float[Tensor, "rows columns"] = torch.empty(rows, columns, dtype=dtype, device=self.device)
        stream = generator(seed, purpose)
        # Row by row blocks: at most 64 MiB of extra memory when the matrix lives on another device.
        step = max(1, (64 << 20) // (columns * self.matrix.element_size()))
        for start in range(0, rows, step):
            block = self.matrix[start : start + step]
            block.copy_(torch.randn(block.shape, generator=stream, dtype=dtype))
        self.matrix.mul_(self.standard_deviation)

    def multiply(self, vectors: Float[Tensor, "*batch columns"]) -> Float[Tensor, "*batch rows"]:
        return vectors @ self.matrix.T

    def multiply_block(self, vectors: Float[Tensor, "*batch block"], start: int) -> Float[Tensor, "*batch rows"]:
        return vectors @ self.matrix[:, start : start + vectors.shape[-1]].T

    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        return vectors @ self.matrix[:, start:stop]

    def fork(self, *, seed: int | None = None) -> "DenseGaussian":
        """The matrix itself: all of it is determined, whatever the seed."""
        return self


def dense_bytes(rows: int, columns: int, dtype: torch.dtype) -> int:
    """Bytes of a dense (rows, columns) matrix."""
    return rows * columns * math.ceil(torch.finfo(dtype).bits / 8)
