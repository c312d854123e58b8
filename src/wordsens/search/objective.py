"""The contract of what a search climbs: the squared change that a batch of perturbed words makes to phi(X)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.plan import SearchPlan


class WordChange(ABC):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient in Delta, for a batch of pairs (word i, Delta).

    Attributes:
        rows: X, (n, d), in the map's dtype.
        base_norm: ‖phi(X)‖.
        memory_budget: bytes for intermediate results; a batch is cut into chunks that respect it.
        shape: of one Delta: (d,) for one word, (g, d) for g words that move together.
        plan: the search that suits this map, unless the caller wants another.
        smooth: whether a step off the sphere into the ball never pays where the gradient points outward; False for
            losses with kinks, on which such steps find more.
    """

    plan: SearchPlan = SearchPlan()
    smooth: bool = True

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        base_norm: float,
        memory_budget: int,
        shape: tuple[int, ...] | None = None,
    ):
        self.rows = rows
        self.base_norm = base_norm
        self.memory_budget = memory_budget
        self.shape = rows.shape[1:] if shape is None else shape

    @abstractmethod
    def bytes_per_pair(self) -> int:
        """About how many bytes of intermediate results one (word, Delta) costs in `_evaluate`."""

    @abstractmethod
    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        """The squared norms of one chunk, and their gradients where asked for."""

    def coarse(self) -> "WordChange":
        """A cheaper change for exploring, in float32 perhaps, up to a factor; what is reported uses this one."""
        return self

    def reduced(self) -> "ReducedChange | None":
        """A still cheaper one, of fewer coordinates, for the first part of a search. None by default."""
        return None

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "Sequence[WordChange]":
        """Smoother relatives of this change over balls of these radii, one a share; none by default.

        The share says how much is smoothed away: 1 nearly everything, 0 nothing. A share that would make no difference
        is left out.
        """
        return []

    def starting_directions(self, words: Int[Tensor, " w"]) -> Float[Tensor, "starts w *shape"]:
        """Directions in which this map is known to be sensitive, for the search to start from. None by default."""
        return self.rows.new_empty(0, len(words), *self.shape)

    def candidates(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w *shape"]:
        """Points in units of each word's radius; a search starts from those that look best. None by default."""
        return self.rows.new_empty(0, len(words), *self.shape)

    def kicking_directions(self) -> Float[Tensor, "m *shape"]:
        """Directions along which the search looks for better maxima near those found. None by default: random ones."""
        return self.rows.new_empty(0, *self.shape)

    def squared_norm(self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
        """‖phi(X^i(Delta)) - phi(X)‖² for b pairs of a word (or group) index i and a Delta."""
        chunks = self._chunks(perturbations, words)
        return torch.cat([self._evaluate(delta, word, gradient=False)[0] for delta, word in chunks])

    def squared_norm_and_gradient(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"]]:
        """The squared norms and their gradients in each Delta."""
        values, gradients = [], []
        for delta, word in self._chunks(perturbations, words):
            value, slope = self._evaluate(delta, word, gradient=True)
            values.append(value)
            gradients.append(slope)
        return torch.cat(values), torch.cat(gradients)

    def _chunks(self, perturbations: Tensor, words: Tensor) -> list[tuple[Tensor, Tensor]]:
        size = max(1, self.memory_budget // max(1, self.bytes_per_pair()))
        return list(zip(perturbations.split(size), words.split(size), strict=True))


class ReducedChange(WordChange):
    """A change that stands for another one at Delta = c @ basis, nearly, and costs less.

    Attributes:
        basis: (k, d), orthonormal rows.
        left_out: (m, d), unit directions in which the other change grows and this one does not know it: a search mixes
            what it found with them when it comes back.
        shape: (k,).
    """

    basis: Float[Tensor, "k d"]
    left_out: Float[Tensor, "m d"]
