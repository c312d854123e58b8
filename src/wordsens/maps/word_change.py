"""The objective of word sensitivity: the squared change that moved words make to the features of a text."""

import torch
from jaxtyping import Float, Int
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


def replacements(
    rows: Float[Tensor, "n d"], members: Int[Tensor, "w g"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "2 w g d"]:
    """-x_i, and the mean of the other rows less x_i, for the members i of each group, in units of the group's radius.

    Points to start a search from: a word that is gone, and a word like the others.
    """
    own = rows[members]
    others = (rows.sum(dim=0) - own) / max(1, len(rows) - 1)
    return torch.stack([-own, others - own]) / radius.to(rows).view(-1, 1, 1)
