"""The prediction that belongs to a map and a text."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_count
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.scores import Softmax
from wordsens.maps.contract import FeatureMap
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.text.matrix import TextMatrix, as_text_matrix
from wordsens.theory.attention import raf_sensitivity
from wordsens.theory.conditions import mean_cosine, rows_are_scaled
from wordsens.theory.finite_width import rf_sensitivity

TYPICAL = "a typical word"

Range = dict[str, tuple[float | int, float | int]]
"""The least and the largest of each size at which a prediction was compared with measurements."""

# From the tables of docs/theory/predictions.md and docs/benchmarks.md; all of random features are of ReLU.
RF_RANGE: Range = {"n": (20, 250), "d": (96, 768), "k / (n d)": (0.25, 4)}
DRF_RANGE: Range = {"n": (20, 160), "d": (64, 96), "k / (n d)": (1, 1), "depth": (2, 8)}
RAF_RANGE: Range = {"n": (20, 250), "d": (192, 768), "mean cosine": (0, 0.3)}


@dataclass(frozen=True)
class Prediction:
    """A predicted S: neither attained nor certified.

    Attributes:
        value: of S.
        of: what it predicts: "the largest of 16 words", or "a typical word".
        source: where it comes from, a few words.
        outside: the sizes that lie beyond those at which it was compared with measurements, each with the range.
    """

    value: float
    of: str
    source: str
    outside: tuple[str, ...] = ()

    @property
    def in_range(self) -> bool:
        """Whether it was compared with measurements at sizes like these."""
        return not self.outside


def predict(phi: FeatureMap, X: TextMatrix | Tensor, *, words: int | None = None) -> Prediction | None:
    """The prediction of S for this map and text, from their sizes and, for attention, the mean cosine of the rows.

    Random features, deep ones: `rf_sensitivity`. Softmax attention with one head and temperature 1:
    `raf_sensitivity`. None for other maps, and for rows that are not of length sqrt(d), which no formula here is about.
    The radius is sqrt(d). What each prediction is worth: docs/theory/predictions.md.

    Args:
        words: over how many words S is the largest; None for all of the text's.

    >>> import torch
    >>> from wordsens.maps.dense.features import RandomFeatures
    >>> predict(RandomFeatures(4, 9), torch.ones(4, 9)).of
    'the largest of 4 words'
    """
    rows = phi.accept(as_text_matrix(X).rows).double()
    n, d = rows.shape
    count = n if words is None else require_count("words", words)
    if not rows_are_scaled(rows):
        return None
    if isinstance(phi, DeepRandomFeatures):
        value = rf_sensitivity(n, d, phi.width, phi.depth, activation=phi.activation.name, words=count)
        sizes = {"n": n, "d": d, "k / (n d)": phi.width / (n * d), "depth": phi.depth}
        outside = _outside(sizes, RF_RANGE if phi.depth == 1 else DRF_RANGE)
        if phi.activation.name != "relu":
            outside += (f"activation {phi.activation.name} (measured: relu)",)
        return Prediction(value, f"the largest of {count} words" if count > 1 else TYPICAL, "finite width", outside)
    if isinstance(phi, RandomAttentionFeatures) and (type(phi.score), phi.heads, phi.temperature) == (Softmax, 1, 1):
        cosine = _shared_cosine(rows)
        outside = _outside({"n": n, "d": d, "mean cosine": cosine}, RAF_RANGE)
        return Prediction(raf_sensitivity(n, d, mean_cosine=cosine), TYPICAL, "mean field, semi-empirical", outside)
    return None


def _outside(sizes: dict[str, float | int], measured: Range) -> tuple[str, ...]:
    return tuple(
        f"{name} = {sizes[name]:.3g} (measured: {low:g} to {high:g})"
        for name, (low, high) in measured.items()
        if not low <= sizes[name] <= high
    )


def _shared_cosine(rows: Float[Tensor, "n d"]) -> float:
    """The mean cosine, as a share that rows can have in common: at least 0, less than 1; 0 where it is mere noise."""
    n, d = rows.shape
    cosine = mean_cosine(rows)
    # Of iid Gaussian rows the mean cosine scatters by sqrt(2 / (n (n - 1) d)).
    noise = 3 * (2 / (n * (n - 1) * d)) ** 0.5
    return 0.0 if cosine < noise else min(cosine, 1 - 1e-3)
