"""Gaussian matrices as linear operators: the contract, a dense one, and one that is sampled on
demand.

An on-demand matrix is never built: exactly the law of a dense one, for the price of the products
that are queried (docs/theory/on-demand-gaussians.md).
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Required, TypedDict, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import BudgetError, InputError, require_count
from wordsens.gaussian.conditioned import ConditionedGaussian, QueryBudget, Source, split_columns
from wordsens.seeds import Seed, generator

DENSE_BYTES = 4 << 30
"""The largest dense matrix that is built: 4 GiB."""

ON_DEMAND_BYTES = 4 << 30
"""The most memory that one matrix's remembered queries and answers may take, unless a caller says
otherwise: 4 GiB."""

Columns = tuple[int, int]


class GaussianMatrix(ABC):
    """A (rows, columns) matrix V with iid N(0, standard_deviation²) entries, fixed by its seed.

    Block products touch only the columns [start, stop): those that multiply one word of a flattened
    text. Products are linear in the vectors and differentiable by autograd, any number of times.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        standard_deviation: float,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        self.rows = rows
        self.columns = columns
        self.standard_deviation = standard_deviation
        self.dtype = dtype
        self.device = torch.device(device)

    def multiply(self, vectors: Float[Tensor, "*batch columns"]) -> Float[Tensor, "*batch rows"]:
        """V q for every vector q of the batch."""
        return self.multiply_block(vectors, 0)

    def multiply_transposed(
        self, vectors: Float[Tensor, "*batch rows"]
    ) -> Float[Tensor, "*batch columns"]:
        """V^T u for every vector u of the batch."""
        return self.multiply_block_transposed(vectors, 0, self.columns)

    @abstractmethod
    def multiply_block(
        self, vectors: Float[Tensor, "*batch block"], start: int
    ) -> Float[Tensor, "*batch rows"]:
        """V[:, start : start + block] q for every vector q of the batch."""

    @abstractmethod
    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        """V[:, start:stop]^T u for every vector u of the batch."""

    @abstractmethod
    def fork(self, *, seed: int | None = None) -> "GaussianMatrix":
        """A matrix that agrees on every answer given so far; later queries may differ.

        Without a seed its future is the same too: equal calls get equal answers. With one, what is
        not yet determined is drawn from the conditional law given the past, independently of this
        matrix's future.
        """


class Entries(TypedDict, total=False):
    """The options that every Gaussian matrix has: its entries' standard deviation, their dtype and
    their device."""

    standard_deviation: Required[float]
    dtype: torch.dtype
    device: torch.device | str


