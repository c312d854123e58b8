"""Leading eigenvectors of a symmetric operator that is known through its products, for a batch of problems at once."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def lanczos(
    operator: Callable[[Float[Tensor, "b m"]], Float[Tensor, "b m"]], start: Float[Tensor, "b m"], steps: int
) -> tuple[Float[Tensor, "b t m"], Float[Tensor, "b t t"], Float[Tensor, "b t"]]:
    """An orthonormal basis of the Krylov space of each start, and the Ritz vectors and values of the operator on it.

    Lanczos with full reorthogonalisation, two passes. The space has min(steps, m) dimensions; where the Krylov space is
    exhausted sooner, it goes on from the coordinate axis that lies farthest from it.

    Returns:
        basis, rotation, values: Ritz vector a is rotation[:, a] @ basis, values in decreasing order.
    """
    space = _unit(start).unsqueeze(1)
    images = [operator(space[:, 0])]
    while len(images) < min(steps, start.shape[1]):
        rest = _away(images[-1], space)
        size, scale = torch.linalg.vector_norm(rest, dim=1), torch.linalg.vector_norm(images[-1], dim=1)
        exhausted = size <= 64 * torch.finfo(rest.dtype).eps * scale
        if bool(exhausted.any()):
            # Of m axes the farthest has a squared distance of at least 1 - t / m to t orthonormal vectors.
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
        vectors = vectors - torch.einsum("btm,bt->bm", space, torch.einsum("btm,bm->bt", space, vectors))
    return vectors


def _unit(vectors: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
    return torch.nn.functional.normalize(vectors, dim=1, eps=torch.finfo(vectors.dtype).tiny)
