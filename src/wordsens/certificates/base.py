"""The result of every certificate, and the verified norms that they are made of, rounding
included."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.gaussian.vectors import lanczos
from wordsens.results import Result

CERTIFIED = "certified"
UNIT_ROUNDOFF = 2.0**-53
# Of Lanczos's method for many matrices at once. Its estimates are slightly low: Cholesky's
# factorisation fails once or twice before one suffices.
_KRYLOV_STEPS = 12


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Result):
    """Upper bounds of sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, one for
    each word.

    The bounds hold for the map in exact arithmetic, with its weights as they are stored.

    Attributes:
        words: (w,), the words i.
        upper: (w,), the upper bounds, rounded outward; float64.
        method: the bound's name, one line.
        failure_probability: an upper limit of the probability, over the draw of the map's weights,
            that a bound of this certificate fails, for a text, words and a radius chosen without
            looking at the weights; m certificates all hold with probability at least 1 - m times
            this. None if the bounds hold with certainty, whatever the text.
        rests_on: what the caller stated and nothing here has checked; None where the bounds rest on
            the map alone.
    """

    words: Int[Tensor, " w"]
    upper: Float[Tensor, " w"]
    method: str
    failure_probability: float | None = None
    rests_on: str | None = None

    ranked = "upper"

    @property
    def headline(self) -> str:
        """The largest bound, and how sure it is."""
        return (
            f"None of these words can move the output more than {self.value:.4g} times its size "
            f"({self.rigor})"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The bound's name."""
        return (self.method,)

    def columns(self) -> dict[str, Any]:
        """One row per word."""
        return {"word": self.words.tolist(), "upper": self.upper.tolist()}

    def __post_init__(self) -> None:
        if bool(torch.isnan(self.upper).any()) or bool((self.upper < 0).any()):
            raise InputError(
                f"the certificate {self.method!r} came out as NaN or negative: the numbers are too "
                "large for float64; "
                "rescale the rows or use a smaller radius"
            )
        if self.failure_probability is not None and not 0 < self.failure_probability < 1:
            raise InputError(
                f"`failure_probability` (={self.failure_probability!r}) must be between 0 and 1, "
                "or None"
            )

    @property
    def value(self) -> float:
        """The largest bound: an upper bound of S_phi(X) over these words."""
        return float(self.upper.max())

    @property
    def rigor(self) -> str:
        """ "certified", or "with probability 1 - x over the weights, for a text chosen without
        them", or "if ..."."""
        if self.rests_on is not None:
            return f"if {self.rests_on}"
        if self.failure_probability is None:
            return CERTIFIED
        failing = f"{self.failure_probability:.3g}".replace("e-0", "e-")
        return f"with probability 1 - {failing} over the weights, for a text chosen without them"


def rounding(count: int) -> float:
    """gamma_count = count u / (1 - count u): bounds the relative error of `count` roundings (Higham
    2002, ch. 3)."""
    return count * UNIT_ROUNDOFF / (1 - count * UNIT_ROUNDOFF)


def gram_norm_bound(gram: Float[Tensor, "m m"], *, inner: int) -> float:
    """An upper bound of ‖T‖_op², given the Gram matrix T T^T as float64 inner products of `inner`
    terms give it.

    The error of the Gram matrix itself is at most gamma_inner ‖T‖_F² in operator norm.

    Args:
        gram: T T^T, or T^T T; symmetric.
        inner: how many terms each of its inner products sums.

    Raises:
        InputError: entries that are not finite.
    """
    if not bool(torch.isfinite(gram).all()):
        raise InputError(
            "the Gram matrix of a certificate overflows float64; rescale the rows or the weights"
        )
    error = rounding(inner + 8) * gram.diagonal().sum() * (1 + 1e-6)
    estimate = torch.linalg.eigvalsh(gram)[-1:]
    bound = _verified(gram.unsqueeze(0), estimate, error.unsqueeze(0), enlargement=1e-10)
    return float(bound)


def operator_norm(matrix: Float[Tensor, "k m"]) -> float:
    """An upper bound of ‖T‖_op."""
    gram = matrix @ matrix.mT if len(matrix) <= matrix.shape[1] else matrix.mT @ matrix
    return gram_norm_bound(gram, inner=max(matrix.shape)) ** 0.5 * (1 + 1e-12)


def largest_eigenvalues(
    matrices: Float[Tensor, "w m m"], error: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """Upper bounds of the largest eigenvalues of symmetric matrices, each given to within `error`
    in operator norm. Infinite where numbers are not finite."""
    finite = matrices.isfinite().all(dim=2).all(dim=1) & error.isfinite()
    matrices = torch.where(finite[:, None, None], 0.5 * (matrices + matrices.mT), 0.0)
    bounds = _verified(matrices, estimated_eigenvalues(matrices), error, enlargement=1e-3)
    return torch.where(finite, bounds, torch.inf)


def estimated_eigenvalues(
    matrices: Float[Tensor, "w m m"], steps: int = _KRYLOV_STEPS
) -> Float[Tensor, " w"]:
    """About the largest eigenvalue of positive semidefinite matrices, from below; infinite where
    one is not finite."""
    finite = matrices.isfinite().all(dim=2).all(dim=1)
    matrices = torch.where(finite[:, None, None], matrices, 0.0)
    start = torch.linspace(
        1, 2, matrices.shape[-1], dtype=matrices.dtype, device=matrices.device
    ).cos()
    start = start.expand(len(matrices), -1)
    ritz = lanczos(lambda y: (matrices @ y.unsqueeze(2)).squeeze(2), start, steps)[2][:, 0]
    largest = torch.maximum(ritz, matrices.diagonal(dim1=1, dim2=2).amax(dim=1)).clamp(min=0)
    return torch.where(finite, largest, torch.inf)


def _verified(
    matrices: Float[Tensor, "w m m"],
    estimates: Float[Tensor, " w"],
    error: Float[Tensor, " w"],
    *,
    enlargement: float,
) -> Float[Tensor, " w"]:
    """The estimates, enlarged until they are verified, plus the error.

    Cholesky's factorisation of c I - A, made a little smaller on its diagonal, runs to the end only
    if c I - A is positive semidefinite (Rump 2006, from Demmel's bound on Cholesky's backward
    error).
    """
    size = matrices.shape[-1]
    trace = matrices.diagonal(dim1=1, dim2=2).abs().sum(dim=1)
    least = torch.maximum(estimates, trace / size)
    identity = torch.eye(size, dtype=matrices.dtype, device=matrices.device)
    # The eigenvalues of a matrix without a trace are bounded only where it is zero.
    zero = (matrices == 0).all(dim=2).all(dim=1)
    bounds = torch.where(zero, 0.0, torch.inf).to(matrices.dtype)
    while enlargement < 3 * size:
        left = ((bounds == torch.inf) & (trace > 0)).nonzero().squeeze(1)
        if not len(left):
            break
        bound = least[left] * (1 + enlargement)
        shift = 2 * rounding(size + 4) * (size * bound + trace[left])
        failed = torch.linalg.cholesky_ex(
            (bound - shift)[:, None, None] * identity - matrices[left]
        ).info
        bounds[left] = torch.where(failed == 0, bound, torch.inf)
        enlargement *= 3
    return (bounds + error) * (1 + 4 * UNIT_ROUNDOFF)
