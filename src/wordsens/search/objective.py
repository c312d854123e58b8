"""The contract of what a search climbs: a function of points in balls, with its gradient, for a batch of words."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.plan import Stages


class Objective(ABC):
    """A function of pairs (word, Delta), at least 0, to be made as large as the word's ball allows.

    A word is a number that the search passes on: of a row of a text, of a group of rows, or of whatever else has a ball
    of its own.

    Attributes:
        shape: of one Delta: (d,) for one word, (g, d) for g words that move together.
        dtype, device: of every Delta and value.
        typical_length: beside which a radius is called small: the median length of a row, where rows are moved.
        memory_budget: bytes for intermediate results; a batch is cut into chunks that respect it.
        plan: the stages of search that suit this objective.
        smooth: whether a step off the sphere into the ball never pays where the gradient points outward; False for
            losses with kinks, on which such steps find more.
    """

    plan: Stages = Stages()
    smooth: bool = True

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        dtype: torch.dtype,
        device: torch.device,
        memory_budget: int,
        typical_length: float = 1.0,
    ):
        self.shape = tuple(shape)
        self.dtype, self.device = dtype, device
        self.typical_length = typical_length
        self.memory_budget = memory_budget

    @abstractmethod
    def bytes_per_pair(self) -> int:
        """About how many bytes of intermediate results one (word, Delta) costs in `_evaluate`."""

    @abstractmethod
    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        """The values of one chunk, and their gradients where asked for."""

    def coarse(self) -> "Objective":
        """A cheaper relative for exploring, in float32 perhaps, up to a factor; itself by default."""
        return self

    def reduced(self) -> "ReducedObjective | None":
        """A still cheaper one, of fewer coordinates, for the first part of a search. None by default."""
        return None

    def narrowed(self) -> "tuple[Objective, Float[Tensor, 'k d']] | None":
        """The same function of the coordinates in an orthonormal basis, and the basis; None by default.

        Only where the part of a Delta outside the basis changes nothing.
        """
        return None

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "Sequence[Objective]":
        """Smoother relatives over balls of these radii, one a share; none by default.

        The share says how much is smoothed away: 1 nearly everything, 0 nothing. A share that would make no difference
        is left out.
        """
        return []

    def second_look(self, radius: Float[Tensor, " w"]) -> "Objective | None":
        """The same function with other relatives, by which a second run searches all words; None by default: the first
        run's are enough."""
        return None

    def rounded(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "Sequence[Objective]":
        """Relatives with kinks rounded off over these shares, which the best points climb last; none by default.

        What is zero stays zero under them.
        """
        return []

    def starting_directions(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "starts w *shape"]:
        """Directions in which the objective is known to rise, for a search in balls of these radii to start from.

        None by default.
        """
        return self._no_points(len(words))

    def candidates(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w *shape"]:
        """Points in units of each word's radius; a search starts from those that look best. None by default."""
        return self._no_points(len(words))

    def kicking_directions(self) -> Float[Tensor, "m *shape"]:
        """Directions along which the search looks for better maxima near those found. None by default: random ones."""
        return self._no_points()

    def value(self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
        """The values of b pairs of a word and a Delta."""
        chunks = self._chunks(perturbations, words)
        return torch.cat([self._evaluate(delta, word, gradient=False)[0] for delta, word in chunks])

    def value_and_gradient(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"]]:
        """The values and their gradients in each Delta."""
        values, gradients = [], []
        for delta, word in self._chunks(perturbations, words):
            value, slope = self._evaluate(delta, word, gradient=True)
            values.append(value)
            gradients.append(slope)
        return torch.cat(values), torch.cat(gradients)

    @property
    def coordinates(self) -> int:
        """The number of coordinates of one Delta."""
        return math.prod(self.shape)

    def _no_points(self, *axes: int) -> Tensor:
        return torch.empty(0, *axes, *self.shape, dtype=self.dtype, device=self.device)

    def _chunks(self, perturbations: Tensor, words: Tensor) -> list[tuple[Tensor, Tensor]]:
        size = max(1, self.memory_budget // max(1, self.bytes_per_pair()))
        if len(words) <= size:
            return [(perturbations, words)]
        return list(zip(perturbations.split(size), words.split(size), strict=True))


class ReducedObjective(Objective):
    """An objective that stands for another one at a word's Deltas of a subspace, nearly, and costs less.

    Attributes:
        exact: whether it is the other objective at these Deltas, to rounding.
        shape: (k,).
    """

    exact: bool

    @abstractmethod
    def raised(self, x: Float[Tensor, "b k"], words: Int[Tensor, " b"]) -> Float[Tensor, "b d"]:
        """The other objective's points at these ones, of the same lengths."""

    @abstractmethod
    def lowered(self, x: Float[Tensor, "b d"], words: Int[Tensor, " b"]) -> Float[Tensor, "b k"]:
        """The points of the words' subspaces nearest to the other objective's."""
