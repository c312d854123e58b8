"""Means of paired differences by text: an interval for each, and one test of all of them together."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.mean import LEAST, mean_interval
from wordsens.statistics.paired_drop import DRAWS

_BLOCK = 4_000_000
"""Sums that are held at once: 32 MB of them."""

Bounds = tuple[float, float]


@dataclass(frozen=True)
class PairedMean:
    """The mean of one row of differences.

    Attributes:
        value: the mean over the texts that have one.
        low, high: its 95 % interval over texts; None with fewer than LEAST texts.
        p: the joint chance, over all rows, of a mean so far outside its margin where none is outside.
    """

    value: float
    low: float | None
    high: float | None
    p: float


def paired_means(
    differences: Float[np.ndarray, "rows texts"],
    margins: Float[np.ndarray, " rows"],
    bounds: list[Bounds | None],
    *,
    seed: Seed,
    draws: int = DRAWS,
) -> list[PairedMean]:
    """The mean of every row, NaN standing for a text without a difference, with a joint test of |mean| <= margin.

    The interval is Student's over texts. Where differences are rare events or come in steps, `bounds` are the least and
    the greatest that one more text may have: the lower limit is that with such a text at the least, the upper with one
    at the greatest. A row of equal numbers would otherwise have no width.

    The test: let m be the number in [-margin, margin] that is nearest to the row's mean, and u_t = d_t - m. The row's
    statistic is T = |sum_t u_t| / sqrt(sum_t u_t^2). A draw flips the signs of whole texts, the same for all rows, and
    the largest |sum_t e_t u_t| / sqrt(sum_t u_t^2) of the draw is what each T is compared with. For two models that
    can be exchanged, differences are symmetric around 0, and the chance that any p is under .05 is at most .05,
    however the rows depend on each other (Westfall and Young 1993).

    >>> found = paired_means(np.array([[1.0] * 20, [1.0, -1.0] * 10]), np.array([0.1, 0.1]), [None, None], seed=0)
    >>> [(one.value, one.p < 0.01) for one in found]
    [(1.0, True), (0.0, False)]
    """
    present = ~np.isnan(differences)
    counts = present.sum(axis=1)
    means = np.where(present, differences, 0.0).sum(axis=1) / np.maximum(counts, 1)
    beyond = means - np.clip(means, -margins, margins)
    left = np.where(present, differences - (means - beyond)[:, None], 0.0)
    p = _joint_p(left, np.abs(beyond) * counts, seed=seed, draws=draws)
    return [
        PairedMean(float(mean), *_limits(row[here], bound), float(chance))
        for row, here, mean, bound, chance in zip(differences, present, means, bounds, p, strict=True)
    ]


def _limits(values: Float[np.ndarray, " m"], bounds: Bounds | None) -> tuple[float | None, float | None]:
    if len(values) < LEAST:
        return None, None
    least, greatest = ([], []) if bounds is None else ([bounds[0]], [bounds[1]])
    return mean_interval([*values, *least]).low, mean_interval([*values, *greatest]).high


def _joint_p(
    left: Float[np.ndarray, "rows texts"], sums: Float[np.ndarray, " rows"], *, seed: Seed, draws: int
) -> Float[np.ndarray, " rows"]:
    size = np.sqrt((left**2).sum(axis=1))
    moved: Bool[np.ndarray, " rows"] = size > 0
    if not moved.any():
        return np.ones(len(left))
    scaled = (left[moved] / size[moved, None]).T
    random = np.random.default_rng(derive_seed(seed, "paired means"))
    step = max(1, _BLOCK // max(scaled.shape))
    largest = np.concatenate(
        [
            np.abs(_signs(min(step, draws - at), len(scaled), random) @ scaled).max(axis=1)
            for at in range(0, draws, step)
        ]
    )
    result = np.ones(len(left))
    # Equal sums of the same numbers in another order may differ in their last digits.
    reached = largest[:, None] >= sums[moved] / size[moved] - 1e-9
    result[moved] = (1 + reached.sum(axis=0)) / (1 + draws)
    return result


def _signs(draws: int, texts: int, random: np.random.Generator) -> Float[np.ndarray, "draws texts"]:
    return 2.0 * random.integers(0, 2, size=(draws, texts), dtype=np.int8) - 1
