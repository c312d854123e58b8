"""Operator norms bounded from above, floating-point rounding included."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.gaussian.lanczos import lanczos

UNIT_ROUNDOFF = 2.0**-53
_KRYLOV_STEPS = 12
"""Estimates are then slightly low: Cholesky's factorisation fails once or twice before one is enlarged enough."""


def rounding(count: int) -> float:
    """gamma_count = count u / (1 - count u): bounds the relative error of `count` roundings (Higham 2002, ch. 3)."""
    return count * UNIT_ROUNDOFF / (1 - count * UNIT_ROUNDOFF)


def gram_norm_bound(gram: Float[Tensor, "m m"], *, inner: int) -> float:
    """An upper bound of ‖T‖_op², given the Gram matrix T T^T as float64 inner products of `inner` terms give it.

    The largest eigenvalue is estimated, enlarged, and then verified: Cholesky's factorisation of c I - gram, made a
    little smaller on its diagonal, runs to the end only if c I - gram is positive semidefinite (Rump 2006, from
    Demmel's bound on Cholesky's backward error). The error of the Gram matrix itself, at most
    gamma_inner ‖T‖_F² in operator norm, is added.

    Args:
        gram: T T^T, or T^T T; symmetric.
        inner: how many terms each of its inner products sums.

    Raises:
        InputError: entries that are not finite.
    """
    if not bool(torch.isfinite(gram).all()):
        raise InputError("the Gram matrix of a certificate overflows float64; rescale the rows or the weights")
    size = len(gram)
    trace = float(gram.diagonal().sum())
    if trace == 0:
        return 0.0
    candidate = max(float(torch.linalg.eigvalsh(gram)[-1]), 0.0)
    error = rounding(inner + 8) * trace * (1 + 1e-6)
    identity = torch.eye(size, dtype=gram.dtype, device=gram.device)
    enlargement = 1e-10
    while True:
        bound = candidate * (1 + enlargement) + error
        shift = 2 * rounding(size + 4) * (size * bound + trace)
        factor_fails = torch.linalg.cholesky_ex((bound - shift) * identity - gram).info
        if int(factor_fails) == 0:
            return (bound + error) * (1 + 4 * UNIT_ROUNDOFF)
        enlargement *= 10
        if not math.isfinite(enlargement):
            raise InputError("the operator norm of a certificate cannot be verified; rescale the rows or the weights")


def at_most_one(vectors: Float[Tensor, "m d"], roots: Float[Tensor, "w m"]) -> Bool[Tensor, " w"]:
    """True where ‖diag(roots) T‖_op <= 1 is verified, T the matrix of the vectors: as `gram_norm_bound` verifies."""
    count, d = vectors.shape
    few = count <= d
    gram = vectors @ vectors.mT
    scaled = (
        gram * roots.unsqueeze(2) * roots.unsqueeze(1) if few else vectors.mT @ (roots.square().unsqueeze(2) * vectors)
    )
    trace = scaled.diagonal(dim1=1, dim2=2).sum(dim=1)
    size = scaled.shape[-1]
    error = rounding(max(count, d) + 16) * trace * (1 + 1e-6) + 2 * rounding(size + 4) * (size + trace)
    room = (1 - error - 8 * UNIT_ROUNDOFF)[:, None, None] * torch.eye(size, dtype=scaled.dtype, device=scaled.device)
    finite = scaled.isfinite().all(dim=2).all(dim=1)
    factored = torch.linalg.cholesky_ex(torch.where(finite[:, None, None], room - scaled, 0.0)).info
    return finite & (factored == 0)


def estimated_eigenvalues(matrices: Float[Tensor, "w m m"], steps: int = _KRYLOV_STEPS) -> Float[Tensor, " w"]:
    """About the largest eigenvalue of positive semidefinite matrices, from below; infinite where one is not finite."""
    finite = matrices.isfinite().all(dim=2).all(dim=1)
    matrices = torch.where(finite[:, None, None], matrices, 0.0)
    start = torch.linspace(1, 2, matrices.shape[-1], dtype=matrices.dtype, device=matrices.device).cos()
    start = start.expand(len(matrices), -1)
    ritz = lanczos(lambda y: (matrices @ y.unsqueeze(2)).squeeze(2), start, steps)[2][:, 0]
    found = torch.maximum(ritz, matrices.diagonal(dim1=1, dim2=2).amax(dim=1)).clamp(min=0)
    return torch.where(finite, found, torch.inf)


def largest_eigenvalues(matrices: Float[Tensor, "w m m"], error: Float[Tensor, " w"]) -> Float[Tensor, " w"]:
    """Upper bounds of the largest eigenvalues of symmetric matrices, each given to within `error` in operator norm.

    As `gram_norm_bound` verifies its estimate, for many matrices at once. Infinite where numbers are not finite.
    """
    size = matrices.shape[-1]
    finite = matrices.isfinite().all(dim=2).all(dim=1) & error.isfinite()
    matrices = torch.where(finite[:, None, None], 0.5 * (matrices + matrices.mT), 0.0)
    trace = matrices.diagonal(dim1=1, dim2=2).abs().sum(dim=1)
    least = torch.maximum(estimated_eigenvalues(matrices), trace / size)
    identity = torch.eye(size, dtype=matrices.dtype, device=matrices.device)
    result = torch.where(trace > 0, torch.inf, 0.0).to(matrices.dtype)
    enlargement = 1e-3
    while bool((left := (result == torch.inf).nonzero().squeeze(1)).numel()) and enlargement < 3 * size:
        bound = least[left] * (1 + enlargement)
        shift = 2 * rounding(size + 4) * (size * bound + trace[left])
        failed = torch.linalg.cholesky_ex((bound - shift)[:, None, None] * identity - matrices[left]).info
        result[left] = torch.where(failed == 0, bound, torch.inf)
        enlargement *= 3
    # The eigenvalues of a matrix without a trace are bounded by its error only where it is positive semidefinite.
    result = torch.where((trace == 0) & (matrices != 0).any(dim=2).any(dim=1), torch.inf, result)
    return torch.where(finite, (result + error) * (1 + 4 * UNIT_ROUNDOFF), torch.inf)
