"""The result of a search, word by word."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Progress = Callable[[int, int], None]
"""Called with (steps done, steps at most)."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search, word by word.

    Attributes:
        perturbations: (w, *shape), the best Delta of each word (or group), inside its balls.
        squared: (w,), the objective there, as the search saw it: ‖phi(X^i(Delta)) - phi(X)‖² for word sensitivity;
            recompute it before you trust it.
        spent: (w,), how many Deltas of each word were evaluated.
        converged: (w,), whether the winner stopped gaining, before its steps ran out, at a stationary point: see
            `search.stationary`.
    """

    perturbations: Float[Tensor, "w ..."]
    squared: Float[Tensor, " w"]
    spent: Int[Tensor, " w"]
    converged: Bool[Tensor, " w"]

    @property
    def evaluations(self) -> int:
        """The number of (word, Delta) pairs that were evaluated."""
        return int(self.spent.sum())

    def merge_best(self, other: "SearchResult") -> "SearchResult":
        """Word by word the result with the larger objective; evaluations add up."""
        better = other.squared > self.squared
        of_each = better.view(-1, *[1] * (self.perturbations.ndim - 1))
        return SearchResult(
            perturbations=torch.where(of_each, other.perturbations, self.perturbations),
            squared=torch.maximum(self.squared, other.squared),
            spent=self.spent + other.spent,
            converged=torch.where(better, other.converged, self.converged),
        )
