"""Min-norm interpolation of labelled texts from their kernel matrix, and its two updates by one
more text.

docs/theory/generalization.md has the formulas.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import (
    InputError,
    WordsensError,
    ZeroFeaturesError,
    require_choice,
    require_count,
)
from wordsens.generalization.features import TRAINING_BYTES, Texts, TrainingFeatures
from wordsens.maps.arguments import as_feature_map
from wordsens.maps.base import FeatureMap
from wordsens.results import Result
from wordsens.text.matrix import TextMatrix

TRAININGS = ("fine-tuned", "retrained")

_IN_SPAN = 1000.0
"""Features whose part outside the training span is at most this many units of their precision count
as inside it."""


RESIDUAL = 1e-6
"""The largest relative residual ‖K a - Y‖ / ‖Y‖ that still counts as interpolation."""

_POWER_STEPS = 60


class SingularGramError(WordsensError, ArithmeticError):
    """The kernel matrix is singular beyond repair: its equations cannot be solved in float64."""


class ConditioningWarning(UserWarning):
    """The kernel matrix was singular to rounding; it was solved with a jitter, which the warning
    states."""


@dataclass(frozen=True)
class Conditioning:
    """The condition of the kernel matrix, and how well it was solved with.

    Attributes:
        largest, smallest: estimates of K's extreme eigenvalues, ridge and jitter included.
            `smallest` is attained by a vector, so the true one is at most that.
        ridge: what the caller added to the diagonal.
        jitter: what was added beyond it to repair a singular matrix; 0 unless a ConditioningWarning
            was given.
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
    """Solves K a = b for rows b, by K = L L^T: O(N³) once, O(N²) a right-hand side, with one
    iterative refinement.

    When K is singular to rounding, N eps times its mean diagonal is added, with a
    ConditioningWarning.

    Raises SingularGramError when K is singular even so.
    """

    jitter: float = 0.0

    def __init__(self, features: TrainingFeatures, ridge: float):
        self._gram = features.gram()
        self._gram.diagonal().add_(ridge)
        factor, failed = torch.linalg.cholesky_ex(self._gram)
        if int(failed) != 0:
            size = (
                len(features) * torch.finfo(torch.float64).eps * float(self._gram.diagonal().mean())
            )
            repaired = self._gram.clone()
            repaired.diagonal().add_(size)
            factor, still = torch.linalg.cholesky_ex(repaired)
            if int(still) != 0 or size == 0:
                raise SingularGramError(
                    "the kernel matrix Phi Phi^T cannot be inverted (its factorisation fails at "
                    "row "
                    f"{int(still)} of {len(features)}); leave out repeated texts, take fewer texts "
                    "than features, use "
                    "float64, or pass `ridge`"
                )
            self.jitter = size
            warnings.warn(
                f"the kernel matrix of {len(features)} texts is singular to rounding; {size:.3g} "
                "was added to its "
                "diagonal; leave out repeated texts, or pass `ridge`",
                ConditioningWarning,
                stacklevel=2,
            )
        self._factor = factor

    def solve(self, right: Float[Tensor, "m N"]) -> Float[Tensor, "m N"]:
        """K^-1 b for every row b."""
        solution = torch.cholesky_solve(right.T, self._factor).T
        rest = right - solution @ self._gram
        return solution + torch.cholesky_solve(rest.T, self._factor).T

    def residual(self, solution: Float[Tensor, "m N"], right: Float[Tensor, "m N"]) -> float:
        """The largest ‖K a - b‖ / ‖b‖ over the rows."""
        left = torch.linalg.vector_norm(solution @ self._gram - right, dim=1)
        return float((left / torch.linalg.vector_norm(right, dim=1)).max())

    def extremes(self) -> tuple[float, float]:
        """Estimates of the largest and the smallest eigenvalue: power iteration with K, and with
        K^-1 on the factor."""
        ends = []
        for inverse in (False, True):
            stream = torch.Generator(device="cpu").manual_seed(0)
            vector = torch.randn(len(self._gram), 1, generator=stream, dtype=torch.float64).to(
                self._gram.device
            )
            for _ in range(_POWER_STEPS):
                vector = vector / torch.linalg.vector_norm(vector)
                vector = (
                    torch.cholesky_solve(vector, self._factor) if inverse else self._gram @ vector
                )
            length = torch.linalg.vector_norm(vector)
            ends.append(float(1 / length if inverse else length))
        return ends[0], ends[1]


