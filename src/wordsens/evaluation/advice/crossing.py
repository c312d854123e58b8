"""The length at which a measured decay falls under a threshold, with an interval that assumes no law."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wordsens.statistics.median import least_values, median_intervals

STEEP = 0.5
"""The least share that is left from one length to the next: below it the decay counts as a step, and nothing is read
off between the two. An exponential that has fallen by e³ keeps .58 at the finest spacing, 1.2."""


@dataclass(frozen=True)
class Crossing:
    """The length at which the median falls under the threshold.

    Attributes:
        length: None where `reason` says why there is none.
        low, high: its 95 % interval: at every length in it the median's own interval holds the threshold. None: it
            reaches below the shortest, or beyond the longest, length that was measured.
        reason: why there is no length.
    """

    length: float | None
    low: float | None
    high: float | None
    reason: str | None = None


def crossing(
    lengths: Sequence[int], distances: Float[np.ndarray, "changes lengths"], threshold: float, unit: str = "tokens"
) -> Crossing:
    """The first length at which the median over changes is under the threshold.

    The ends are those of the sign test's interval, turned round: coverage 95 % at least for independent changes whose
    median falls with the length, whatever the law and the noise. Between two measured lengths a straight line in
    log distance and log length.

    >>> made = np.linspace(0.8, 1.2, 6)[:, None] / np.array([[10, 20, 40, 80]])
    >>> found = crossing([10, 20, 40, 80], made, 0.03)
    >>> round(found.length, 1), round(found.low, 1), round(found.high, 1)
    (33.3, 26.7, 40.0)
    """
    if len(distances) < least_values():
        few = f"{len(distances)} changed sentences are too few for an interval; it takes {least_values()}"
        return Crossing(None, None, None, few)
    middle, below, above = median_intervals(distances)
    low, high = _first_fall(lengths, below, threshold, end="low"), _last_fall(lengths, above, threshold)
    if middle[0] < threshold:
        reason = f"the change moves the embedding by less already at {lengths[0]:.0f} {unit}"
        return Crossing(None, None, high, reason)
    length = _first_fall(lengths, middle, threshold)
    if length is None:
        return Crossing(None, low, None, f"no fall below was measured up to {lengths[-1]:.0f} {unit}")
    return Crossing(length, low, high)


def open_gaps(
    lengths: Sequence[int], distances: Float[np.ndarray, "changes lengths"], threshold: float
) -> list[tuple[int, int]]:
    """The neighbouring lengths between which the median, or an end of its interval, falls under the threshold."""
    gaps = []
    for curve in median_intervals(distances):
        under = curve < threshold
        gaps += [(lengths[at], lengths[at + 1]) for at in range(len(lengths) - 1) if under[at] != under[at + 1]]
    return sorted(set(gaps))


def _first_fall(
    lengths: Sequence[int], curve: Float[np.ndarray, " k"], threshold: float, *, end: str = "length"
) -> float | None:
    """The length at which the curve is first under the threshold; None where it begins so, or never is.

    Of a low end that is never under it, the longest length.
    """
    under = np.flatnonzero(curve < threshold)
    if len(under) == 0:
        return float(lengths[-1]) if end == "low" else None
    return None if under[0] == 0 else _between(lengths, curve, int(under[0]), threshold)


def _last_fall(lengths: Sequence[int], curve: Float[np.ndarray, " k"], threshold: float) -> float | None:
    """The length from which the curve stays under the threshold; None where it does not in the end."""
    over = np.flatnonzero(curve >= threshold)
    if len(over) == 0:
        return float(lengths[0])
    at = int(over[-1]) + 1
    return None if at == len(lengths) else _between(lengths, curve, at, threshold, later=True)


def _between(
    lengths: Sequence[int], curve: Float[np.ndarray, " k"], at: int, threshold: float, *, later: bool = False
) -> float:
    """The length between those at - 1 and at at which the curve, a power law there, crosses the threshold.

    At a step it is one of the two: the shorter, or with `later` the longer.
    """
    before, after = float(curve[at - 1]), float(curve[at])
    if after < STEEP * before:
        return float(lengths[at] if later else lengths[at - 1])
    share = math.log(before / threshold) / math.log(before / after)
    return lengths[at - 1] * (lengths[at] / lengths[at - 1]) ** share
