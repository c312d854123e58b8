"""Solving with the kernel matrix K = Phi Phi^T + ridge I."""

import warnings
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import WordsensError
from wordsens.regression.features import TrainingFeatures

RESIDUAL = 1e-6
"""The largest relative residual ‖K a - Y‖ / ‖Y‖ that still counts as interpolation."""

_POWER_STEPS = 60


class SingularGramError(WordsensError, ArithmeticError):
    """The kernel matrix is singular beyond repair: its equations cannot be solved in float64."""


class ConditioningWarning(UserWarning):
    """The kernel matrix was singular to rounding; it was solved with a jitter, which the warning states."""


@dataclass(frozen=True)
class Conditioning:
    """The condition of the kernel matrix, and how well it was solved with.

    Attributes:
        largest, smallest: estimates of K's extreme eigenvalues, ridge and jitter included. `smallest` is attained by a
            vector, so the true one is at most that.
        ridge: what the caller added to the diagonal.
        jitter: what was added beyond it to repair a singular matrix; 0 unless a ConditioningWarning was given.
        residual: ‖(Phi Phi^T + ridge I) a - Y‖ / ‖Y‖ of the fit.
    """

    largest: float
    smallest: float
    ridge: float
    jitter: float
    residual: float

    @property
    def condition(self) -> float:
        """largest / smallest: a lower bound of the condition number, close to it as a rule."""
        return self.largest / self.smallest if self.smallest > 0 else float("inf")


class KernelSolver:
    """Solves K a = b for rows b, by K = L L^T: O(N³) once, O(N²) a right-hand side, with one iterative refinement.

    When K is singular to rounding, N eps times its mean diagonal is added, with a ConditioningWarning.

    Raises SingularGramError when K is singular even so.
    """

    jitter: float = 0.0

    def __init__(self, features: TrainingFeatures, ridge: float):
        self._gram = features.gram()
        self._gram.diagonal().add_(ridge)
        factor, failed = torch.linalg.cholesky_ex(self._gram)
        if int(failed) != 0:
            size = len(features) * torch.finfo(torch.float64).eps * float(self._gram.diagonal().mean())
            repaired = self._gram.clone()
            repaired.diagonal().add_(size)
            factor, still = torch.linalg.cholesky_ex(repaired)
            if int(still) != 0 or size == 0:
                raise _singular(f"its factorisation fails at row {int(still)} of {len(features)}")
            self.jitter = size
            warnings.warn(
                f"the kernel matrix of {len(features)} texts is singular to rounding; {size:.3g} was added to its "
                "diagonal; leave out repeated texts, or pass `ridge`",
                ConditioningWarning,
                stacklevel=2,
            )
        self._factor = factor

    def solve(self, right: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        """K^-1 b for every row b."""
        solution = torch.cholesky_solve(right.T, self._factor).T
        rest = right - self.multiply(solution)
        return solution + torch.cholesky_solve(rest.T, self._factor).T

    def multiply(self, vectors: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        """K v for every row v, without jitter."""
        return vectors @ self._gram

    def residual(self, solution: Float[Tensor, "m N"], right: Float[Tensor, "m N"]) -> float:
        """The largest ‖K a - b‖ / ‖b‖ over the rows."""
        left = torch.linalg.vector_norm(self.multiply(solution) - right, dim=1)
        return float((left / torch.linalg.vector_norm(right, dim=1)).max())

    def extremes(self) -> tuple[float, float]:
        """Estimates of the largest and the smallest eigenvalue: power iteration with K, and with K^-1 on the factor."""
        ends = []
        for inverse in (False, True):
            stream = torch.Generator(device="cpu").manual_seed(0)
            vector = torch.randn(len(self._gram), 1, generator=stream, dtype=torch.float64).to(self._gram.device)
            for _ in range(_POWER_STEPS):
                vector = vector / torch.linalg.vector_norm(vector)
                vector = torch.cholesky_solve(vector, self._factor) if inverse else self._gram @ vector
            length = torch.linalg.vector_norm(vector)
            ends.append(float(1 / length if inverse else length))
        return ends[0], ends[1]


def _singular(reason: str) -> SingularGramError:
    return SingularGramError(
        f"the kernel matrix Phi Phi^T cannot be inverted ({reason}); leave out repeated texts, take fewer texts than "
        "features, use float64, or pass `ridge`"
    )
