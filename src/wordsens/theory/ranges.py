"""The sizes at which predictions were compared with measurements (docs/theory/predictions.md)."""

import warnings
from collections.abc import Mapping

Range = dict[str, tuple[float | int, float | int]]
"""The least and the largest of each size."""

# From the tables of docs/theory/predictions.md; all of random features are of ReLU.
RF_RANGE: Range = {"n": (20, 250), "d": (96, 768), "k / (n d)": (0.25, 4)}
DRF_RANGE: Range = {"n": (20, 160), "d": (64, 96), "k / (n d)": (1, 1), "depth": (2, 8)}
RAF_RANGE: Range = {"n": (20, 250), "d": (192, 768), "mean cosine": (0, 0.3), "spread of cosines": (0, 9)}
RELU_RANGE: Range = {"n": (20, 250), "d": (192, 768), "mean cosine": (0, 0), "spread of cosines": (1, 1)}


class PredictionWarning(UserWarning):
    """A prediction at sizes at which it was not compared with measurements.

    >>> import warnings
    >>> from wordsens.theory import PredictionWarning, rf_sensitivity
    >>> with warnings.catch_warnings(action="error", category=PredictionWarning):
    ...     rf_sensitivity(20, 16, depth=8)
    Traceback (most recent call last):
    wordsens.theory.ranges.PredictionWarning: the error of this prediction is not known, ...
    """


def outside_of_dense(n: int, d: int, width: int, depth: int, activation: str) -> tuple[str, ...]:
    """The sizes of random features, deep ones where depth is not 1, that lie beyond the measured ones."""
    sizes = {"n": n, "d": d, "k / (n d)": width / (n * d), "depth": depth}
    named = () if activation == "relu" else (f"activation {activation} (measured: relu)",)
    return (*_outside(sizes, RF_RANGE if depth == 1 else DRF_RANGE), *named)


def outside_of_attention(n: int, d: int, score: str, cosine: float, spread: float) -> tuple[str, ...]:
    """The sizes of random attention that lie beyond the measured ones."""
    sizes = {"n": n, "d": d, "mean cosine": cosine, "spread of cosines": spread}
    return _outside(sizes, RELU_RANGE if score == "relu" else RAF_RANGE)


def warn_of(outside: tuple[str, ...]) -> None:
    """A PredictionWarning at the caller's caller, where any size lies outside."""
    if outside:
        sizes = f"outside the sizes at which it was measured: {'; '.join(outside)}"
        warnings.warn(f"the error of this prediction is not known, {sizes}", PredictionWarning, stacklevel=3)


def _outside(sizes: Mapping[str, float | int], measured: Range) -> tuple[str, ...]:
    return tuple(
        f"{name} = {sizes[name]:.3g} (measured: {low:g}{'' if low == high else f' to {high:g}'})"
        for name, (low, high) in measured.items()
        if not low <= sizes[name] <= high
    )
