"""Tests of a fall of areas under the curve between two measurements of the same members."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import placements

TOGETHER = "all together"
"""The name of the area of all first samples as one."""

DRAWS = 9999
"""Of the signs: a p-value near .05 is then known to .004 (its 95 % interval)."""

_BLOCK = 4_000_000
"""Signs that are held at once: 32 MB of them."""

Numbers = Float[np.ndarray, " _"]


@dataclass(frozen=True)
class Drop:
    """One area under the curve, before and after.

    Attributes:
        before, after: the areas.
        p: the chance that among all of the areas one falls so far, in units of its standard error, where none has
            changed.
    """

    before: float
    after: float
    p: float


def paired_drops(
    firsts: Mapping[str, tuple[Numbers, Numbers]],
    second: tuple[Numbers, Numbers],
    *,
    seed: Seed,
    draws: int = DRAWS,
) -> dict[str, Drop]:
    """For every sample of `firsts` its `auc` against `second`, before and after, and a joint p-value of the fall.

    Where there are several, also for all of them as one, TOGETHER: a fall of every area shows there first, since the
    mean of many members is known better.

    The members are the same before and after; the numbers may have another scale. Each member's share in the fall is
    the difference of its placement among the other sample: v_i for the m members of a first sample, u_j for the n of
    the second. The fall is -mean(v) = -mean(u), and its variance without a change (DeLong et al. 1988) is
    s^2 = sum(v^2) / m^2 + sum(u^2) / n^2. A draw of the paired wild bootstrap flips the sign of every share at random,
    which before and after being exchangeable allows: T* = -(sum(e_i v_i) / m + sum(f_j u_j) / n) / s. The signs f_j
    are the same for all areas, which share the second sample, and the largest T* of a draw is what each area's own
    T = fall / s is compared with: all of the p-values hold at once. On the floor, where both areas are 0, all shares
    are 0, and p is 1.
    """
    random = np.random.default_rng(derive_seed(seed, "paired drop"))
    shares = {name: _Shares.of(*first, *second) for name, first in firsts.items()}
    moved = [each for each in shares.values() if each.error > 0]
    if len(shares) > 1:
        before, after = (np.concatenate([first[side] for first in firsts.values()]) for side in (0, 1))
        shares[TOGETHER] = _Shares.of(before, after, *second)
    widest = max([len(second[0]), *(len(each.first) for each in moved)])
    largest = np.concatenate(
        [
            _largest(moved, shares.get(TOGETHER), len(second[0]), min(step, draws - at), random)
            for step in [max(1, _BLOCK // widest)]
            for at in range(0, draws, step)
        ]
    )
    return {name: Drop(each.before, each.after, _p(each, largest)) for name, each in shares.items()}


@dataclass(frozen=True)
class _Shares:
    """Every member's part in the change of one area, and the change's standard error."""

    before: float
    after: float
    first: Numbers
    second: Numbers
    error: float

    @classmethod
    def of(
        cls, first_before: Numbers, first_after: Numbers, second_before: Numbers, second_after: Numbers
    ) -> "_Shares":
        before, after = placements(first_before, second_before), placements(first_after, second_after)
        # Of a member of the second sample: the share of the first that lies below it.
        first = (after - before) / len(before)
        second = (placements(second_before, first_before) - placements(second_after, first_after)) / len(second_before)
        error = float(np.sqrt(np.sum(first**2) + np.sum(second**2)))
        return cls(float(before.mean()), float(after.mean()), first, second, error)


def _largest(
    moved: list[_Shares], together: _Shares | None, n: int, draws: int, random: np.random.Generator
) -> Float[np.ndarray, " draws"]:
    common = _signs(draws, n, random)
    largest, total = np.full(draws, -np.inf), np.zeros(draws)
    for each in moved:
        flipped = _signs(draws, len(each.first), random) @ each.first + common @ each.second
        largest = np.maximum(largest, -flipped / each.error)
        total += flipped * len(each.first)
    if together is not None and together.error > 0:
        # The area of all is the mean of the areas, weighed by their members: so are the signs' sums.
        largest = np.maximum(largest, -total / len(together.first) / together.error)
    return largest


def _signs(draws: int, members: int, random: np.random.Generator) -> Float[np.ndarray, "draws members"]:
    return 2.0 * random.integers(0, 2, size=(draws, members), dtype=np.int8) - 1


def _p(each: _Shares, largest: Numbers) -> float:
    if each.error == 0:
        return 1.0
    # Equal sums of the same numbers in another order may differ in their last digits.
    reached = largest >= (each.before - each.after) / each.error - 1e-9
    return float((1 + reached.sum()) / (1 + len(largest)))
