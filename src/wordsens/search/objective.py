"""The contract of what a search climbs: a function of points in balls, with its gradient, for a batch of words."""

import math
from abc import ABC, abstractmethod

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
        stages: of a normal search of this objective.
        kinked: whether the gradient jumps: a search is then finished by steps of falling length, not by quasi-Newton
            steps.
        inward: whether a step off the sphere into the ball may pay where the gradient points outward.
    """

    stages: Stages = Stages()
    kinked: bool = False
    inward: bool = False

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
        """The same up to a factor, in float32, to explore; itself where that would lose too much."""
        return self

    def narrowed(self) -> "tuple[Objective, Float[Tensor, 'k d']] | None":
        """The same function of the coordinates in an orthonormal basis, and the basis; None by default.

        Only where the part of a Delta outside the basis changes nothing.
        """
        return None

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w *shape"]:
        """Points to start from, in units of each word's radius; those that are higher are taken. None by default."""
        return torch.empty(0, len(words), *self.shape, dtype=self.dtype, device=self.device)

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

    def _chunks(self, perturbations: Tensor, words: Tensor) -> list[tuple[Tensor, Tensor]]:
        size = max(1, self.memory_budget // max(1, self.bytes_per_pair()))
        if len(words) <= size:
            return [(perturbations, words)]
        return list(zip(perturbations.split(size), words.split(size), strict=True))
