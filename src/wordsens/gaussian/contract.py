"""The contract of a Gaussian matrix: products with it, with its transpose, and with the columns of one word."""

from abc import ABC, abstractmethod
from typing import Required, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor


class Entries(TypedDict, total=False):
    """The options that every Gaussian matrix has: its entries' standard deviation, their dtype and their device."""

    standard_deviation: Required[float]
    dtype: torch.dtype
    device: torch.device | str


class GaussianMatrix(ABC):
    """A (rows, columns) matrix V with iid N(0, standard_deviation²) entries, fixed by its seed.

    Block products touch only the columns [start, stop): those that multiply one word of a flattened text.
    Products are linear in the vectors and differentiable by autograd, any number of times.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        standard_deviation: float,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        self.rows = rows
        self.columns = columns
        self.standard_deviation = standard_deviation
        self.dtype = dtype
        self.device = torch.device(device)

    def multiply(self, vectors: Float[Tensor, "*batch columns"]) -> Float[Tensor, "*batch rows"]:
        """V q for every vector q of the batch."""
        return self.multiply_block(vectors, 0)

    def multiply_transposed(self, vectors: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch columns"]:
        """V^T u for every vector u of the batch."""
        return self.multiply_block_transposed(vectors, 0, self.columns)

    @abstractmethod
    def multiply_block(self, vectors: Float[Tensor, "*batch block"], start: int) -> Float[Tensor, "*batch rows"]:
        """V[:, start : start + block] q for every vector q of the batch."""

    @abstractmethod
    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        """V[:, start:stop]^T u for every vector u of the batch."""

    @abstractmethod
    def fork(self, *, seed: int | None = None) -> "GaussianMatrix":
        """A matrix that agrees on every answer given so far, and may then be asked other things.

        Without a seed its future is the same too: equal calls get equal answers. With one, what is not yet determined
        is drawn from the conditional law given the past, independently of this matrix's future.
        """