@dataclass(frozen=True, eq=False, repr=False)
class Update(Result):
    """The parameters after (X, y) is learned: theta = theta* + direction (y - phi(X).theta*).

    Attributes:
        training: "fine-tuned": direction = phi(X) / ‖phi(X)‖², one exact gradient step (Theorem 4).
            "retrained": direction = Pphi / (‖Pphi‖² + ridge), the min-norm interpolation of the N +
            1 texts (Theorem 5), by the bordered inverse of the kernel matrix.
        direction: (p,), float64.
        alignment: phi(X).direction, the feature alignment of X with itself: 1, or less with a
            ridge.
    """

    training: str
    direction: Float[Tensor, " p"]
    alignment: float


@dataclass(frozen=True, eq=False, repr=False)
class MinNormFit:
    """theta* = Phi^T (Phi Phi^T + ridge I)^-1 Y: with ridge 0 the interpolation of least norm,
    Phi^+ Y.

    Made by `fit_min_norm`; serves any number of test texts.

    Attributes:
        phi: the map.
        features: Phi, as an operator.
        labels: Y, (N,).
        theta: theta*, (p,), float64.
        conditioning: of K.
        ridge: the number added to K's diagonal.
    """

    phi: FeatureMap
    features: TrainingFeatures
    labels: Float[Tensor, " N"]
    theta: Float[Tensor, " p"]
    conditioning: Conditioning
    ridge: float
    _solver: KernelSolver = field(repr=False)

    def __repr__(self) -> str:
        (n, d), kernel = self.features.text_shape, self.conditioning
        kind = f"ridge {self.ridge:.3g}" if self.ridge else "interpolates"
        return (
            f"MinNormFit({self.phi.name}: {len(self.features)} texts ({n}, {d}), "
            f"{self.features.size} features; "
            f"{kind}, relative residual {kernel.residual:.1g}; smallest kernel eigenvalue "
            f"{kernel.smallest:.3g}, "
            f"condition {kernel.condition:.3g})"
        )

    def map(self, text: TextMatrix | Tensor) -> Float[Tensor, " p"]:
        """flat(phi(X)) in float64."""
        with torch.no_grad():
            return self.phi(text).flatten().double()

    def predict(self, texts: Texts) -> Float[Tensor, " m"]:
        """phi(X).theta* for every text."""
        features = TrainingFeatures(self.phi, texts, memory_budget=1)
        return features.inner_products(self.theta.unsqueeze(0))[0]

    def accuracy(self, texts: Texts, labels: Iterable[Any]) -> float:
        """The share of texts whose output has the sign of its label; an output of 0 counts as
        wrong."""
        outputs = self.predict(texts)
        return float(
            (outputs * as_labels(labels, len(outputs), "labels").to(outputs.device) > 0)
            .double()
            .mean()
        )

    def residual(self, features: Float[Tensor, "m p"]) -> Float[Tensor, "m p"]:
        """v - Phi^T (K + ridge I)^-1 Phi v for every row v: with ridge 0, the projection (I - Phi^+
        Phi) v.

        The projector is never formed. Costs two passes over Phi; four where most of v lies in the
        span of its rows.
        """
        rest = self._projected(features)
        if self.ridge == 0:
            squared, whole = rest.square().sum(dim=1), features.square().sum(dim=1)
            # Where most was taken away the rounding of it is left in: once more takes it out.
            if bool((squared < 0.25 * whole).any()):
                rest = self._projected(rest)
        return rest

    def update(self, features: Float[Tensor, " p"], training: str) -> Update:
        """The direction in which learning (X, y), phi(X) = features, moves the parameters.

        Raises:
            ZeroFeaturesError: phi(X) = 0.
            SingularGramError: retrained, and phi(X) lies in the span of the training features: the
                N + 1 texts cannot all be interpolated.
        """
        require_choice("training", training, TRAININGS)
        whole = float(features.square().sum())
        if whole == 0:
            raise ZeroFeaturesError(
                f"{self.phi.name} maps this text to zero, so it cannot be learned; use another text"
            )
        if training == "fine-tuned":
            return Update(training, features / whole, 1.0)
        rest = self.residual(features.unsqueeze(0))[0]
        squared = float((features * rest).sum()) if self.ridge else float(rest.square().sum())
        if self.ridge == 0 and squared <= (_IN_SPAN * torch.finfo(self.phi.dtype).eps) ** 2 * whole:
            raise SingularGramError(
                "phi(X) lies in the span of the training features, so the text cannot be retrained "
                "on; "
                "use a text that is not among the training texts, a wider map, or a ridge"
            )
        return Update(training, rest / (squared + self.ridge), squared / (squared + self.ridge))

    def _projected(self, features: Float[Tensor, "m p"]) -> Float[Tensor, "m p"]:
        return features - self.features.combine(
            self._solver.solve(self.features.inner_products(features))
        )


