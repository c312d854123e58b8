"""Leading eigenvectors of a symmetric operator that is known through its products, for a batch of problems at once."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def lanczos(
    operator: Callable[[Float[Tensor, "b m"]], Float[Tensor, "b m"]], start: Float[Tensor, "b m"], steps: int
) -> tuple[Float[Tensor, "b t m"], Float[Tensor, "b t t"], Float[Tensor, "b t"]]:
    """An orthonormal basis of the Krylov space of each start, and the Ritz vectors and values of the operator on it.

    Lanczos with full reorthogonalisation, two passes. The space has min(steps, m) dimensions; where it is exhausted
    sooner, its last basis vectors are zero, and so are their Ritz values.

    Returns:
        basis, rotation, values: Ritz vector a is rotation[:, a] @ basis, values in decreasing order.
    """
    unit = _unit(start)
    basis, images = [unit], []
    for _ in range(min(steps, start.shape[1])):
        image = operator(basis[-1])
        images.append(image)
        known = torch.stack(basis, dim=1)
        rest = image
        for _ in range(2):
            rest = rest - torch.einsum("btm,bt->bm", known, torch.einsum("btm,bm->bt", known, rest))
        size, scale = torch.linalg.vector_norm(rest, dim=1), torch.linalg.vector_norm(image, dim=1)
        exhausted = size <= 64 * torch.finfo(rest.dtype).eps * scale
        basis.append(torch.where(exhausted.unsqueeze(1), torch.zeros_like(rest), _unit(rest)))
    space = torch.stack(basis[:-1], dim=1)
    projected = space @ torch.stack(images, dim=1).mT
    values, vectors = torch.linalg.eigh((projected + projected.mT) / 2)
    return space, vectors.mT.flip(1), values.flip(1)


def _unit(vectors: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
    return torch.nn.functional.normalize(vectors, dim=1, eps=torch.finfo(vectors.dtype).tiny)
