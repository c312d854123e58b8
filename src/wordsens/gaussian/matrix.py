"""Gaussian matrices as linear operators: the contract, a dense one, one that is sampled on demand,
and the choice between the two.

An on-demand matrix is never built: exactly the law of a dense one, for the price of the products
that are queried (docs/theory/search.md#gaussian-matrices-on-demand).
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import BudgetError, InputError, require_choice, require_count
from wordsens.gaussian.conditioned import (
    AnsweredQueries,
    ConditionedGaussian,
    Source,
    split_columns,
)
from wordsens.seeds import Seed, generator

GAUSSIAN_KINDS = ("auto", "dense", "lazy")

# With gaussian="auto", matrices up to this size in all are kept dense.
AUTO_DENSE_BYTES = 128 << 20

# The largest dense matrix that is built.
DENSE_BYTES = 4 << 30

# The most memory that remembered queries and answers may take, unless a caller says otherwise.
ON_DEMAND_BYTES = 4 << 30


class GaussianMatrix(ABC):
    """A (rows, columns) matrix V with iid N(0, standard_deviation²) entries, fixed by its seed.

    Block products touch only the columns [start, stop): those that multiply one word of a flattened
    text. Products are linear in the vectors and differentiable by autograd, any number of times.
    """

    rows: int
    columns: int
    standard_deviation: float

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
    def fork(self, *, seed: Seed | None = None) -> "GaussianMatrix":
        """A matrix that agrees on every answer given so far; later queries may differ.

        Without a seed its future is the same too: equal calls get equal answers. With one, what is
        not yet determined is drawn from the conditional law given the past, independently of this
        matrix's future.
        """


class DenseGaussian(GaussianMatrix):
    """The matrix, drawn once: O(rows * columns) memory and time a product.

    Raises BudgetError when it would take more than `DENSE_BYTES`.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        standard_deviation: float,
        seed: Seed,
        purpose: str = "gaussian",
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        self.rows, self.columns, self.standard_deviation = rows, columns, standard_deviation
        size = rows * columns * dtype.itemsize
        if size > DENSE_BYTES:
            raise BudgetError(
                f"a dense {rows} x {columns} matrix in {dtype} takes {size / 2**30:.1f} GiB, over "
                f"the limit of {DENSE_BYTES / 2**30:.0f} GiB; use gaussian='lazy', which never "
                "builds it"
            )
        self._columns = torch.empty(columns, rows, dtype=dtype, device=device)
        stream = generator(seed, purpose)
        # Row by row blocks: at most 64 MiB of extra memory when the matrix lives on another device.
        step = max(1, (64 << 20) // (columns * dtype.itemsize))
        for block in self.matrix.split(step):
            block.copy_(torch.randn(block.shape, generator=stream, dtype=dtype))
        self._columns.mul_(standard_deviation)

    @property
    def matrix(self) -> Float[Tensor, "rows columns"]:
        """V, column by column in memory, so that the columns of a word lie beside each other."""
        return self._columns.T

    def multiply_block(
        self, vectors: Float[Tensor, "*batch block"], start: int
    ) -> Float[Tensor, "*batch rows"]:
        return vectors @ self._columns[start : start + vectors.shape[-1]]

    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        return vectors @ self._columns[start:stop].T

    def fork(self, *, seed: Seed | None = None) -> "DenseGaussian":
        """The matrix itself: all of it is determined, whatever the seed."""
        return self


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
        standard_deviation: float,
        seed: Seed,
        purpose: str = "gaussian",
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        gaussian_bytes: int = ON_DEMAND_BYTES,
    ):
        self.rows, self.columns, self.standard_deviation = rows, columns, standard_deviation
        self._purpose = purpose
        self._source = Source(
            generator(seed, purpose),
            standard_deviation,
            require_count("gaussian_bytes", gaussian_bytes),
            f"a {rows} x {columns} matrix",
        )
        right, left = (
            torch.empty(0, dimension, dtype=dtype, device=device) for dimension in (columns, rows)
        )
        self._rest = ConditionedGaussian(
            AnsweredQueries(right, left), AnsweredQueries(left, right), self._source
        )
        self._apart: dict[tuple[int, int], ConditionedGaussian] = {}

    @property
    def bytes(self) -> int:
        """The bytes that the queries and answers take."""
        return self._source.used

    @property
    def queries(self) -> tuple[int, int]:
        """The number of independent products that are remembered, from the right and from the
        left."""
        parts = [self._rest, *self._apart.values()]
        right = sum(len(part.forward.queries) for part in parts)
        return right, sum(len(part.backward.queries) for part in parts)

    def multiply_block(
        self, vectors: Float[Tensor, "*batch block"], start: int
    ) -> Float[Tensor, "*batch rows"]:
        stop = start + vectors.shape[-1]
        return _linear(
            vectors,
            lambda flat: self._answer(flat, start, stop),
            lambda flat: self._answer_transposed(flat, start, stop),
        )

    def multiply_block_transposed(
        self, vectors: Float[Tensor, "*batch rows"], start: int, stop: int
    ) -> Float[Tensor, "*batch block"]:
        return _linear(
            vectors,
            lambda flat: self._answer_transposed(flat, start, stop),
            lambda flat: self._answer(flat, start, stop),
        )

    def fork(self, *, seed: Seed | None = None) -> "OnDemandGaussian":
        """See `GaussianMatrix.fork`. The two matrices share the memory of past answers until one of
        them is queried."""
        stream = generator(0 if seed is None else seed, "fork", self._purpose)
        if seed is None:
            stream.set_state(self._source.stream.get_state())
        twin = copy.copy(self)
        twin._source = replace(self._source, stream=stream)
        twin._rest = self._rest.fork(twin._source)
        twin._apart = {columns: part.fork(twin._source) for columns, part in self._apart.items()}
        return twin

    def _answer(
        self, vectors: Float[Tensor, "count block"], start: int, stop: int
    ) -> Float[Tensor, "count rows"]:
        parts = self._parts(start, stop)
        if parts[0][0] == slice(start, stop):
            return parts[0][1].multiply(vectors)
        total = vectors.new_zeros(len(vectors), self.rows)
        open_columns = torch.nn.functional.pad(vectors, (start, self.columns - stop))
        for columns, part in parts:
            total += _distinct(open_columns[:, columns], part.multiply)
            open_columns[:, columns] = 0
        return total

    def _answer_transposed(
        self, vectors: Float[Tensor, "count rows"], start: int, stop: int
    ) -> Float[Tensor, "count block"]:
        parts = self._parts(start, stop)
        if parts[0][0] == slice(start, stop):
            return parts[0][1].multiply_transposed(vectors)
        whole = vectors.new_zeros(len(vectors), self.columns)
        for columns, part in reversed(parts):
            whole[:, columns] = part.multiply_transposed(vectors)
        return whole[:, start:stop]

    def _parts(self, start: int, stop: int) -> list[tuple[slice, ConditionedGaussian]]:
        """The parts that have columns in [start, stop), the rest of the matrix last.

        Makes a part of these columns first, unless they are all columns or overlap one.
        """
        if not 0 <= start < stop <= self.columns:
            raise InputError(
                f"`start` and `stop` (={start}, {stop}) must name columns of a matrix that has "
                f"{self.columns}"
            )
        apart = [(a, b) for a, b in sorted(self._apart) if a < stop and start < b]
        if not apart and stop - start < self.columns:
            self._apart[start, stop], self._rest = split_columns(self._rest, start, stop)
            apart = [(start, stop)]
        parts = [(slice(a, b), self._apart[a, b]) for a, b in apart]
        covered = sum(min(b, stop) - max(a, start) for a, b in apart)
        return parts if covered == stop - start else [*parts, (slice(0, self.columns), self._rest)]


