"""The smallest threshold on a score that surely lets at most a share of one sample through, and
what it keeps of another; exact limits of a share."""

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import betaincinv

from wordsens.statistics.auc import LEVEL


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """The smallest threshold under a budget; all but the budget are None where there is none.

    Attributes:
        budget: the share of unwanted ones that may pass.
        threshold: the score at or above which a member passes, in as few decimals as let the same
            members pass.
        hits: the unwanted members of the sample that pass.
        limit: the upper limit of their share, of at most the budget.
        recall, recall_low, recall_high: the share of wanted ones that pass, with its 95 % interval.
    """

    budget: float
    threshold: float | None = None
    hits: int | None = None
    limit: float | None = None
    recall: float | None = None
    recall_low: float | None = None
    recall_high: float | None = None


def operating_point(
    unwanted: Float[np.ndarray, " m"],
    wanted: Float[np.ndarray, " n"],
    budget: float,
    *,
    confidence: float = LEVEL,
) -> OperatingPoint:
    """The smallest score from which upwards every threshold has an upper limit of the share of
    unwanted ones that pass of at most the budget, and that keeps some wanted ones. A score of
    -infinity never passes.

    The limit is Clopper and Pearson's, one-sided. Fewer pass as the threshold rises, so that the
    share in truth is above the budget in at most 1 - confidence of all samples, though the
    threshold is chosen on the same sample (Bates et al. 2021, Distribution-free, risk-controlling
    prediction sets, Theorem 1).

    >>> unwanted, wanted = np.linspace(0, 0.9, 400), np.linspace(0.5, 1, 100)
    >>> point = operating_point(unwanted, wanted, 0.02)
    >>> point.threshold, point.hits, round(point.limit, 4), point.recall
    (0.8939, 3, 0.0193, 0.22)
    """
    count = len(unwanted)
    allowed = (
        bisect_right(range(count), budget, key=lambda hits: share_at_most(hits, count, confidence))
        - 1
    )
    # The largest score that is too low: at it one more than allowed would pass.
    excluded = np.sort(unwanted)[count - 1 - allowed] if allowed >= 0 else math.inf
    if not (wanted > excluded).any():
        return OperatingPoint(budget=budget)
    scores = np.concatenate([unwanted, wanted])
    threshold = shortest_between(float(excluded), float(scores[scores > excluded].min()))
    hits, passing = int((unwanted >= threshold).sum()), int((wanted >= threshold).sum())
    low, high = share_interval(passing, len(wanted))
    return OperatingPoint(
        budget=budget,
        threshold=threshold,
        hits=hits,
        limit=share_at_most(hits, count, confidence),
        recall=passing / len(wanted),
        recall_low=low,
        recall_high=high,
    )


def shortest_between(above: float, most: float) -> float:
    """The number of fewest decimals, two at least, that is above the one and at most the other.

    >>> shortest_between(0.8291, 0.82996), shortest_between(0.5, 0.9)
    (0.8299, 0.9)
    """
    for decimals in range(2, 16):
        number = math.floor(most * 10**decimals) / 10**decimals
        if above < number <= most:
            return number
    return most


def least_count(budget: float, confidence: float = LEVEL) -> int:
    """How many it takes of which none passes for the upper limit of the share to be at most the
    budget.

    >>> least_count(0.01)
    299
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-budget))


def share_at_most(hits: int, trials: int, level: float = LEVEL) -> float:
    """The largest share with which so few hits in so many trials still have the chance 1 - level:
    an upper limit.

    >>> round(share_at_most(0, 66), 4)
    0.0444
    """
    return 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, level))


def share_interval(hits: int, trials: int) -> tuple[float, float]:
    """A 95 % interval of the share of hits (Clopper and Pearson): each end misses with a chance of
    at most 2.5 %.

    >>> [round(end, 3) for end in share_interval(0, 20)]
    [0.0, 0.168]
    """
    level = 0.975
    return 1 - share_at_most(trials - hits, trials, level), share_at_most(hits, trials, level)
