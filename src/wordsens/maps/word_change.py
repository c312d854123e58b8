"""The objective of word sensitivity: the squared change that moved words make to the features of a text."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.search.objective import Objective


class MovedRows(Objective):
    """An objective whose Deltas move rows of one text, or of several.

    Attributes:
        rows: X, (n, d), in the map's dtype.
    """

    def __init__(self, rows: Float[Tensor, "n d"], memory_budget: int, shape: tuple[int, ...] | None = None):
        super().__init__(
            tuple(rows.shape[1:] if shape is None else shape),
            dtype=rows.dtype,
            device=rows.device,
            typical_length=float(torch.linalg.vector_norm(rows, dim=1).median()),
            memory_budget=memory_budget,
        )
        self.rows = rows

    def coarse(self) -> "MovedRows":
        return self


class WordChange(MovedRows):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient in Delta, for a batch of pairs (word or group i, Delta).

    Attributes:
        base_norm: ‖phi(X)‖.
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        base_norm: float,
        memory_budget: int,
        shape: tuple[int, ...] | None = None,
    ):
        super().__init__(rows, memory_budget, shape)
        self.base_norm = base_norm