def gaussian_matrices(
    sizes: Sequence[tuple[int, int, float]],
    *,
    gaussian: str,
    gaussian_bytes: int,
    seed: Seed,
    dtype: torch.dtype,
    device: torch.device | str,
) -> list[GaussianMatrix]:
    """Independent matrices of these rows, columns and standard deviations.

    "dense" builds them; "lazy" samples their products on demand, and what these remember may take
    `gaussian_bytes` in all; "auto" is dense up to `AUTO_DENSE_BYTES` in all, and lazy past it.
    """
    require_choice("gaussian", gaussian, GAUSSIAN_KINDS)
    require_count("gaussian_bytes", gaussian_bytes)
    entries = sum(rows * columns for rows, columns, _ in sizes)
    small = entries * dtype.itemsize <= AUTO_DENSE_BYTES
    kind: Callable[..., GaussianMatrix] = DenseGaussian
    limit = {}
    if gaussian == "lazy" or (gaussian == "auto" and not small):
        kind = OnDemandGaussian
        limit = {"gaussian_bytes": max(1, gaussian_bytes // len(sizes))}
    return [
        kind(
            rows,
            columns,
            standard_deviation=deviation,
            seed=seed,
            purpose=f"layer {index}",
            dtype=dtype,
            device=device,
            **limit,
        )
        for index, (rows, columns, deviation) in enumerate(sizes)
    ]


def _distinct(
    vectors: Float[Tensor, "count d_query"], answer: Callable[[Tensor], Tensor]
) -> Float[Tensor, "count d_answer"]:
    """The answers, with vectors that equal the first one queried only once: perturbed texts share
    all words but one."""
    other = (vectors != vectors[:1]).any(dim=1)
    distinct = answer(torch.cat([vectors[:1], vectors[other]]))
    total = distinct[:1].repeat(len(vectors), 1)
    total[other] = distinct[1:]
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
