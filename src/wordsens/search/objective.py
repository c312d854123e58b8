"""What a search climbs: a function of points in balls, with its gradient, for a batch of words; and
the balls.

Where Delta enters linearly, phi(X^i(Delta)) - phi(X) = psi(A_i Delta) with a linear map A_i and psi
acting on each entry. Along a great circle of the ball's sphere, A_i (cos t a + sin t b) = cos t A_i
a + sin t A_i b: once A_i a and A_i b are known, the whole circle is known without another product.
`search.krylov` builds on this.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.results import Result
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on

Deltas = Float[Tensor, "b *shape"]
Words = Int[Tensor, " b"]
Evaluated = tuple[Float[Tensor, " b"], Deltas | None]
"""Of b pairs: the values, and the gradients where they were asked for."""


class Objective(ABC):
    """A function of pairs (word, Delta), at least 0, to be made as large as the word's ball allows.

    A word is a number that the search passes on: of a row of a text, of a group of rows, or of
    whatever else has a ball of its own.

    Attributes:
        shape: of one Delta: (d,) for one word, (g, d) for g words that move together.
        dtype, device: of every Delta and value.
        typical_length: beside which a radius is called small: the median length of a row, where
            rows are moved.
        memory_budget: bytes for intermediate results; a batch is cut into chunks that respect it.
        stages: of a normal search of this objective.
        kinked: whether the gradient jumps: a search is then finished by steps of falling length,
            not by quasi-Newton steps.
        inward: whether a step off the sphere into the ball may pay where the gradient points
            outward.
        alone: the objectives of the texts, of one shape, for which this one stands; itself by
            default. Word i of text t is number t `stride` + i, and the pairs of an evaluation come
            text by text, as many of each.
    """

    stages: Stages = Stages()
    kinked: bool = False
    inward: bool = False
    stride: int = 0

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
    def _evaluate(self, perturbations: Deltas, words: Words, *, gradient: bool) -> Evaluated:
        """The values of one chunk, and their gradients where asked for."""

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

    def starts(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "count w *shape"]:
        """Points to start from, in units of each word's radius; those that are higher are taken.
        None by default."""
        return torch.empty(0, len(words), *self.shape, dtype=self.dtype, device=self.device)

    def value(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]
    ) -> Float[Tensor, " b"]:
        """The values of b pairs of a word and a Delta."""
        return self._in_chunks(perturbations, words, gradient=False)[0]

    def value_and_gradient(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"]]:
        """The values and their gradients in each Delta."""
        values, gradients = self._in_chunks(perturbations, words, gradient=True)
        assert gradients is not None
        return values, gradients

    @property
    def alone(self) -> "Sequence[Objective]":
        return (self,)

    @property
    def texts(self) -> int:
        """The number of texts."""
        return len(self.alone)

    def alike(self, other: "Objective") -> bool:
        """Whether this objective and the other can be searched as one problem."""
        return False

    @classmethod
    def together(cls, objectives: "Sequence[Any]") -> "Objective":
        """One objective for several that are alike."""
        raise NotImplementedError(f"{cls.__name__} is searched alone")

    @property
    def coordinates(self) -> int:
        """The number of coordinates of one Delta."""
        return math.prod(self.shape)

    def _in_chunks(self, perturbations: Deltas, words: Words, *, gradient: bool) -> Evaluated:
        size = self.memory_budget // max(1, self.bytes_per_pair())
        return in_chunks(
            partial(self._evaluate, gradient=gradient),
            perturbations,
            words,
            size=size,
            texts=self.texts,
        )


def in_chunks(
    evaluate: Callable[[Deltas, Words], Evaluated],
    perturbations: Deltas,
    words: Words,
    *,
    size: int,
    texts: int = 1,
) -> Evaluated:
    """Values and gradients of b pairs, about `size` pairs at a time, as many of each text."""
    if len(words) <= max(size, texts):
        return evaluate(perturbations, words)
    by_text = [
        part.unflatten(0, (texts, -1)).split(max(1, size // texts), dim=1)
        for part in (perturbations, words)
    ]
    chunks = [
        evaluate(delta.flatten(end_dim=1), word.flatten())
        for delta, word in zip(*by_text, strict=True)
    ]

    def joined(parts: Sequence[Tensor]) -> Tensor:
        return torch.cat([part.unflatten(0, (texts, -1)) for part in parts], dim=1).flatten(
            end_dim=1
        )

    values, gradients = zip(*chunks, strict=True)
    return joined(values), None if gradients[0] is None else joined(gradients)


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
    """An objective of the form ‖psi(A_i Delta)‖², psi entrywise with psi(0) = 0.

    Attributes:
        also_ascend: whether the general ascent is run besides, by `ascent_stages`.
        far_angles: angles that every line search tries besides its own, where psi saturates: the
            squared change is then nearly constant between many steep places, and the next hill is
            beyond the reach of a Newton step.
    """

    far_angles: tuple[float, ...] = ()
    also_ascend: bool = False
    ascent_stages: Stages = Stages()

    @property
    @abstractmethod
    def width(self) -> int:
        """k, the length of A_i Delta."""

    @abstractmethod
    def entry(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> LinearEntry:
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

    @abstractmethod
    def release(self, words: Int[Tensor, " w"], perturbations: Float[Tensor, "w d"]) -> None:
        """Told when the search on these words is over: all that is not needed for the witnesses may
        be forgotten."""


Progress = Callable[[int, int], None]
"""Called with (steps done, steps at most)."""


def part_of(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """Progress through one of several searches, as that through all of them, in thousandths of
    one."""
    if progress is None:
        return None
    return lambda done, most: progress(1000 * part + 1000 * done // max(1, most), 1000 * parts)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search, word by word.

    Attributes:
        perturbations: (w, *shape), the best Delta of each word (or group), inside its balls.
        squared: (w,), the objective there, as the search saw it: ‖phi(X^i(Delta)) - phi(X)‖² for
            word sensitivity; recompute it before you trust it.
        spent: (w,), how many Deltas of each word were evaluated, but for ascents that stood still
            beside others.
        converged: (w,), whether the winner ended at a stationary point, and an ascent before its
            steps ran out: see `search.climb.verify_stationary`.
    """

    perturbations: Float[Tensor, "w ..."]
    squared: Float[Tensor, " w"]
    spent: Int[Tensor, " w"]
    converged: Bool[Tensor, " w"]

    @property
    def evaluations(self) -> int:
        """The number of (word, Delta) pairs that were evaluated."""
        return int(self.spent.sum())

    def of_texts(self, texts: int) -> "list[SearchResult]":
        """The results of each text, of which all have as many words."""
        parts = zip(
            *(getattr(self, field.name).chunk(texts) for field in fields(self)), strict=True
        )
        return [SearchResult(*part) for part in parts]

    @classmethod
    def joined(cls, parts: "Sequence[SearchResult]") -> "SearchResult":
        """The results of several batches of words, one after the other."""
        return cls(
            **{
                field.name: torch.cat([getattr(part, field.name) for part in parts])
                for field in fields(cls)
            }
        )

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


@dataclass(frozen=True, eq=False, repr=False)
class Ball(Result):
    """Euclidean balls around the origin, one for each of w words.

    Projected vectors end inside the ball after rounding: the target radius is a few units of the
    last place smaller, so that ‖Delta‖₂ <= radius holds when the norm is recomputed in float64.
    """

    radius: Float[Tensor, " w"]

    def __post_init__(self) -> None:
        if not bool(torch.isfinite(self.radius).all()) or bool((self.radius <= 0).any()):
            raise InputError(
                f"`radius` (={self.radius.tolist()!r}) must be positive and finite for every word; "
                "pass None for the map's default"
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

    def sample(
        self, *starts: int, dimension: int, generator: torch.Generator, dtype: torch.dtype
    ) -> Float[Tensor, "*starts w d"]:
        """Uniform directions on the spheres that bound the balls."""
        directions = gaussian_on(
            *starts,
            len(self.radius),
            dimension,
            generator=generator,
            dtype=dtype,
            device=self.radius.device,
        )
        return self.linear_maximizer(directions)

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
    """The nearest points of the unit ball; NaN becomes 0. `Ball.project` and `Climb.into_ball`
    allow for rounding."""
    length = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    return torch.nan_to_num(torch.where(length > 1, points / length, points))
