"""A Gaussian matrix of which only answers exist: its law given products from both sides, and the budget they share."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import BudgetError
from wordsens.gaussian.vectors import Decomposition, VectorStack, decompose
from wordsens.seeds import gaussian_on


class QueryBudget:
    """Counts the bytes that remembered queries and answers take, and refuses those past the limit.

    >>> QueryBudget(limit=100, what="a 4 x 5 matrix").take(200)
    Traceback (most recent call last):
    wordsens.errors.BudgetError: the answers of a 4 x 5 matrix sampled on demand would take 0.00 GiB, over the limit ...
    """

    def __init__(self, limit: int, what: str):
        self.limit = limit
        self.what = what
        self.used = 0

    def take(self, size: int) -> None:
        """Count `size` bytes more; BudgetError, and nothing counted, where they pass the limit."""
        if self.used + size > self.limit:
            raise BudgetError(
                f"the answers of {self.what} sampled on demand would take {(self.used + size) / 2**30:.2f} GiB, over "
                f"the limit of {self.limit / 2**30:.2f} GiB; search fewer words, steps or starts, "
                "raise `gaussian_bytes`, build a fresh map, or use float32"
            )
        self.used += size

    def give_back(self, size: int) -> None:
        """Count `size` bytes less."""
        self.used -= size

    def fork(self) -> "QueryBudget":
        """A budget of its own with as much already used."""
        twin = QueryBudget(self.limit, self.what)
        twin.used = self.used
        return twin


@dataclass
class Source:
    """The source of fresh Gaussian numbers, and the budget that pays for keeping the answers."""

    stream: torch.Generator
    standard_deviation: float
    budget: QueryBudget

    def draw(self, like: VectorStack, count: int) -> Float[Tensor, "count dimension"]:
        """`count` vectors with iid N(0, standard_deviation²) entries."""
        numbers = gaussian_on(count, like.dimension, generator=self.stream, dtype=like.dtype, device=like.device)
        return numbers.mul_(self.standard_deviation)


@dataclass
class AnsweredQueries:
    """Orthonormal queries from one side, and the matrix's answer to each."""

    queries: VectorStack
    answers: VectorStack

    @property
    def complete(self) -> bool:
        """True where the queries span the whole space, so that the answers determine the matrix."""
        return len(self.queries) >= self.queries.dimension

    @property
    def bytes(self) -> int:
        return self.queries.bytes + self.answers.bytes

    def bytes_to_append(self, count: int) -> int:
        return self.queries.bytes_to_append(count) + self.answers.bytes_to_append(count)

    def append(self, queries: Float[Tensor, "count asked"], answers: Float[Tensor, "count answered"]) -> None:
        self.queries.append(queries)
        self.answers.append(answers)

    def fork(self) -> "AnsweredQueries":
        return AnsweredQueries(self.queries.fork(), self.answers.fork())


@dataclass
class ConditionedGaussian:
    """A (rows, columns) Gaussian matrix V of which only the products that were asked for exist.

    Two orthonormal sets hold all that is known: queries Q with answers R = V Q (`forward`), transposed queries P with
    answers L = V^T P (`backward`). A unit vector q orthogonal to Q is answered by

        V q = P (L^T q) + (I - P P^T) g,    g fresh, iid N(0, standard_deviation²),

    and a unit vector p orthogonal to P alike, with the roles exchanged. This is the conditional law given every answer
    so far, also when queries depend on earlier answers (Lu, "Householder Dice", 2021;
    docs/theory/on-demand-gaussians.md). With t answers a further one takes O((rows + columns) t) time, and memory is
    O((rows + columns) t).

    Attributes:
        forward, backward: what is known from the right and from the left.
        source: of fresh numbers.
        support: (columns,) of 0 and 1, where the matrix is zero outside some of its columns; None for all columns.
        sealed: the name of what was sealed: only queries in the span of `forward` are still answered.
    """

    forward: AnsweredQueries
    backward: AnsweredQueries
    source: Source
    support: Tensor | None = None
    sealed: str = field(default="")

    @classmethod
    def unasked(
        cls, rows: int, columns: int, source: Source, *, dtype: torch.dtype, device: torch.device
    ) -> "ConditionedGaussian":
        """A matrix of which nothing is known yet."""
        into, out = (VectorStack(dimension, dtype=dtype, device=device) for dimension in (columns, rows))
        return cls(AnsweredQueries(into, out), AnsweredQueries(out.emptied(), into.emptied()), source)

    def multiply(self, vectors: Float[Tensor, "count columns"]) -> Float[Tensor, "count rows"]:
        """V q for every vector."""
        return self._ask(self.forward, self.backward, vectors, answer_support=None)

    def multiply_transposed(self, vectors: Float[Tensor, "count rows"]) -> Float[Tensor, "count columns"]:
        """V^T u for every vector."""
        return self._ask(self.backward, self.forward, vectors, answer_support=self.support)

    def seal(self, vectors: Float[Tensor, "count columns"], what: str) -> None:
        """Keep the answers to these vectors alone and forget the rest; nothing else may be asked of `what` any more."""
        part = decompose(self.forward.queries, vectors)
        if len(part.directions):
            raise BudgetError(f"{what} cannot be sealed on vectors that it was never asked")
        before = self.bytes
        coordinates = VectorStack(part.old.shape[1], dtype=part.old.dtype, device=part.old.device)
        span = decompose(coordinates, part.old).directions
        queries, answers = self.forward.queries.combine(span), self.forward.answers.combine(span)
        self.forward = AnsweredQueries(VectorStack.of(queries), VectorStack.of(answers))
        self.backward = AnsweredQueries(self.backward.queries.emptied(), self.backward.answers.emptied())
        self.sealed = what
        self.source.budget.give_back(before - self.bytes)

    @property
    def bytes(self) -> int:
        return self.forward.bytes + self.backward.bytes

    def fork(self, source: Source) -> "ConditionedGaussian":
        """A copy that can be asked other things."""
        return ConditionedGaussian(self.forward.fork(), self.backward.fork(), source, self.support, self.sealed)

    def _ask(
        self,
        side: AnsweredQueries,
        other: AnsweredQueries,
        vectors: Float[Tensor, "count asked"],
        *,
        answer_support: Tensor | None,
    ) -> Float[Tensor, "count answered"]:
        if other.complete:
            return other.queries.combine(other.answers.inner_products(vectors))
        parts = decompose(side.queries, vectors)
        if len(parts.directions):
            side.append(parts.directions, self._fresh_answers(side, other, parts, answer_support))
        return side.answers.combine(torch.cat([parts.old, parts.new], dim=1))

    def _fresh_answers(
        self, side: AnsweredQueries, other: AnsweredQueries, parts: Decomposition, answer_support: Tensor | None
    ) -> Float[Tensor, "fresh answered"]:
        """The answers to new orthonormal queries: what the other side fixes of them, and fresh numbers for the rest."""
        if self.sealed:
            raise BudgetError(
                f"{self.sealed} was sealed when its search was over, to save memory: it answers only for the witness "
                "that was found; raise `gaussian_bytes`, search fewer words at a time, or build a fresh map"
            )
        count = len(parts.directions)
        self.source.budget.take(side.bytes_to_append(count))
        fresh = self.source.draw(side.answers, count)
        if answer_support is not None:
            fresh *= answer_support
        if not len(other.queries):
            return fresh
        other.queries.set_components(fresh, other.answers.inner_products(parts.directions))
        return fresh
