"""The threshold on a score that lets at most a given share of one sample through, and how much of another it keeps."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import betaincinv

from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import DRAWS, LEVEL, in_blocks


@dataclass(frozen=True)
class OperatingPoint:
    """The smallest threshold under a budget, and what it keeps; None where it keeps nothing.

    Attributes:
        threshold: the smallest of all numbers that at most the budget of the unwanted sample reaches.
        recall: the share of the wanted sample at or above it.
        threshold_low, threshold_high, recall_low, recall_high: 95 % intervals of a bootstrap over the members of both
            samples; a limit of the threshold is None where nothing is kept.
        unwanted_high: the share of unwanted ones that may pass the threshold in truth: an exact upper limit of 95 %
            (Clopper and Pearson 1934), given how many of the sample do.
    """

    threshold: float | None
    recall: float | None
    threshold_low: float | None
    threshold_high: float | None
    recall_low: float
    recall_high: float
    unwanted_high: float


def operating_point(
    unwanted: Float[np.ndarray, " m"],
    wanted: Float[np.ndarray, " n"],
    budget: int | float,
    *,
    seed: Seed,
    draws: int = DRAWS,
) -> OperatingPoint:
    """The operating point of two samples of scores, high ones of which pass.

    >>> point = operating_point(np.array([0.1, 0.5]), np.array([0.4, 0.6, 0.7]), 0.01, seed=0)
    >>> point.threshold, round(point.recall, 3)
    (0.6, 0.667)
    """
    allowed = math.floor(budget * len(unwanted) + 1e-9)
    threshold, recall = (float(numbers[0]) for numbers in _points(unwanted[None], wanted[None], allowed))
    random = np.random.default_rng(derive_seed(seed, "operating point"))
    parts = []
    for count in in_blocks(draws, len(unwanted) + len(wanted)):
        unwanted_draw, wanted_draw = (random.choice(sample, size=(count, len(sample))) for sample in (unwanted, wanted))
        parts.append(_points(unwanted_draw, wanted_draw, allowed))
    thresholds, recalls = (np.concatenate(part) for part in zip(*parts, strict=True))
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    # Order statistics: between a number and infinity there is nothing to interpolate.
    low, high = np.quantile(thresholds, ends, method="nearest")
    recall_low, recall_high = np.quantile(recalls, ends)
    return OperatingPoint(
        _finite(threshold), recall or None, _finite(low), _finite(high), float(recall_low), float(recall_high),
        share_at_most(int((unwanted >= threshold).sum()), len(unwanted)),
    )  # fmt: skip


def share_at_most(hits: int, trials: int, level: float = LEVEL) -> float:
    """The largest share with which so few hits in so many trials still have the chance 1 - level: an upper limit.

    >>> round(share_at_most(0, 66), 4)
    0.0444
    """
    return 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, level))


def _points(
    unwanted: Float[np.ndarray, "draws m"], wanted: Float[np.ndarray, "draws n"], allowed: int
) -> tuple[Float[np.ndarray, " draws"], Float[np.ndarray, " draws"]]:
    """Threshold and recall of every row of samples; infinity and 0 where nothing is kept."""
    if allowed >= unwanted.shape[1]:
        excluded = np.full(len(unwanted), -np.inf)
    else:
        place = unwanted.shape[1] - 1 - allowed
        excluded = np.partition(unwanted, place, axis=1)[:, place]
    recall = (wanted > excluded[:, None]).mean(axis=1)
    both = np.concatenate([unwanted, wanted], axis=1)
    threshold = np.where(both > excluded[:, None], both, np.inf).min(axis=1)
    return np.where(recall > 0, threshold, np.inf), recall


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def share_interval(hits: int, trials: int) -> tuple[float, float]:
    """A 95 % interval of the share of hits (Clopper and Pearson): each end misses with a chance of at most 2.5 %.

    >>> [round(end, 3) for end in share_interval(0, 20)]
    [0.0, 0.168]
    """
    level = 0.975
    return 1 - share_at_most(trials - hits, trials, level), share_at_most(hits, trials, level)
