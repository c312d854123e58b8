"""What a search climbs: a function of points in balls, with its gradient, for a batch of groups of
words; and the balls.

Where Delta enters linearly, phi(X^i(Delta)) - phi(X) = psi(A_i Delta) with a linear map A_i and psi
acting on each entry. Along a great circle of the ball's sphere, A_i (cos t a + sin t b) = cos t A_i
a + sin t A_i b: once A_i a and A_i b are known, the whole circle is known without another product.
`search.krylov` builds on this.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, argument
from wordsens.results import Result
from wordsens.search.plan import Stages

Deltas = Float[Tensor, "b *shape"]
Places = Int[Tensor, " b"]
# Of b pairs: the values, and the gradients where they are requested.
Evaluated = tuple[Float[Tensor, " b"], Deltas | None]


class Objective(ABC):
    """A nonnegative function of pairs (place, Delta), which the search maximizes over balls.

    A place is a number that the search passes on: of a group of rows of a text, or of whatever else
    has balls of its own.

    Attributes:
        shape: of one Delta: (g, d) for g rows that move together.
        dtype, device: of every Delta and value.
        typical_length: beside which a radius is called small: the median length of a row, where
            rows are moved.
        memory_budget: bytes for intermediate results; a batch is cut into chunks that respect it.
        stages: of a normal search of this objective.
        kinked: whether the gradient jumps: a search is then finished by steps of falling length,
            not by quasi-Newton steps.
        inward: whether a step off the sphere into the ball may pay where the gradient points
            outward.
        texts: T, for an objective of T texts of one shape (`joined`): its pairs come text by text,
            as many of each, and places are those of the pair's own text.
        joins: objectives for which this is equal, and not None, can be `joined`.
    """

    stages: Stages = Stages()
    kinked: bool = False
    inward: bool = False
    texts: int = 1
    joins: Hashable = None

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
        """About how many bytes of intermediate results one (place, Delta) costs in `_evaluate`."""

    @abstractmethod
    def _evaluate(self, perturbations: Deltas, places: Places, *, gradient: bool) -> Evaluated:
        """The values of one chunk, and their gradients where requested."""

    def coarse(self) -> "Objective":
        """The same up to a factor, in float32, to explore; itself where that would lose too
        much."""
        return self

    def narrowed(self) -> "tuple[Objective, Float[Tensor, 'k d']] | None":
        """The same function of the coordinates in an orthonormal basis, and the basis; None by
        default.

        Only where the part of a Delta outside the basis changes nothing.
        """
        return None

    @classmethod
    def joined(cls, objectives: "Sequence[Any]") -> "Objective":
        """One objective for the texts of several that have the same `joins`."""
        raise NotImplementedError(f"{cls.__name__} is searched alone")

    def starts(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w r"]
    ) -> Float[Tensor, "count w *shape"]:
        """Points to start from, in units of the radii; those that are higher are taken. None by
        default."""
        return torch.empty(0, len(places), *self.shape, dtype=self.dtype, device=self.device)

    def value(
        self, perturbations: Float[Tensor, "b *shape"], places: Int[Tensor, " b"]
    ) -> Float[Tensor, " b"]:
        """The values of b pairs of a place and a Delta."""
        return self._in_chunks(perturbations, places, gradient=False)[0]

    def value_and_gradient(
        self, perturbations: Float[Tensor, "b *shape"], places: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"]]:
        """The values and their gradients in each Delta."""
        values, gradients = self._in_chunks(perturbations, places, gradient=True)
        assert gradients is not None
        return values, gradients

    @property
    def coordinates(self) -> int:
        """The number of coordinates of one Delta."""
        return math.prod(self.shape)

    def pairs_at_once(self) -> int:
        """How many pairs are evaluated in one chunk."""
        return self.memory_budget // max(1, self.bytes_per_pair())

    def _in_chunks(self, perturbations: Deltas, places: Places, *, gradient: bool) -> Evaluated:
        of_texts, size = (self.texts, -1), max(1, self.pairs_at_once() // self.texts)
        if len(places) <= self.texts * size:
            return self._evaluate(perturbations, places, gradient=gradient)
        chunks = [
            self._evaluate(delta.flatten(end_dim=1), place.flatten(), gradient=gradient)
            for delta, place in zip(
                perturbations.unflatten(0, of_texts).split(size, dim=1),
                places.unflatten(0, of_texts).split(size, dim=1),
                strict=True,
            )
        ]

        def whole(parts: Sequence[Tensor]) -> Tensor:
            by_text = [part.unflatten(0, of_texts) for part in parts]
            return torch.cat(by_text, dim=1).flatten(end_dim=1)

        values, gradients = zip(*chunks, strict=True)
        return whole(values), whole(gradients) if gradient else None


@dataclass(frozen=True)
class LinearEntry:
    """Products of r vectors of each of w words with its matrix and with the transpose; and the same
    of fewer words."""

    forward: Callable[[Float[Tensor, "w r m"]], Float[Tensor, "w r k"]]
    transposed: Callable[[Float[Tensor, "w r k"]], Float[Tensor, "w r m"]]
    select: Callable[[Int[Tensor, " v"]], "LinearEntry"]

    @classmethod
    def of(cls, matrices: Float[Tensor, "w m k"]) -> "LinearEntry":
        """Of matrices in memory, the transposes of the words' own: all words in one product."""
        return cls(
            forward=lambda points: torch.bmm(points, matrices),
            transposed=lambda slopes: torch.bmm(slopes, matrices.mT),
            select=lambda chosen: cls.of(matrices[chosen]),
        )


