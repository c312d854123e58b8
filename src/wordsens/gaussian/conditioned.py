"""A Gaussian matrix of which only some products are known: its law given them, and its split into
independent blocks of columns (docs/proofs.md#gaussian-matrices-on-demand).
"""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import BudgetError
from wordsens.gaussian.vectors import SPAN_TOLERANCE, decompose
from wordsens.seeds import gaussian_on

# Vectors that are made orthonormal at once.
_PANEL = 128

# Rows that a list of answers has room for, at least; a full list is doubled.
_ROOM = 16


class AnsweredQueries:
    """Orthonormal queries from one side, and the matrix's answer to each: a list that grows."""

    def __init__(
        self, queries: Float[Tensor, "count d_query"], answers: Float[Tensor, "count d_answer"]
    ):
        self._buffer = torch.cat([queries, answers], dim=1)
        self._length, self._d = queries.shape

    @property
    def rows(self) -> Float[Tensor, "length d_query+d_answer"]:
        """Each query and its answer."""
        return self._buffer[: self._length]

    @property
    def queries(self) -> Float[Tensor, "length d_query"]:
        return self.rows[:, : self._d]

    @property
    def answers(self) -> Float[Tensor, "length d_answer"]:
        return self.rows[:, self._d :]

    @property
    def bytes(self) -> int:
        return self._length * self.bytes_per_row

    @property
    def bytes_per_row(self) -> int:
        return self._buffer.shape[1] * self._buffer.element_size()

    def append(
        self, queries: Float[Tensor, "count d_query"], answers: Float[Tensor, "count d_answer"]
    ) -> None:
        length = self._length + len(queries)
        if length > len(self._buffer):
            buffer = self._buffer.new_empty(max(_ROOM, 2 * length), self._buffer.shape[1])
            buffer[: self._length] = self.rows
            self._buffer = buffer
        added = self._buffer[self._length : length]
        added[:, : self._d] = queries
        added[:, self._d :] = answers
        self._length = length

    def fork(self) -> "AnsweredQueries":
        """A list that can grow apart from this one: neither has room left, so the first to grow
        copies."""
        self._buffer = self.rows
        return copy.copy(self)


@dataclass
class Source:
    """Fresh Gaussian numbers, and the memory that answers made of them may take.

    >>> Source(torch.Generator(), 1.0, limit=100, what="a 4 x 5 matrix").take(200)
    Traceback (most recent call last):
    wordsens.errors.BudgetError: the answers of a 4 x 5 matrix sampled on demand would take 200 ...
    """

    stream: torch.Generator
    standard_deviation: float
    limit: int
    what: str
    used: int = 0

    def take(self, size: int) -> None:
        """Count `size` bytes more; BudgetError, and nothing counted, where they pass the limit."""
        if self.used + size > self.limit:
            raise BudgetError(
                f"the answers of {self.what} sampled on demand would take "
                f"{self.used + size:,} bytes, over the limit of {self.limit:,} bytes; search "
                "fewer words, steps or starts, raise `gaussian_bytes`, build a fresh map, or use "
                "float32"
            )
        self.used += size

    def draw(self, count: int, like: Float[Tensor, "_ d"]) -> Float[Tensor, "count d"]:
        """`count` vectors with iid N(0, standard_deviation²) entries."""
        numbers = gaussian_on(
            count, like.shape[1], generator=self.stream, dtype=like.dtype, device=like.device
        )
        return numbers.mul_(self.standard_deviation)


@dataclass
class ConditionedGaussian:
    """A (rows, columns) Gaussian matrix V of which only the products that were queried exist.

    Two orthonormal sets hold all that is known: queries Q with answers R = V Q (`forward`),
    transposed queries P with answers L = V^T P (`backward`). A unit vector q orthogonal to Q is
    answered by

        V q = P (L^T q) + (I - P P^T) g,    g fresh, iid N(0, standard_deviation²),

    and a unit vector p orthogonal to P alike, with the roles exchanged. This is the conditional law
    given every answer so far, also when queries depend on earlier answers (Lu, "Householder Dice",
    2021; docs/proofs.md#proof-of-the-law). With t answers a further one takes O((rows + columns)
    t) time, and memory is O((rows + columns) t).
    """

    forward: AnsweredQueries
    backward: AnsweredQueries
    source: Source

    def multiply(self, vectors: Float[Tensor, "count columns"]) -> Float[Tensor, "count rows"]:
        """V q for every vector."""
        return self._answer(self.forward, self.backward, vectors)

    def multiply_transposed(
        self, vectors: Float[Tensor, "count rows"]
    ) -> Float[Tensor, "count columns"]:
        """V^T u for every vector."""
        return self._answer(self.backward, self.forward, vectors)

    @property
    def bytes(self) -> int:
        return self.forward.bytes + self.backward.bytes

    def fork(self, source: Source) -> "ConditionedGaussian":
        """A copy whose later queries are its own."""
        return ConditionedGaussian(self.forward.fork(), self.backward.fork(), source)

    def _answer(
        self,
        side: AnsweredQueries,
        other: AnsweredQueries,
        vectors: Float[Tensor, "count d_query"],
    ) -> Float[Tensor, "count d_answer"]:
        if len(other.queries) == other.queries.shape[1]:
            # The other side's queries span their space: its answers are all of the matrix.
            return (vectors @ other.answers.T) @ other.queries
        answers = []
        for panel in vectors.split(_PANEL):
            coordinates, directions = decompose(side.queries, panel)
            if len(directions):
                self.source.take(len(directions) * side.bytes_per_row)
                fresh = self.source.draw(len(directions), side.answers)
                known = directions @ other.answers.T
                fresh.addmm_(known - fresh @ other.queries.T, other.queries)
                side.append(directions, fresh)
            answers.append(coordinates @ side.answers)
        return torch.cat(answers)


def split_columns(
    whole: ConditionedGaussian, start: int, stop: int
) -> tuple[ConditionedGaussian, ConditionedGaussian]:
    """The columns [start, stop) and all the others, as two matrices that are independent given what
    is known of each.

    A known answer V q ties the two where q has a part inside the columns and one outside. So the
    inner parts of all queries are asked too. What is then known is spanned by the inner parts,
    supported inside, and their orthogonal complement, supported outside
    (ours; docs/proofs.md#proof-of-the-law). The second matrix keeps all columns, but must not be
    asked about those of the first.
    """
    asked = whole.forward.queries
    inner = asked[:, start:stop]
    floor = SPAN_TOLERANCE * torch.finfo(inner.dtype).eps
    inner = inner[torch.linalg.vector_norm(inner, dim=1) > floor]
    _, inside = decompose(inner[:0], inner)
    padded = asked.new_zeros(len(inside), asked.shape[1])
    padded[:, start:stop] = inside
    answers = whole.multiply(padded)
    known = whole.forward
    coordinates = padded @ known.queries.T
    complement = torch.linalg.svd(coordinates).Vh[len(inside) :]

    left, fixed = whole.backward.queries, whole.backward.answers
    part = ConditionedGaussian(
        AnsweredQueries(inside, answers),
        AnsweredQueries(left, fixed[:, start:stop]),
        whole.source,
    )
    rest = ConditionedGaussian(
        AnsweredQueries(complement @ known.queries, complement @ known.answers),
        whole.backward,
        whole.source,
    )
    whole.source.take(part.bytes + rest.bytes - whole.bytes)
    return part, rest
