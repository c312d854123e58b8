"""Growing sets of vectors: stacks of rows, Gram-Schmidt against an orthonormal stack, and Lanczos's
Krylov bases."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

CHUNK = 16
"""Vectors a chunk holds, unless more come at once."""

SPAN_TOLERANCE = 64.0
"""A vector counts as inside a span when at most this many units of relative precision of its norm
stick out of it."""

_PANEL = 128

_PIECE_BYTES = 2 << 20
"""Of the vectors that are read twice in a row, at most, but for _LEAST_PIECE of them: the second
time they come from the processor's cache."""

_LEAST_PIECE = 4
_WELL_CONDITIONED = 1e-2
_LEAST_LEFT = 0.5
"""Of a direction's length that its second projection must leave: one that cancels more needs a
third."""
_MOST_PASSES = 3


class VectorStack:
    """A growing list of vectors of one length, append only.

    Full chunks are shared between forks; nothing that was appended is moved or changed again.
    """

    def __init__(self, dimension: int, *, dtype: torch.dtype, device: torch.device):
        self.dimension = dimension
        self.dtype = dtype
        self.device = device
        self._chunks: list[Tensor] = []
        self._filled: list[int] = []
        self._length = 0

    @classmethod
    def of(cls, vectors: Float[Tensor, "count dimension"]) -> "VectorStack":
        """A stack that holds copies of these vectors."""
        stack = cls(vectors.shape[1], dtype=vectors.dtype, device=vectors.device)
        if len(vectors):
            stack._chunks, stack._filled = (
                [vectors.clone(memory_format=torch.contiguous_format)],
                [len(vectors)],
            )
            stack._length = len(vectors)
        return stack

    def emptied(self) -> "VectorStack":
        """A stack for vectors of the same kind, with none in it."""
        return VectorStack(self.dimension, dtype=self.dtype, device=self.device)

    def __len__(self) -> int:
        return self._length

    @property
    def bytes(self) -> int:
        """Memory of the chunks, the room not yet filled included."""
        return sum(chunk.numel() * chunk.element_size() for chunk in self._chunks)

    def bytes_to_append(self, count: int) -> int:
        """The bytes of new memory that appending `count` vectors takes."""
        room = len(self._chunks[-1]) - self._filled[-1] if self._chunks else 0
        missing = count - room
        return 0 if missing <= 0 else max(CHUNK, missing) * self.dimension * self.dtype.itemsize

    def append(self, vectors: Float[Tensor, "count dimension"]) -> None:
        """Keep copies of the vectors."""
        self._length += len(vectors)
        while len(vectors):
            if not self._chunks or self._filled[-1] == len(self._chunks[-1]):
                self._chunks.append(self._room(max(CHUNK, len(vectors))))
                self._filled.append(0)
            start = self._filled[-1]
            taken = vectors[: len(self._chunks[-1]) - start]
            self._chunks[-1][start : start + len(taken)] = taken
            self._filled[-1] += len(taken)
            vectors = vectors[len(taken) :]

    def inner_products(
        self, vectors: Float[Tensor, "count dimension"]
    ) -> Float[Tensor, "count length"]:
        """Entry (j, a): the inner product of vector j with the stack's vector a."""
        if not self._chunks:
            return vectors.new_empty(len(vectors), 0)
        products = [vectors @ chunk.T for chunk in self._parts()]
        return products[0] if len(products) == 1 else torch.cat(products, dim=1)

    def combine(
        self, coefficients: Float[Tensor, "count length"]
    ) -> Float[Tensor, "count dimension"]:
        """Row j: the sum over a of coefficients[j, a] times the stack's vector a."""
        total = coefficients.new_zeros(len(coefficients), self.dimension)
        parts = coefficients.split(self._filled, dim=1) if self._filled else ()
        for part, chunk in zip(parts, self._parts(), strict=True):
            total.addmm_(part, chunk)
        return total

    def set_components(
        self,
        vectors: Float[Tensor, "count dimension"],
        wanted: Float[Tensor, "count length"] | None = None,
    ) -> Float[Tensor, "count length"]:
        """Give the vectors these inner products with the stack's, zeros by default, in place;
        returns those they had.

        The stack's vectors must be orthonormal. Each of them is read once from memory.
        """
        products, start = [vectors.new_empty(len(vectors), 0)], 0
        size = max(_LEAST_PIECE, _PIECE_BYTES // (self.dimension * self.dtype.itemsize))
        for piece in (piece for part in self._parts() for piece in part.split(size)):
            products.append(vectors @ piece.T)
            change = (
                -products[-1]
                if wanted is None
                else wanted[:, start : start + len(piece)] - products[-1]
            )
            vectors.addmm_(change, piece)
            start += len(piece)
        return torch.cat(products, dim=1)

    def stacked(self) -> Float[Tensor, "length dimension"]:
        """All vectors as one matrix: a copy."""
        return torch.cat([self._room(0), *self._parts()])

    def fork(self) -> "VectorStack":
        """A copy that can grow apart from this one. Only a chunk with room left is copied."""
        twin = self.emptied()
        twin._filled, twin._length = list(self._filled), self._length
        twin._chunks = [
            chunk if filled == len(chunk) else chunk.clone()
            for chunk, filled in zip(self._chunks, self._filled, strict=True)
        ]
        return twin

    def _room(self, count: int) -> Tensor:
        return torch.empty(count, self.dimension, dtype=self.dtype, device=self.device)

    def _parts(self) -> list[Tensor]:
        return [chunk[:filled] for chunk, filled in zip(self._chunks, self._filled, strict=True)]


@dataclass(frozen=True)
class Decomposition:
    """vectors = old @ basis + new @ directions, with directions orthonormal and orthogonal to the
    basis."""

    old: Float[Tensor, "count length"]
    new: Float[Tensor, "count fresh"]
    directions: Float[Tensor, "fresh dimension"]


def decompose(basis: VectorStack, vectors: Float[Tensor, "count dimension"]) -> Decomposition:
    """Split vectors into what the orthonormal basis spans and new orthonormal directions.

    Gram-Schmidt, a projection being repeated while it cancels more than half of a vector (twice is
    enough, as Kahan and Parlett showed); several vectors are made orthonormal between the first and
    the second. What sticks out of the span by at most SPAN_TOLERANCE units of relative precision of
    the vector's norm is dropped, so a combination of earlier vectors gives no new direction.
    """
    old = len(basis)
    extra = basis.emptied()
    coordinates = []
    for panel in vectors.split(_PANEL):
        floor = (
            SPAN_TOLERANCE * torch.finfo(panel.dtype).eps * torch.linalg.vector_norm(panel, dim=1)
        )
        # A panel's second projection is that of its orthonormal directions.
        passes = _MOST_PASSES if len(panel) == 1 else 1
        spanned, rest = _project((basis, extra), panel, floor, passes)
        added = _well_conditioned(rest, floor, (basis, extra)) if len(panel) > 1 else None
        if added is None:
            coordinates += _one_by_one(spanned, rest, floor, basis, extra)
        else:
            coordinates.append(torch.cat([spanned + added[0], added[1]], dim=1))
            extra.append(added[2])
    width = old + len(extra)
    padded = [torch.nn.functional.pad(rows, (0, width - rows.shape[1])) for rows in coordinates]
    table = torch.cat([vectors.new_empty(0, width), *padded])
    return Decomposition(old=table[:, :old], new=table[:, old:], directions=extra.stacked())


def _project(
    stacks: tuple[VectorStack, ...],
    vectors: Float[Tensor, "count dimension"],
    floor: Float[Tensor, " count"],
    passes: int = _MOST_PASSES,
) -> tuple[Float[Tensor, "count length"], Float[Tensor, "count dimension"]]:
    """Coefficients on the stacks together, and what is left outside their span."""
    stacks = tuple(stack for stack in stacks if len(stack))
    total = vectors.new_zeros(len(vectors), sum(len(stack) for stack in stacks))
    if not stacks:
        return total, vectors
    rest, norms = vectors.clone(), torch.linalg.vector_norm(vectors, dim=1)
    for _ in range(passes):
        total += torch.cat([stack.set_components(rest) for stack in stacks], dim=1)
        left = torch.linalg.vector_norm(rest, dim=1)
        if bool(((left > 0.5 * norms) | (left <= floor)).all()):
            break
        norms = left
    return total, rest


def _well_conditioned(
    rest: Float[Tensor, "count dimension"],
    floor: Float[Tensor, " count"],
    stacks: tuple[VectorStack, ...],
) -> (
    tuple[
        Float[Tensor, "count length"],
        Float[Tensor, "count count"],
        Float[Tensor, "count dimension"],
    ]
    | None
):
    """Coordinates of a panel on the stacks, what they lack, and in its own directions, which are
    orthonormal.

    By Cholesky factors of its Gram matrix, done twice, with a projection between. None where the
    panel's vectors are too close to dependent for that, or too close to the span of the stacks for
    two projections.
    """
    norms = torch.linalg.vector_norm(rest, dim=1)
    if not bool((norms > floor).all()):
        return None
    scaled = rest / norms.unsqueeze(1)
    first, failed = torch.linalg.cholesky_ex(scaled @ scaled.T)
    if int(failed) != 0 or float(first.diagonal().min()) < _WELL_CONDITIONED:
        return None
    frame = _inverse(first) @ scaled
    spanned, frame = _project(stacks, frame, torch.zeros_like(floor))
    if float(torch.linalg.vector_norm(frame, dim=1).min()) < _LEAST_LEFT:
        return None
    second = torch.linalg.cholesky(frame @ frame.T)
    scale = norms.unsqueeze(1) * first
    return scale @ spanned, scale @ second, _inverse(second) @ frame


def _inverse(factor: Float[Tensor, "count count"]) -> Float[Tensor, "count count"]:
    """The inverse of a well-conditioned lower triangle. A solve with many long rows would return
    them as columns, which slows every later product.
    """
    return torch.linalg.solve_triangular(
        factor, torch.eye(len(factor), dtype=factor.dtype, device=factor.device), upper=False
    )


def _one_by_one(
    spanned: Float[Tensor, "count length"],
    rest: Float[Tensor, "count dimension"],
    floor: Float[Tensor, " count"],
    basis: VectorStack,
    extra: VectorStack,
) -> list[Float[Tensor, "1 _"]]:
    """The coordinates of each vector of a panel, in turn; new directions are appended to
    `extra`."""
    coordinates, start = [], spanned.shape[1]
    for row in range(len(rest)):
        vector, least = rest[row : row + 1], floor[row : row + 1]
        inside = spanned[row : row + 1]
        if len(rest) > 1:
            more, vector = _project((basis, extra), vector, least)
            more[:, :start] += inside
            inside = more
        norm = torch.linalg.vector_norm(vector, dim=1)
        if bool(norm > least):
            extra.append(vector / norm)
            inside = torch.cat([inside, norm.unsqueeze(1)], dim=1)
        coordinates.append(inside)
    return coordinates


def lanczos(
    operator: Callable[[Float[Tensor, "b m"]], Float[Tensor, "b m"]],
    start: Float[Tensor, "b m"],
    steps: int,
) -> tuple[Float[Tensor, "b t m"], Float[Tensor, "b t t"], Float[Tensor, "b t"]]:
    """An orthonormal basis of the Krylov space of each start, and the Ritz vectors and values of
    the operator on it.

    Lanczos with full reorthogonalisation, two passes. The space has min(steps, m) dimensions; where
    the Krylov space is exhausted sooner, it goes on from the coordinate axis that lies farthest
    from it.

    Returns:
        basis, rotation, values: Ritz vector a is rotation[:, a] @ basis, values in decreasing
            order.
    """
    space = _unit(start).unsqueeze(1)
    images = [operator(space[:, 0])]
    while len(images) < min(steps, start.shape[1]):
        rest = _away(images[-1], space)
        size, scale = (
            torch.linalg.vector_norm(rest, dim=1),
            torch.linalg.vector_norm(images[-1], dim=1),
        )
        exhausted = size <= 64 * torch.finfo(rest.dtype).eps * scale
        # A device other than the CPU is not waited for.
        if rest.device.type != "cpu" or bool(exhausted.any()):
            # Of m axes the farthest has a squared distance of at least 1 - t / m to t orthonormal
            # vectors.
            farthest = space.square().sum(dim=1).argmin(dim=1, keepdim=True)
            axis = torch.zeros_like(rest).scatter_(1, farthest, 1.0)
            rest = torch.where(exhausted.unsqueeze(1), _away(axis, space), rest)
        space = torch.cat([space, _unit(rest).unsqueeze(1)], dim=1)
        images.append(operator(space[:, -1]))
    projected = space @ torch.stack(images, dim=1).mT
    values, vectors = torch.linalg.eigh((projected + projected.mT) / 2)
    return space, vectors.mT.flip(1), values.flip(1)


def _away(vectors: Float[Tensor, "b m"], space: Float[Tensor, "b t m"]) -> Float[Tensor, "b m"]:
    """The parts of the vectors orthogonal to each space."""
    for _ in range(2):
        vectors = vectors - torch.einsum(
            "btm,bt->bm", space, torch.einsum("btm,bm->bt", space, vectors)
        )
    return vectors


def _unit(vectors: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
    return torch.nn.functional.normalize(vectors, dim=1, eps=torch.finfo(vectors.dtype).tiny)
