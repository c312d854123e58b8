"""The result of every certificate, and the verified norms that they are made of, rounding
included."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.results import Result

CERTIFIED = "certified"
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Result):
    """Upper bounds of sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, one for
    each word.

    The bounds hold for the map in exact arithmetic, with its weights as they are stored.

    Attributes:
        words: (w,), the words i.
        upper: (w,), the upper bounds, rounded outward; float64.
        failure_probability: of the statement "every bound of this certificate holds", at most, over
            the draw of the map's weights, for a text, words and a radius chosen without looking at
            them; m certificates all hold but for at most m times this. None where the bounds hold
            for certain, whatever the text.
        slack: the relative amount by which `upper` was enlarged to cover floating-point rounding.
        method: the bound's name, one line.
        rests_on: what the caller stated and nothing here has checked; None where the bounds rest on
            the map alone.
    """

    words: Int[Tensor, " w"]
    upper: Float[Tensor, " w"]
    slack: float
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
        return (
            f"with probability 1 - {self.failure_probability:.3g} over the weights, for a text "
            "chosen without them"
        )


def rounding(count: int) -> float:
    """gamma_count = count u / (1 - count u): bounds the relative error of `count` roundings (Higham
    2002, ch. 3)."""
    return count * UNIT_ROUNDOFF / (1 - count * UNIT_ROUNDOFF)


def gram_norm_bound(gram: Float[Tensor, "m m"], *, inner: int) -> float:
    """An upper bound of ‖T‖_op², given the Gram matrix T T^T as float64 inner products of `inner`
    terms give it.

    The largest eigenvalue is estimated, enlarged, and then verified: Cholesky's factorisation of c
    I - gram, made a little smaller on its diagonal, runs to the end only if c I - gram is positive
    semidefinite (Rump 2006, from Demmel's bound on Cholesky's backward error). The error of the
    Gram matrix itself, at most gamma_inner ‖T‖_F² in operator norm, is added.

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
            raise InputError(
                "the operator norm of a certificate cannot be verified; rescale the rows or the "
                "weights"
            )
