"""Operator norms bounded from above, floating-point rounding included."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError

UNIT_ROUNDOFF = 2.0**-53


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
