"""Orthonormal vectors: Gram-Schmidt against the rows of a matrix, and Lanczos's Krylov bases."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

# A vector counts as inside a span when at most this many units of relative precision of its norm
# stick out of it.
SPAN_TOLERANCE = 64.0

# The least eigenvalue of a Gram matrix whose direction is taken at once, over the largest.
_WELL_CONDITIONED = 1e-2


def decompose(
    basis: Float[Tensor, "t m"], vectors: Float[Tensor, "count m"]
) -> tuple[Float[Tensor, "count t+fresh"], Float[Tensor, "fresh m"]]:
    """The coordinates of vectors in an orthonormal basis and new directions, and these directions:
    orthonormal, and orthogonal to the basis.

    What sticks out of the span by at most SPAN_TOLERANCE units of relative precision of a vector's
    norm is dropped, so a combination of earlier vectors gives no new direction.
    """
    norms = _norms(vectors)
    rest = vectors / torch.where(norms > 0, norms, torch.ones_like(norms))
    floor = SPAN_TOLERANCE * torch.finfo(rest.dtype).eps
    coordinates = [_project(rest, basis)]
    directions = rest[:0]
    while bool((outside := _norms(rest).squeeze(1) > floor).any()):
        new = _leading(rest[outside])
        if len(rest) > 1:
            # What is left of a vector holds rounding of the span that it has left.
            _project(new, basis)
            _project(new, directions)
            new = _leading(new)
        directions = torch.cat([directions, new])
        coordinates.append(_project(rest, new))
    return norms * torch.cat(coordinates, dim=1), directions


def _leading(vectors: Float[Tensor, "count m"]) -> Float[Tensor, "rank m"]:
    """Orthonormal directions in which the vectors are large."""
    if len(vectors) == 1:
        return vectors / _norms(vectors)
    sizes, frame = torch.linalg.eigh(vectors @ vectors.T)
    large = sizes > _WELL_CONDITIONED * sizes[-1]
    return (frame / sizes.sqrt()).T[large] @ vectors


def _project(
    vectors: Float[Tensor, "count m"], basis: Float[Tensor, "t m"]
) -> Float[Tensor, "count t"]:
    """Make the vectors orthogonal to the basis, in place; returns the inner products that they
    had."""
    before = _norms(vectors)
    found = vectors @ basis.T
    vectors.addmm_(found, basis, alpha=-1)
    # Twice is enough, as Kahan and Parlett showed, and needed where much cancels.
    if bool((_norms(vectors) < 0.5 * before).any()):
        again = vectors @ basis.T
        vectors.addmm_(again, basis, alpha=-1)
        found += again
    return found


def _norms(vectors: Float[Tensor, "count m"]) -> Float[Tensor, "count 1"]:
    return torch.linalg.vector_norm(vectors, dim=1, keepdim=True)


def lanczos(
    operator: Callable[[Float[Tensor, "b m"]], Float[Tensor, "b m"]],
    start: Float[Tensor, "b m"],
    steps: int,
) -> tuple[Float[Tensor, "b t m"], Float[Tensor, "b t t"], Float[Tensor, "b t"]]:
    """An orthonormal basis of the Krylov space of each start, and the Ritz vectors and values of
    the operator on it.

    Lanczos with full reorthogonalisation, two passes. The space has min(steps, m) dimensions; where
    the Krylov space is exhausted sooner, it continues from the coordinate axis that lies farthest
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
