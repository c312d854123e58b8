"""The conditions of the paper's theorems that a map and a text meet; the sizes at which predictions
were measured."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.scores import Softmax
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.text.matrix import TextMatrix, as_text_matrix

# The least and the largest of each size.
Range = dict[str, tuple[float | int, float | int]]

# From the tables of docs/theory/predictions.md; all of random features are of ReLU.
RF_RANGE: Range = {"n": (20, 250), "d": (96, 768), "k / (n d)": (0.25, 4)}
DRF_RANGE: Range = {"n": (20, 160), "d": (64, 96), "k / (n d)": (1, 1), "depth": (2, 8)}
RAF_RANGE: Range = {
    "n": (20, 250),
    "d": (192, 768),
    "mean cosine": (0, 0.3),
    "spread of cosines": (0, 9),
}
RELU_RANGE: Range = {
    "n": (20, 250),
    "d": (192, 768),
    "d / n": (1, 38.4),
    "mean cosine": (0, 0),
    "spread of cosines": (1, 1),
}

# Rows count as scaled to sqrt(d) when their lengths are within this, relative.
ROW_NORM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem, checked.

    Attributes:
        name: what is required.
        holds: True or False; None where the condition is asymptotic; `detail` then names the
            theorem in the paper.
        detail: the numbers, in a sentence.
    """

    name: str
    holds: bool | None
    detail: str

    def __str__(self) -> str:
        mark = {True: "yes", False: "no", None: "open"}[self.holds]
        return f"[{mark}] {self.name}: {self.detail}"


def check_conditions(phi: FeatureMap, X: TextMatrix | Tensor) -> tuple[Condition, ...]:
    """The conditions of the theorem about this map, checked on this text as far as a text can show
    them.

    The theorems are asymptotic: where a size must be large, the sizes are reported and `holds` is
    None; the paper's theorem says how large. The mean cosine is no condition of any theorem; it is
    reported because correlated words change S (docs/theory/predictions.md). A map that no theorem
    covers gets one condition that says so.

    >>> from wordsens.maps.dense import RandomFeatures
    >>> print(check_conditions(RandomFeatures(4, 9), torch.ones(4, 9))[0])
    [yes] rows of length sqrt(d): lengths 3 to 3, sqrt(d) = 3
    """
    rows = phi.accept(as_text_matrix(X).rows).double()
    n, d = rows.shape
    if isinstance(phi, DeepRandomFeatures):
        particular = _dense_conditions(phi)
    elif isinstance(phi, RandomAttentionFeatures):
        particular = _attention_conditions(phi, n, d)
    else:
        detail = f"none of the paper's theorems is about {phi.name}"
        return (Condition("a theorem covers this map", False, detail),)
    lengths = torch.linalg.vector_norm(rows, dim=1)
    scaled = (
        f"lengths {float(lengths.min()):.4g} to {float(lengths.max()):.4g}, "
        f"sqrt(d) = {math.sqrt(d):.4g}"
    )
    # The sum of all cosines, n of which are a row's with itself.
    total = float((rows / lengths.unsqueeze(1)).sum(dim=0).square().sum())
    cosine = (total - n) / (n * max(1, n - 1))
    detail = f"mean cosine {cosine:.3g}; no theorem requires anything of it"
    return (
        Condition("rows of length sqrt(d)", rows_are_scaled(rows), scaled),
        *particular,
        Condition("correlation of the words", None, detail),
    )


def _dense_conditions(phi: DeepRandomFeatures) -> tuple[Condition, ...]:
    activation, flat = phi.activation, phi.layers[0].columns
    theorem = "Theorem 1" if phi.depth == 1 else "Theorem 2"
    constant = f"{activation.name} has Lipschitz constant {activation.lipschitz:.4g}"
    width = (
        f"k = {phi.width}, k / (n d) = {phi.width / flat:.3g}; for the condition on k see "
        f"{theorem} of the paper"
    )
    depth = f"L = {phi.depth}; for how the constant depends on L see Theorem 2 of the paper"
    conditions = (
        Condition("Lipschitz activation", True, constant),
        Condition("width", None, width),
        Condition("fixed depth", None, depth),
    )
    # Of one layer there is no depth to be fixed.
    return conditions if phi.depth > 1 else conditions[:2]


def _attention_conditions(phi: RandomAttentionFeatures, n: int, d: int) -> tuple[Condition, ...]:
    softmax = Condition(
        "softmax scores",
        type(phi.score) is Softmax,
        f"the scores are {phi.score.name}; Theorem 3 is about softmax",
    )
    detail = (
        f"d = {d}, n = {n}, d / n = {d / n:.3g}, log n = {math.log(n):.3g}; Theorem 3 requires d "
        "to be large compared "
        "with n up to logarithms; for the exact condition see Theorem 3 of the paper"
    )
    return softmax, Condition("d large compared with n", None, detail)


def rows_are_scaled(rows: Float[Tensor, "n d"]) -> bool:
    """True where every row has length sqrt(d), up to ROW_NORM_TOLERANCE."""
    lengths, wanted = torch.linalg.vector_norm(rows, dim=1), math.sqrt(rows.shape[1])
    return bool(((lengths / wanted - 1).abs() <= ROW_NORM_TOLERANCE).all())


class PredictionWarning(UserWarning):
    """A prediction at sizes at which it was not compared with measurements.

    >>> import warnings
    >>> from wordsens.theory import PredictionWarning, rf_sensitivity
    >>> with warnings.catch_warnings(action="error", category=PredictionWarning):
    ...     rf_sensitivity(20, 16, depth=8)
    Traceback (most recent call last):
    wordsens.theory.conditions.PredictionWarning: the error of this prediction is not known, ...
    """


def outside_of_dense(n: int, d: int, width: int, depth: int, activation: str) -> tuple[str, ...]:
    """The sizes of random features, deep ones where depth is not 1, that lie beyond the measured
    ones."""
    sizes = {"n": n, "d": d, "k / (n d)": width / (n * d), "depth": depth}
    named = () if activation == "relu" else (f"activation {activation} (measured: relu)",)
    return _outside(sizes, RF_RANGE if depth == 1 else DRF_RANGE) + named


def outside_of_attention(
    n: int,
    d: int,
    score: str,
    cosine: float,
    spread: float,
) -> tuple[str, ...]:
    """The sizes of random attention that lie beyond the measured ones."""
    sizes = {"n": n, "d": d, "d / n": d / n, "mean cosine": cosine, "spread of cosines": spread}
    return _outside(sizes, RELU_RANGE if score == "relu" else RAF_RANGE)


def warn_of(outside: tuple[str, ...]) -> None:
    """A PredictionWarning at the caller's caller, where any size lies outside."""
    if outside:
        message = (
            "the error of this prediction is not known, outside the sizes at which it was "
            f"measured: {'; '.join(outside)}"
        )
        warnings.warn(message, PredictionWarning, stacklevel=3)


def _outside(sizes: Mapping[str, float | int], measured: Range) -> tuple[str, ...]:
    return tuple(
        f"{name} = {sizes[name]:.3g} (measured: {low:g}{'' if low == high else f' to {high:g}'})"
        for name, (low, high) in measured.items()
        if not low <= sizes[name] <= high
    )