class LinearEntryObjective(Objective):
    """An objective of the form ‖psi(A_i Delta)‖², psi entrywise with psi(0) = 0."""

    @property
    @abstractmethod
    def width(self) -> int:
        """k, the length of A_i Delta."""

    @abstractmethod
    def entry(self, places: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> LinearEntry:
        """Of Delta / radius: products with radius A_i. It may hold a copy of these, `coordinates`
        by `width` a word."""

    @abstractmethod
    def linearized(self, entered: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        """psi'(0)² times A_i Delta: what A_i^T takes to half the gradient of the squared change as
        Delta goes to 0."""

    @abstractmethod
    def slope(self, entered: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        """psi psi' at A_i Delta: what A_i^T takes to half the gradient of the squared change."""

    @abstractmethod
    def along(
        self,
        entered: Float[Tensor, "*b width"],
        across: Float[Tensor, "*b width"],
        angle: Float[Tensor, "*b"],
    ) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"], Float[Tensor, "*b"]]:
        """f(t) = ‖psi(cos t A_i a + sin t A_i b)‖² at angles t; f'(t) / 2; and f''(t) / 2 without
        its term in psi''."""


# Called with (steps done, steps at most).
Progress = Callable[[int, int], None]


def part_of(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """Progress through one of several searches, as that through all of them, in thousandths of
    one."""
    if progress is None:
        return None
    return lambda done, most: progress(1000 * part + 1000 * done // max(1, most), 1000 * parts)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search, group by group.

    Attributes:
        perturbations: (w, *shape), the best Delta of each group, inside its balls.
        squared: (w,), the objective there, as the search saw it: ‖phi(X^G(Delta)) - phi(X)‖² for
            word sensitivity; recompute it before you trust it.
        spent: (w,), how many Deltas of each were evaluated.
        converged: (w,), whether the winner ended at a stationary point, and an ascent before its
            steps ran out: see `search.climb.verified`.
    """

    perturbations: Float[Tensor, "w *shape"]
    squared: Float[Tensor, " w"]
    spent: Int[Tensor, " w"]
    converged: Bool[Tensor, " w"]

    @property
    def evaluations(self) -> int:
        """The number of (place, Delta) pairs that were evaluated."""
        return int(self.spent.sum())

    def of_texts(self, texts: int) -> "list[SearchResult]":
        """The results of each text, of which all have as many groups."""
        parts = (getattr(self, field.name).chunk(texts) for field in fields(self))
        return [SearchResult(*part) for part in zip(*parts, strict=True)]

    @classmethod
    def joined(cls, parts: "Sequence[SearchResult]") -> "SearchResult":
        """The results of several batches of groups, one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def merge_best(self, other: "SearchResult") -> "SearchResult":
        """Group by group the result with the larger objective; evaluations add up."""
        better = other.squared > self.squared
        of_each = better.view(-1, *[1] * (self.perturbations.ndim - 1))
        return SearchResult(
            perturbations=torch.where(of_each, other.perturbations, self.perturbations),
            squared=torch.maximum(self.squared, other.squared),
            spent=self.spent + other.spent,
            converged=torch.where(better, other.converged, self.converged),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ball(Result):
    """Euclidean balls around the origin: one for each of w words, (w,), or for each member of w
    groups, (w, g).

    Projected vectors end inside the ball after rounding: the target radius is a few units of the
    last place smaller, so that ‖Delta‖₂ <= radius holds when the norm is recomputed in float64.
    """

    radius: Float[Tensor, "w *g"]

    def __post_init__(self) -> None:
        if not bool(torch.isfinite(self.radius).all()) or bool((self.radius <= 0).any()):
            raise InputError(
                f"{argument('radius')} (={self.radius.tolist()!r}) must be positive and finite for "
                "every word; pass None for the map's default"
            )

    def project(self, perturbations: Float[Tensor, "*starts w d"]) -> Float[Tensor, "*starts w d"]:
        """The nearest points of the balls: vectors outside are scaled to the sphere, others stay;
        idempotent."""
        # Nearer to the sphere than the target is: what was projected is not projected again for its
        # rounding.
        outside = _lengths(perturbations) > self.radius.double() * (
            1 - torch.finfo(perturbations.dtype).eps
        )
        return torch.where(
            outside.unsqueeze(-1), self.linear_maximizer(perturbations), perturbations
        )

    def linear_maximizer(
        self, direction: Float[Tensor, "*starts w d"]
    ) -> Float[Tensor, "*starts w d"]:
        """The Delta in the ball with the largest inner product with `direction`: radius * direction
        / ‖direction‖.

        A zero direction gives a zero Delta.
        """
        largest = direction.abs().amax(dim=-1, keepdim=True)
        # Divide by the largest entry first: a tiny direction would underflow when squared.
        bounded = direction / torch.where(largest > 0, largest, torch.ones_like(largest))
        norms = torch.linalg.vector_norm(bounded, dim=-1, dtype=torch.float64)
        inside = self.radius.double() * (1 - 4 * torch.finfo(direction.dtype).eps)
        scale = inside / torch.where(norms > 0, norms, torch.ones_like(norms))
        return bounded * scale.unsqueeze(-1).to(direction.dtype)

    def contains(
        self, perturbations: Float[Tensor, "*starts w d"], *, relative_slack: float = 1e-12
    ) -> bool:
        """True where every perturbation has norm at most radius * (1 + relative_slack), computed in
        float64."""
        return bool((_lengths(perturbations) <= self.radius.double() * (1 + relative_slack)).all())


def _lengths(vectors: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """‖.‖₂ of each vector in float64, where squares of the entries may under- or overflow."""
    vectors = vectors.double()
    largest = vectors.abs().amax(dim=-1, keepdim=True)
    bounded = vectors / torch.where(largest > 0, largest, torch.ones_like(largest))
    return torch.linalg.vector_norm(bounded, dim=-1) * largest.squeeze(-1)


def unit(vectors: Tensor) -> Tensor:
    """Each of length 1; zero stays zero."""
    return torch.nn.functional.normalize(vectors, dim=-1, eps=torch.finfo(vectors.dtype).tiny)


def into_ball(points: Tensor) -> Tensor:
    """The nearest points a few units of the last place inside the unit ball; NaN becomes 0."""
    length = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    limit = 1 - 4 * torch.finfo(points.dtype).eps
    return torch.nan_to_num(torch.where(length > limit, points * (limit / length), points))
