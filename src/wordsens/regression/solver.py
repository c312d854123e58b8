"""Solving with the kernel matrix K = Phi Phi^T + ridge I: by Cholesky, or by conjugate gradients where N is large."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import WordsensError
from wordsens.regression.features import TrainingFeatures

SOLVERS = ("auto", "cholesky", "cg")

LARGEST_CHOLESKY = 10_000
"""With solver="auto", more training texts than this are solved by conjugate gradients: K would take 0.8 GB and up."""

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
        solver: "cholesky" or "cg".
        largest, smallest: estimates of K's extreme eigenvalues, ridge and jitter included. `smallest` is attained by a
            vector, so the true one is at most that.
        ridge: what the caller added to the diagonal.
        jitter: what was added beyond it to repair a singular matrix; 0 unless a ConditioningWarning was given.
        residual: ‖(Phi Phi^T + ridge I) a - Y‖ / ‖Y‖ of the fit.
        iterations: of conjugate gradients; 0 for Cholesky.
    """

    solver: str
    largest: float
    smallest: float
    ridge: float
    jitter: float
    residual: float
    iterations: int = 0

    @property
    def condition(self) -> float:
        """largest / smallest: a lower bound of the condition number, close to it as a rule."""
        return self.largest / self.smallest if self.smallest > 0 else float("inf")


class KernelSolver(ABC):
    """Solves K a = b for rows b; K = Phi Phi^T + ridge I."""

    name: str
    jitter: float = 0.0
    iterations: int = 0

    @abstractmethod
    def solve(self, right: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        """K^-1 b for every row b."""

    @abstractmethod
    def multiply(self, vectors: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        """K v for every row v, without jitter."""

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Estimates of the largest and the smallest eigenvalue."""

    def residual(self, solution: Float[Tensor, "m N"], right: Float[Tensor, "m N"]) -> float:
        """The largest ‖K a - b‖ / ‖b‖ over the rows."""
        left = torch.linalg.vector_norm(self.multiply(solution) - right, dim=1)
        return float((left / torch.linalg.vector_norm(right, dim=1)).max())


class CholeskySolver(KernelSolver):
    """K = L L^T, kept: O(N³) once and O(N²) a right-hand side, with one step of iterative refinement.

    When K is singular to rounding, N eps times its mean diagonal is added, with a ConditioningWarning.

    Raises SingularGramError when K is singular even so.
    """

    name = "cholesky"

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
        solution = torch.cholesky_solve(right.T, self._factor).T
        rest = right - self.multiply(solution)
        return solution + torch.cholesky_solve(rest.T, self._factor).T

    def multiply(self, vectors: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        return vectors @ self._gram

    def extremes(self) -> tuple[float, float]:
        """By power iteration with K and with K^-1 on the factor."""
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


class ConjugateGradientSolver(KernelSolver):
    """Conjugate gradients on products with Phi and Phi^T: K is never formed; two passes over Phi an iteration.

    Raises SingularGramError when the residual does not fall to `tolerance` in `most` iterations.
    """

    name = "cg"

    def __init__(self, features: TrainingFeatures, ridge: float, *, tolerance: float = 1e-12, most: int | None = None):
        self._features, self._ridge, self._tolerance = features, ridge, tolerance
        self._most = 10 * len(features) if most is None else most
        self._ritz = (float("nan"), float("nan"))

    def multiply(self, vectors: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        return self._features.inner_products(self._features.combine(vectors)) + self._ridge * vectors

    def solve(self, right: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        solution, rest = torch.zeros_like(right), right.clone()
        direction, squared = rest.clone(), rest.square().sum(dim=1)
        goal = squared * self._tolerance**2
        steps, turns = [], []
        for _ in range(self._most):
            if bool((squared <= goal).all()):
                break
            pushed = self.multiply(direction)
            # A row that is solved already stands still: its direction is zero.
            curvature = (direction * pushed).sum(dim=1)
            step = torch.where(curvature > 0, squared / torch.where(curvature > 0, curvature, 1.0), 0.0)
            solution = solution + step.unsqueeze(1) * direction
            rest = rest - step.unsqueeze(1) * pushed
            before, squared = squared, rest.square().sum(dim=1)
            turn = torch.where(before > 0, squared / torch.where(before > 0, before, 1.0), 0.0)
            direction = rest + turn.unsqueeze(1) * direction
            steps.append(float(step[0]))
            turns.append(float(turn[0]))
        if bool((squared > goal).any()):
            worst = float((squared / right.square().sum(dim=1)).max().sqrt())
            raise _singular(f"conjugate gradients stand at a residual of {worst:.2g} after {len(steps)} iterations")
        self.iterations = max(self.iterations, len(steps))
        if len(steps) > 0 and self._ritz[0] != self._ritz[0]:
            self._ritz = _ritz_values(steps, turns)
        return solution

    def extremes(self) -> tuple[float, float]:
        """Ritz values of the first right-hand side that was solved."""
        return self._ritz


def _ritz_values(steps: list[float], turns: list[float]) -> tuple[float, float]:
    """The extreme eigenvalues of the tridiagonal matrix that conjugate gradients build on their way."""
    count = sum(step > 0 for step in steps)
    shifts = [0.0, *(turns[at] / steps[at] for at in range(count - 1))]
    diagonal = torch.tensor([1 / steps[at] + shifts[at] for at in range(count)], dtype=torch.float64)
    beside = torch.tensor([turns[at] ** 0.5 / steps[at] for at in range(count - 1)], dtype=torch.float64)
    tridiagonal = torch.diag(diagonal) + torch.diag(beside, 1) + torch.diag(beside, -1)
    values = torch.linalg.eigvalsh(tridiagonal)
    return float(values[-1]), float(values[0])


def kernel_solver(features: TrainingFeatures, solver: str, ridge: float) -> KernelSolver:
    """The solver of that name; "auto" is Cholesky up to `LARGEST_CHOLESKY` texts."""
    if solver == "cg" or (solver == "auto" and len(features) > LARGEST_CHOLESKY):
        return ConjugateGradientSolver(features, ridge)
    return CholeskySolver(features, ridge)


def _singular(reason: str) -> SingularGramError:
    return SingularGramError(
        f"the kernel matrix Phi Phi^T cannot be inverted ({reason}); leave out repeated texts, take fewer texts than "
        "features, use float64, or pass `ridge`"
    )
