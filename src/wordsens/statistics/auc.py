"""The chance that a number of one sample lies below a number of another, with a bootstrap
interval."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wordsens.seeds import Seed, derive_seed

DRAWS = 2000
"""Bootstrap draws; a 2.5 % limit of 2000 draws stands between the 36th and the 64th of them in 95 %
of seeds."""
LEVEL = 0.95
"""Of every interval here."""

PSEUDO = 0.5
"""Of the member that keeps an interval open on the floor."""

_BLOCK = 4_000_000
"""Numbers that are held at once: 32 MB of them."""

Sample = Float[np.ndarray, " m"]


@dataclass(frozen=True)
class IntervalEstimate:
    """A number with the limits of its 95 % interval."""

    value: float
    low: float
    high: float


def placements(first: Sample, second: Float[np.ndarray, " n"]) -> Sample:
    """For every number of `first` the share of `second` that lies above it, ties half.

    >>> placements(np.array([0.0, 2.0]), np.array([1.0, 2.0]))
    array([1.  , 0.25])
    """
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, "left") + np.searchsorted(ordered, first, "right")
    return 1 - below / (2 * len(second))


def auc(first: Sample, second: Float[np.ndarray, " n"]) -> float:
    """The area under the curve: P(x < y) + P(x = y) / 2 for x of `first` and y of `second`.

    >>> auc(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    0.875
    """
    return float(placements(first, second).mean())


def auc_interval(
    first: Sample, second: Float[np.ndarray, " n"], *, seed: Seed, draws: int = DRAWS
) -> IntervalEstimate:
    """`auc` with a 95 % interval: a Bayesian bootstrap over the members of both samples (Rubin
    1981).

    Every draw weighs the members at random, by a Dirichlet law of parameter 1. That alone would
    give samples on the floor, auc = 0, the interval [0, 0]. So each sample has one more member, of
    parameter PSEUDO: for the upper limit one below all numbers in `first` and one above all in
    `second`, for the lower limit the other way round. The interval always holds the value itself.
    """
    value = auc(first, second)
    random = np.random.default_rng(derive_seed(seed, "auc"))
    lows, highs = [], []
    for count in in_blocks(draws, len(first) + len(second)):
        weights = _weights(len(first), count, random), _weights(len(second), count, random)
        lows.append(_weighted_auc(np.append(first, np.inf), np.append(second, -np.inf), *weights))
        highs.append(_weighted_auc(np.append(first, -np.inf), np.append(second, np.inf), *weights))
    low = np.quantile(np.concatenate(lows), (1 - LEVEL) / 2)
    high = np.quantile(np.concatenate(highs), (1 + LEVEL) / 2)
    return IntervalEstimate(
        value, min(max(0.0, float(low)), value), max(min(1.0, float(high)), value)
    )


def in_blocks(draws: int, width: int) -> list[int]:
    """The draws in parts whose numbers, `width` a draw, fit the memory."""
    step = max(1, _BLOCK // width)
    return [min(step, draws - start) for start in range(0, draws, step)]


def _weights(
    members: int, draws: int, random: np.random.Generator
) -> Float[np.ndarray, "draws more"]:
    """Dirichlet weights of the members and of one more."""
    shape = np.ones(members + 1)
    shape[-1] = PSEUDO
    weights = random.standard_gamma(shape, size=(draws, members + 1))
    return weights / weights.sum(axis=1, keepdims=True)


def _weighted_auc(
    first: Sample,
    second: Float[np.ndarray, " n"],
    first_weights: Float[np.ndarray, "draws m"],
    second_weights: Float[np.ndarray, "draws n"],
) -> Float[np.ndarray, " draws"]:
    order = np.argsort(second)
    below = np.concatenate(
        [np.zeros((len(second_weights), 1)), np.cumsum(second_weights[:, order], axis=1)], axis=1
    )
    left, right = (np.searchsorted(second[order], first, side) for side in ("left", "right"))
    return 1 - (first_weights * (below[:, left] + below[:, right])).sum(axis=1) / 2