@torch.inference_mode(False)
def fit_min_norm(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Texts,
    y: Iterable[Any],
    *,
    ridge: float | int = 0.0,
    memory_budget: int = TRAINING_BYTES,
) -> MinNormFit:
    """The least-norm parameters that interpolate N labelled texts, from their N x N kernel matrix.

    theta* = Phi^T (Phi Phi^T)^-1 Y (docs/theory/generalization.md). Nothing of size p x p is
    formed. Costs O(N² p + N³) time and 8 N² bytes beyond the features.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        texts, y: N texts of one shape, a list or one array (N, n, d); and their labels.
        ridge: added to the kernel's diagonal; 0 interpolates.
        memory_budget: bytes for the features in memory; past it they are computed again for every
            product.

    Raises:
        InputError: texts of unequal shape, or not one finite label a text.
        SingularGramError: the kernel matrix is singular, or too close to it for the labels to be
            interpolated.

    >>> from wordsens.maps.function import FunctionFeatures
    >>> texts = torch.eye(3, dtype=torch.float64).view(3, 1, 3)
    >>> fit_min_norm(FunctionFeatures(lambda X: X, batched=True), texts, [1, -1, 1]).theta
    tensor([ 1., -1.,  1.], dtype=torch.float64)
    """
    require_count("memory_budget", memory_budget)
    if not (isinstance(ridge, (int, float)) and 0 <= ridge < float("inf")):
        raise InputError(f"`ridge` (={ridge!r}) must be a finite number, at least 0")
    phi = as_feature_map(phi)
    features = TrainingFeatures(phi, texts, memory_budget=memory_budget)
    labels = as_labels(y, len(features), "y").to(phi.device)
    if ridge == 0 and len(features) > features.size:
        raise SingularGramError(
            f"{len(features)} texts have only {features.size} features, so their labels cannot all "
            "be interpolated; "
            "take fewer texts, a wider map, or a ridge"
        )
    system = KernelSolver(features, float(ridge))
    right = labels.unsqueeze(0)
    solution = system.solve(right)
    residual = system.residual(solution, right) if float(labels.norm()) > 0 else 0.0
    largest, smallest = system.extremes()
    conditioning = Conditioning(largest, smallest, float(ridge), system.jitter, residual)
    if residual > RESIDUAL:
        raise SingularGramError(
            f"the labels are not interpolated (relative residual {residual:.2g}; the kernel's "
            "condition number is "
            f"about {conditioning.condition:.2g}); leave out repeated texts, use float64, or pass "
            "`ridge`"
        )
    return MinNormFit(
        phi=phi,
        features=features,
        labels=labels,
        theta=features.combine(solution)[0],
        conditioning=conditioning,
        ridge=float(ridge),
        _solver=system,
    )


def as_labels(labels: Iterable[Any], count: int, name: str) -> Float[Tensor, " N"]:
    """The labels in float64; InputError unless there are `count` finite ones."""
    listed = [float("nan") if label is None else float(label) for label in labels]
    signs = torch.tensor(listed, dtype=torch.float64)
    if signs.shape != (count,):
        raise InputError(
            f"`{name}` has {tuple(signs.shape)} labels for {count} texts; give one a text"
        )
    if not bool(torch.isfinite(signs).all()):
        missing = int((~torch.isfinite(signs)).nonzero()[0])
        raise InputError(f"`{name}` has a missing or infinite label at {missing}; label every text")
    return signs
