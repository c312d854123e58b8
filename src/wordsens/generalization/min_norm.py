"""Min-norm interpolation of labelled texts from their kernel matrix, and how one more text changes
it.

docs/theory/generalization.md has the formulas.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
    shown,
)
from wordsens.generalization.features import TRAINING_BYTES, Texts, TrainingFeatures
from wordsens.maps.arguments import as_feature_map
from wordsens.maps.base import FeatureMap
from wordsens.text.matrix import TextMatrix

# phi(X) of one text, flat; the kernel matrix of the training texts, or its factor.
Features = Float[Tensor, " p"]
Kernel = Float[Tensor, "N N"]

TRAININGS = ("fine-tuned", "retrained")

# Features whose part outside the training span is at most this many units of their precision count
# as inside it.
_IN_SPAN = 1000.0

# The largest relative residual ‖K a - Y‖ / ‖Y‖ that still counts as interpolation.
RESIDUAL = 1e-6

_POWER_STEPS = 60


class SingularGramError(WordsensError, ArithmeticError):
    """The kernel matrix is singular beyond repair: its equations cannot be solved in float64."""


class ConditioningWarning(UserWarning):
    """The kernel matrix was singular to rounding; it was solved with a jitter, which the warning
    states."""


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
        ridge: the number added to K's diagonal.
        factor: the Cholesky factor of K = Phi Phi^T + ridge I.
        jitter: what was added to the diagonal of K to repair a singular matrix; 0 unless a
            ConditioningWarning was given.
        missed: the relative residual ‖K a - Y‖ / ‖Y‖ of the solution a.
        smallest: an estimate of the smallest eigenvalue of K, jitter included, by power iteration.
            It is an upper bound of the smallest eigenvalue.
        condition: the largest estimated eigenvalue over the smallest, a lower bound of the
            condition number of K. It is usually close.
    """

    phi: FeatureMap
    features: TrainingFeatures
    labels: Float[Tensor, " N"]
    theta: Features
    ridge: float
    factor: Kernel
    jitter: float
    missed: float
    smallest: float
    condition: float

    def __repr__(self) -> str:
        n, d = self.features.text_shape
        kind = f"ridge {self.ridge:.3g}" if self.ridge else "interpolates"
        return (
            f"MinNormFit({self.phi.name}: {len(self.features)} texts ({n}, {d}), "
            f"{self.features.size} features; {kind}, relative residual {self.missed:.1g}; "
            f"smallest kernel eigenvalue {self.smallest:.3g}, condition {self.condition:.3g})"
        )

    @torch.no_grad()
    def map(self, text: TextMatrix | Tensor) -> Features:
        """flat(phi(X)) in float64."""
        return self.phi(text).flatten().double()

    def predict(self, texts: Texts) -> Float[Tensor, " m"]:
        """phi(X).theta* for every text."""
        features = TrainingFeatures(self.phi, texts, memory_budget=1)
        return features.inner_products(self.theta.unsqueeze(0))[0]

    def accuracy(
        self,
        texts: Texts,
        labels: Iterable[Any],
    ) -> float:
        """The share of texts whose output has the sign of its label; an output of 0 counts as
        wrong."""
        outputs = self.predict(texts)
        signs = as_labels(labels, len(outputs), "labels").to(outputs.device)
        return float((outputs * signs > 0).double().mean())

    def residual(self, features: Features) -> Features:
        """v - Phi^T (K + ridge I)^-1 Phi v: with ridge 0, the projection (I - Phi^+ Phi) v.

        The projector is never formed. Costs two passes over Phi; four where most of v lies in the
        span of its rows.
        """
        rest = self._projected(features)
        # Where most was taken away the rounding of it is left in: once more takes it out.
        if self.ridge == 0 and bool(rest.square().sum() < 0.25 * features.square().sum()):
            return self._projected(rest)
        return rest

    @torch.inference_mode(False)
    def direction(
        self,
        features: Features,
        training: str,
    ) -> Features:
        """The direction in which learning (X, y), phi(X) = features, moves the parameters: to
        theta* + direction (y - phi(X).theta*).

        "fine-tuned": phi(X) / ‖phi(X)‖², one exact gradient step (Theorem 4). "retrained": P phi /
        (phi(X).P phi + ridge) with the `residual` P phi, the min-norm fit of the N + 1 texts
        (Theorem 5). phi(X).direction is 1, or less with a ridge.

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
            return features / whole
        rest = self.residual(features)
        squared = float(features @ rest) if self.ridge else float(rest.square().sum())
        if self.ridge == 0 and squared <= (_IN_SPAN * torch.finfo(self.phi.dtype).eps) ** 2 * whole:
            raise SingularGramError(
                "phi(X) lies in the span of the training features, so the text cannot be retrained "
                "on; use a text that is not among the training texts, a wider map, or a ridge"
            )
        return rest / (squared + self.ridge)

    def _projected(self, features: Features) -> Features:
        products = self.features.inner_products(features.unsqueeze(0))
        return features - self.features.combine(torch.cholesky_solve(products.T, self.factor).T)[0]


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
    formed. Costs O(N² p + N³) time and 16 N² bytes beyond the features.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        texts, y: N texts of one shape, a list or one array (N, n, d); and their labels.
        ridge: added to the kernel's diagonal; 0 interpolates.
        memory_budget: bytes of memory for the features. If they need more, they are recomputed for
            every product.

    Raises:
        InputError: texts of unequal shape, or not one finite label per text.
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
            "be interpolated; take fewer texts, a wider map, or a ridge"
        )
    kernel = features.gram()
    kernel.diagonal().add_(ridge)
    factor, jitter = _factor(kernel)
    solution = torch.cholesky_solve(labels.unsqueeze(1), factor).T
    missed, size = (solution @ kernel - labels).norm(), labels.norm()
    fit = MinNormFit(
        phi,
        features,
        labels,
        features.combine(solution)[0],
        float(ridge),
        factor,
        jitter,
        float(missed / size) if size > 0 else 0.0,
        *_conditioning(kernel, factor),
    )
    if fit.missed > RESIDUAL:
        raise SingularGramError(
            f"the labels are not interpolated (relative residual {fit.missed:.2g}; the kernel's "
            f"condition number is about {fit.condition:.2g}); leave out repeated texts, use "
            "float64, or pass `ridge`"
        )
    return fit


def _factor(kernel: Kernel) -> tuple[Kernel, float]:
    """L of K = L L^T, and the jitter of a K that is singular to rounding: N eps times its mean
    diagonal, with a ConditioningWarning."""
    factor, failed = torch.linalg.cholesky_ex(kernel)
    if int(failed) == 0:
        return factor, 0.0
    texts = len(kernel)
    jitter = texts * torch.finfo(torch.float64).eps * float(kernel.diagonal().mean())
    factor, failed = torch.linalg.cholesky_ex(kernel + jitter * torch.eye(texts).to(kernel))
    if int(failed) != 0:
        raise SingularGramError(
            "the kernel matrix Phi Phi^T cannot be inverted (its factorisation fails at row "
            f"{int(failed)} of {texts}); leave out repeated texts, take fewer texts than features, "
            "use float64, or pass `ridge`"
        )
    warnings.warn(
        f"the kernel matrix of {texts} texts is singular to rounding; {jitter:.3g} was added to "
        "its diagonal; leave out repeated texts, or pass `ridge`",
        ConditioningWarning,
        stacklevel=3,
    )
    return factor, jitter


def _conditioning(
    kernel: Kernel,
    factor: Kernel,
) -> tuple[float, float]:
    """Estimates of the smallest eigenvalue and of the condition number: power iteration with K^-1
    on the factor, and with K."""
    stream = torch.Generator().manual_seed(0)
    start = torch.randn(len(kernel), 1, generator=stream, dtype=torch.float64)
    large = small = start.to(kernel.device)
    for _ in range(_POWER_STEPS):
        large = kernel @ (large / large.norm())
        small = torch.cholesky_solve(small / small.norm(), factor)
    return float(1 / small.norm()), float(large.norm() * small.norm())


def as_labels(
    labels: Iterable[Any],
    count: int,
    name: str,
) -> Float[Tensor, " N"]:
    """The labels in float64; InputError unless there are `count` finite ones."""
    listed = [float("nan") if label is None else float(label) for label in labels]
    signs = torch.tensor(listed, dtype=torch.float64)
    missing = (~torch.isfinite(signs)).nonzero().flatten().tolist()
    if len(signs) != count:
        raise InputError(
            f"`{name}` has {len(signs)} labels for {count} texts; give one label per text"
        )
    if missing:
        raise InputError(
            f"`{name}` is missing or infinite at {shown(missing)}; give one finite label per text"
        )
    return signs