class DenseGaussian(GaussianMatrix):
    """The matrix, drawn once: O(rows * columns) memory and time a product.

    Raises BudgetError when it would take more than `DENSE_BYTES`.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        seed: Seed,
        purpose: str = "gaussian",
        **entries: Unpack[Entries],
    ):
        super().__init__(rows, columns, **entries)
        dtype = self.dtype
        size = dense_bytes(rows, columns, dtype)
        if size > DENSE_BYTES:
            raise BudgetError(
                f"a dense {rows} x {columns} matrix in {dtype} takes {size / 2**30:.1f} GiB, over "
                "the limit of "
                f"{DENSE_BYTES / 2**30:.0f} GiB; use gaussian='lazy', which never builds it"
            )
        self.matrix: Float[Tensor, "rows columns"] = torch.empty(
            rows, columns, dtype=dtype, device=self.device
        )
        stream = generator(seed, purpose)
        # Row by row blocks: at most 64 MiB of extra memory when the matrix lives on another device.
        step = max(1, (64 << 20) // (columns * self.matrix.element_size()))
        for start in range(0, rows, step):
            block = self.matrix[start : start + step]
            block.copy_(torch.randn(block.shape, generator=stream, dtype=dtype))
        self.matrix.mul_(self.standard_deviation)

    def multiply(self, vectors: Float[Tensor, "*batch columns"]) -> Float[Tensor, "*batch rows"]:
        return vectors @ self.matrix.T

    def multiply_block(
        self, vectors: Float[Tensor, "*batch block"], start: int
    ) -> Float[Tensor, "*batch rows"]:
        return vectors @ self.matrix[:, start : start + vectors.shape[-1]].T

    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        return vectors @ self.matrix[:, start:stop]

    def fork(self, *, seed: int | None = None) -> "DenseGaussian":
        """The matrix itself: all of it is determined, whatever the seed."""
        return self


def dense_bytes(rows: int, columns: int, dtype: torch.dtype) -> int:
    """Bytes of a dense (rows, columns) matrix."""
    return rows * columns * math.ceil(torch.finfo(dtype).bits / 8)


class OnDemandGaussian(GaussianMatrix):
    """A Gaussian matrix whose products are sampled on query, exactly in law, adaptive queries
    included.

    Every answer agrees with all earlier ones: there is one matrix, of which only the answers exist.
    The columns of a word that is queried alone are set apart first (`split_columns`), so that the
    price of a query grows with the number of queries to its word, not to all words.

    The same seed gives the same answers to the same sequence of calls, not to another sequence. A
    query within rounding of the span of earlier ones (`SPAN_TOLERANCE`) gets the combination of
    their answers and adds nothing to memory.

    Args:
        seed, purpose: fix the stream of random numbers, which are drawn on the CPU whatever the
            device.
        gaussian_bytes: how much memory the queries and answers may take.

    Raises:
        BudgetError: from a product, when its answer would pass `gaussian_bytes`.

    >>> V = OnDemandGaussian(10**6, 10**6, standard_deviation=1e-3, seed=0)
    >>> q = torch.ones(10**6, dtype=torch.float64) / 1e3
    >>> answer = V.multiply(q)
    >>> torch.allclose(V.multiply(2 * q), 2 * answer)
    True
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        seed: Seed,
        purpose: str = "gaussian",
        gaussian_bytes: int = ON_DEMAND_BYTES,
        **entries: Unpack[Entries],
    ):
        super().__init__(rows, columns, **entries)
        limit = require_count("gaussian_bytes", gaussian_bytes)
        self.purpose = purpose
        budget = QueryBudget(limit, f"a {rows} x {columns} matrix")
        self._source = Source(generator(seed, purpose), self.standard_deviation, budget)
        self._rest = ConditionedGaussian.unknown(
            rows, columns, self._source, dtype=self.dtype, device=self.device
        )
        self._apart: dict[Columns, ConditionedGaussian] = {}

    @property
    def gaussian_bytes(self) -> int:
        """The most bytes that the queries and answers may take."""
        return self._source.budget.limit

    @property
    def bytes(self) -> int:
        """The bytes that the queries and answers take now."""
        return self._source.budget.used

    @property
    def queries(self) -> tuple[int, int]:
        """The number of independent products that are remembered, from the right and from the
        left."""
        parts = [self._rest, *self._apart.values()]
        return sum(len(part.forward.queries) for part in parts), sum(
            len(part.backward.queries) for part in parts
        )

    def multiply_block(
        self, vectors: Float[Tensor, "*batch block"], start: int
    ) -> Float[Tensor, "*batch rows"]:
        stop = start + vectors.shape[-1]
        self._check(start, stop)
        return _linear(
            vectors,
            lambda flat: self._answer(flat, start, stop),
            lambda flat: self._answer_transposed(flat, start, stop),
        )

    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        self._check(start, stop)
        return _linear(
            vectors,
            lambda flat: self._answer_transposed(flat, start, stop),
            lambda flat: self._answer(flat, start, stop),
        )

    def fork(self, *, seed: Seed | None = None) -> "OnDemandGaussian":
        """As of any Gaussian matrix; past answers share their memory."""
        stream = generator(0 if seed is None else seed, "fork", self.purpose)
        if seed is None:
            stream.set_state(self._source.stream.get_state())
        twin = copy.copy(self)
        twin._source = Source(stream, self.standard_deviation, self._source.budget.fork())
        twin._rest = self._rest.fork(twin._source)
        twin._apart = {columns: part.fork(twin._source) for columns, part in self._apart.items()}
        return twin

    def seal_block(self, vectors: Float[Tensor, "count block"], start: int) -> None:
        """Keep only the answers to these vectors of all that were given for the block, to free
        memory.

        A query outside their span raises BudgetError later: a new answer could contradict one that
        was dropped.
        """
        stop = start + vectors.shape[-1]
        self._set_apart(start, stop)
        self._apart[start, stop].seal(vectors, f"the block of columns {start} to {stop}")

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start < stop <= self.columns:
            raise InputError(
                f"`start` and `stop` (={start}, {stop}) must name columns of a matrix that has "
                f"{self.columns}"
            )

    def _set_apart(self, start: int, stop: int) -> None:
        """Make a part of these columns, unless they are all columns or overlap a part that
        exists."""
        overlaps = any(begin < stop and start < end for begin, end in self._apart)
        if not overlaps and (start, stop) != (0, self.columns):
            self._apart[start, stop], self._rest = split_columns(self._rest, start, stop)

    def _answer(self, vectors: Float[Tensor, "count block"], start: int, stop: int) -> Tensor:
        self._set_apart(start, stop)
        total = vectors.new_zeros(len(vectors), self.rows)
        for (begin, end), part in self._overlapping(start, stop):
            low, high = max(begin, start), min(end, stop)
            padded = vectors[:, low - start : high - start]
            if (low, high) != (begin, end):
                padded = torch.nn.functional.pad(padded, (low - begin, end - high))
            if part.support is not None:
                padded = padded * part.support
            total += _distinct(padded, part.multiply)
        return total

    def _answer_transposed(
        self, vectors: Float[Tensor, "count rows"], start: int, stop: int
    ) -> Tensor:
        self._set_apart(start, stop)
        total = vectors.new_zeros(len(vectors), stop - start)
        for (begin, end), part in self._overlapping(start, stop):
            low, high = max(begin, start), min(end, stop)
            total[:, low - start : high - start] += part.multiply_transposed(vectors)[
                :, low - begin : high - begin
            ]
        return total

    def _overlapping(self, start: int, stop: int) -> list[tuple[Columns, ConditionedGaussian]]:
        """The parts that have columns in [start, stop), in a fixed order."""
        apart = sorted(self._apart.items())
        parts = [
            (columns, part) for columns, part in apart if columns[0] < stop and start < columns[1]
        ]
        covered = sum(min(end, stop) - max(begin, start) for (begin, end), _ in parts)
        return parts if covered == stop - start else [((0, self.columns), self._rest), *parts]


