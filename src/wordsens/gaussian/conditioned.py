"""A Gaussian matrix of which only some products are known: its law given them, the budget that they
share, and its split into independent blocks of columns (docs/theory/on-demand-gaussians.md).
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import BudgetError
from wordsens.gaussian.vectors import SPAN_TOLERANCE, Decomposition, VectorStack, decompose
from wordsens.seeds import gaussian_on

_SMALL_OUTSIDE = 0.5


class QueryBudget:
    """Counts the bytes that remembered queries and answers take, and refuses those past the limit.

    >>> QueryBudget(limit=100, what="a 4 x 5 matrix").take(200)
    Traceback (most recent call last):
    wordsens.errors.BudgetError: the answers of a 4 x 5 matrix sampled on demand would take 0.00 GiB, over the limit ...
    """  # noqa: E501

    def __init__(self, limit: int, what: str):
        self.limit = limit
        self.what = what
        self.used = 0

    def take(self, size: int) -> None:
        """Count `size` bytes more; BudgetError, and nothing counted, where they pass the limit."""
        if self.used + size > self.limit:
            raise BudgetError(
                f"the answers of {self.what} sampled on demand would take "
                f"{(self.used + size) / 2**30:.2f} GiB, over "
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
        numbers = gaussian_on(
            count, like.dimension, generator=self.stream, dtype=like.dtype, device=like.device
        )
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

    def append(
        self, queries: Float[Tensor, "count d_query"], answers: Float[Tensor, "count d_answer"]
    ) -> None:
        self.queries.append(queries)
        self.answers.append(answers)

    def fork(self) -> "AnsweredQueries":
        return AnsweredQueries(self.queries.fork(), self.answers.fork())


@dataclass
class ConditionedGaussian:
    """A (rows, columns) Gaussian matrix V of which only the products that were queried exist.

    Two orthonormal sets hold all that is known: queries Q with answers R = V Q (`forward`),
    transposed queries P with answers L = V^T P (`backward`). A unit vector q orthogonal to Q is
    answered by

        V q = P (L^T q) + (I - P P^T) g,    g fresh, iid N(0, standard_deviation²),

    and a unit vector p orthogonal to P alike, with the roles exchanged. This is the conditional law
    given every answer so far, also when queries depend on earlier answers (Lu, "Householder Dice",
    2021; docs/theory/on-demand-gaussians.md). With t answers a further one takes O((rows + columns)
    t) time, and memory is O((rows + columns) t).

    Attributes:
        forward, backward: what is known from the right and from the left.
        source: of fresh numbers.
        support: (columns,) of 0 and 1, where the matrix is zero outside some of its columns; None
            for all columns.
        sealed: the name of what was sealed: only queries in the span of `forward` are still
            answered.
    """

    forward: AnsweredQueries
    backward: AnsweredQueries
    source: Source
    support: Tensor | None = None
    sealed: str = field(default="")

    @classmethod
    def unknown(
        cls, rows: int, columns: int, source: Source, *, dtype: torch.dtype, device: torch.device
    ) -> "ConditionedGaussian":
        """A matrix of which nothing is known yet."""
        into, out = (
            VectorStack(dimension, dtype=dtype, device=device) for dimension in (columns, rows)
        )
        return cls(
            AnsweredQueries(into, out), AnsweredQueries(out.emptied(), into.emptied()), source
        )

    def multiply(self, vectors: Float[Tensor, "count columns"]) -> Float[Tensor, "count rows"]:
        """V q for every vector."""
        return self._answer(self.forward, self.backward, vectors, answer_support=None)

    def multiply_transposed(
        self, vectors: Float[Tensor, "count rows"]
    ) -> Float[Tensor, "count columns"]:
        """V^T u for every vector."""
        return self._answer(self.backward, self.forward, vectors, answer_support=self.support)

    def seal(self, vectors: Float[Tensor, "count columns"], what: str) -> None:
        """Keep the answers to these vectors only and drop the rest; later queries outside their
        span are refused."""
        part = decompose(self.forward.queries, vectors)
        if len(part.directions):
            raise BudgetError(f"{what} cannot be sealed on vectors that were never queried")
        before = self.bytes
        coordinates = VectorStack(part.old.shape[1], dtype=part.old.dtype, device=part.old.device)
        span = decompose(coordinates, part.old).directions
        queries, answers = self.forward.queries.combine(span), self.forward.answers.combine(span)
        self.forward = AnsweredQueries(VectorStack.of(queries), VectorStack.of(answers))
        self.backward = AnsweredQueries(
            self.backward.queries.emptied(), self.backward.answers.emptied()
        )
        self.sealed = what
        self.source.budget.give_back(before - self.bytes)

    @property
    def bytes(self) -> int:
        return self.forward.bytes + self.backward.bytes

    def fork(self, source: Source) -> "ConditionedGaussian":
        """A copy whose later queries are its own."""
        return ConditionedGaussian(
            self.forward.fork(), self.backward.fork(), source, self.support, self.sealed
        )

    def _answer(
        self,
        side: AnsweredQueries,
        other: AnsweredQueries,
        vectors: Float[Tensor, "count d_query"],
        *,
        answer_support: Tensor | None,
    ) -> Float[Tensor, "count d_answer"]:
        if other.complete:
            return other.queries.combine(other.answers.inner_products(vectors))
        parts = decompose(side.queries, vectors)
        if len(parts.directions):
            side.append(parts.directions, self._fresh_answers(side, other, parts, answer_support))
        return side.answers.combine(torch.cat([parts.old, parts.new], dim=1))

    def _fresh_answers(
        self,
        side: AnsweredQueries,
        other: AnsweredQueries,
        parts: Decomposition,
        answer_support: Tensor | None,
    ) -> Float[Tensor, "fresh d_answer"]:
        """The answers to new orthonormal queries: what the other side fixes of them, and fresh
        numbers for the rest."""
        if self.sealed:
            raise BudgetError(
                f"{self.sealed} was sealed when its search was over, to save memory: it answers "
                "only for the "
                "witness; raise `gaussian_bytes`, search fewer words at a time, or build a fresh "
                "map"
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


def split_columns(
    whole: ConditionedGaussian, start: int, stop: int
) -> tuple[ConditionedGaussian, ConditionedGaussian]:
    """The columns [start, stop) and all the others, as two matrices that are independent given what
    is known of each.

    A known answer z = V q ties the two: z = V b s + V o c for a query q = s b + c o with unit
    vectors b inside the columns and o outside, s² + c² = 1. Of the part that the transposed answers
    leave open, (V b, V o) has iid Gaussian entries, so with a fresh g of the same law

        V b = s z + c g,    V o = c z - s g,

    exactly in law, after which nothing ties the two. Several queries are first rotated so that
    their inner parts, and so their outer parts, are orthogonal (ours;
    docs/theory/on-demand-gaussians.md). `whole` must not be used again.
    """
    turned = _rotate(whole.forward, start, stop)
    left, fixed = whole.backward.queries, whole.backward.answers
    inner_fixed = VectorStack.of(fixed.stacked()[:, start:stop])

    def open_part(answers: Tensor) -> Tensor:
        return answers - left.combine(left.inner_products(answers))

    fresh = open_part(whole.source.draw(whole.forward.answers, len(turned.inside)))
    answered = open_part(turned.answers)
    inside = (
        turned.sine * answered
        + turned.cosine * fresh
        + left.combine(inner_fixed.inner_products(turned.inside))
    )
    outside = (
        turned.cosine * answered
        - turned.sine * fresh
        + left.combine(fixed.inner_products(turned.outside))
    )
    outer = (turned.cosine > 0).squeeze(1)

    part = ConditionedGaussian(
        AnsweredQueries(VectorStack.of(turned.inside), VectorStack.of(inside)),
        AnsweredQueries(left.fork(), inner_fixed),
        whole.source,
    )
    support = (
        turned.inside.new_ones(whole.backward.answers.dimension)
        if whole.support is None
        else whole.support.clone()
    )
    support[start:stop] = 0
    rest = ConditionedGaussian(
        AnsweredQueries(
            VectorStack.of(torch.cat([turned.outside[outer], turned.untouched])),
            VectorStack.of(torch.cat([outside[outer], turned.untouched_answers])),
        ),
        AnsweredQueries(left, VectorStack.of(fixed.stacked() * support)),
        whole.source,
        support,
    )
    whole.source.budget.give_back(whole.bytes)
    whole.source.budget.take(part.bytes + rest.bytes)
    return part, rest


@dataclass(frozen=True)
class _Rotated:
    """Queries, rotated: query a is sine_a inside_a + cosine_a outside_a; the untouched ones have no
    inner part."""

    inside: Float[Tensor, "touching block"]
    outside: Float[Tensor, "touching columns"]
    sine: Float[Tensor, "touching 1"]
    cosine: Float[Tensor, "touching 1"]
    answers: Float[Tensor, "touching rows"]
    untouched: Float[Tensor, "others columns"]
    untouched_answers: Float[Tensor, "others rows"]


def _rotate(side: AnsweredQueries, start: int, stop: int) -> _Rotated:
    queries, answers = side.queries.stacked(), side.answers.stacked()
    tolerance = SPAN_TOLERANCE * torch.finfo(queries.dtype).eps
    left, sine, _ = torch.linalg.svd(queries[:, start:stop], full_matrices=False)
    count = int((sine > tolerance).sum())
    rotation = left
    if len(queries) > left.shape[1]:
        rotation = torch.cat(
            [left, torch.linalg.qr(left, mode="complete").Q[:, left.shape[1] :]], dim=1
        )
    queries, answers = rotation.T @ queries, rotation.T @ answers
    inner, outer = queries[:, start:stop].clone(), queries
    outer[:, start:stop] = 0
    touching, answering = outer[:count], answers[:count]
    cosine = torch.linalg.vector_norm(touching, dim=1)

    # Where little is outside, the outer parts are orthogonal only to rounding over cosine²: rotate
    # by them instead.
    few = int((cosine < _SMALL_OUTSIDE).sum())
    if few:
        turn = torch.linalg.svd(touching[:few], full_matrices=False).U
        touching[:few], answering[:few] = turn.T @ touching[:few], turn.T @ answering[:few]
        inner[:few] = turn.T @ inner[:few]
        cosine = torch.linalg.vector_norm(touching, dim=1)
    sine = torch.linalg.vector_norm(inner[:count], dim=1)
    cosine = torch.where(cosine > tolerance, cosine, torch.zeros_like(cosine))
    both = torch.hypot(sine, cosine)
    sine, cosine = (sine / both).unsqueeze(1), (cosine / both).unsqueeze(1)
    return _Rotated(
        inside=_orthonormal(inner[:count], sine.squeeze(1) > 0),
        outside=_orthonormal(touching, cosine.squeeze(1) > 0),
        sine=sine,
        cosine=cosine,
        answers=answering,
        untouched=outer[count:],
        untouched_answers=answers[count:],
    )


def _orthonormal(
    rows: Float[Tensor, "count dimension"], wanted: Tensor
) -> Float[Tensor, "count dimension"]:
    """Nearly orthogonal rows made orthonormal, the longest first; rows that are not wanted become
    zero."""
    frame = torch.zeros_like(rows)
    order = torch.linalg.vector_norm(rows, dim=1).argsort(descending=True)
    order = order[wanted[order]]
    if len(order):
        factor = torch.linalg.qr(rows[order].T)
        frame[order] = (factor.Q * factor.R.diagonal().sign()).T
    return frame