def _distinct(
    vectors: Float[Tensor, "count d_query"], answer: Callable[[Tensor], Tensor]
) -> Tensor:
    """The answers, with vectors that equal the first one queried only once: perturbed texts share
    all words but one."""
    if len(vectors) == 1:
        return answer(vectors)
    other = (vectors != vectors[:1]).any(dim=1)
    other[:1] = True
    if bool(other.all()):
        return answer(vectors)
    distinct = answer(vectors[other])
    total = distinct[:1].repeat(len(vectors), 1)
    total[other] = distinct
    return total


def _linear(
    vectors: Tensor, product: Callable[[Tensor], Tensor], transposed: Callable[[Tensor], Tensor]
) -> Tensor:
    """product(vectors) over any leading axes, with transposed as its derivative's adjoint."""
    flat = vectors.reshape(-1, vectors.shape[-1])
    answers: Any = _LinearProduct.apply(flat, product, transposed)
    return answers.reshape(*vectors.shape[:-1], answers.shape[-1])


class _LinearProduct(torch.autograd.Function):
    """A linear map that autograd differentiates through its adjoint, any number of times."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, product: Any, transposed: Any) -> Tensor:
        ctx.product, ctx.transposed = product, transposed
        return product(vectors.detach())

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return _LinearProduct.apply(slopes[0], ctx.transposed, ctx.product), None, None
