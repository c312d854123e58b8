"""Changes between two measurements of the same members, or texts, and one test of all of them
together.

Signs are flipped at random, which an exchange of the two measurements allows; the largest statistic
of a draw is what each statistic is compared with, so that all of the p-values hold at once
(Westfall and Young 1993).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import IntervalEstimate, auc_interval, in_blocks, placements
from wordsens.statistics.mean import LEAST, Mean, bounded_interval, mean_interval

TOGETHER = "all together"
"""The name of the area of all first samples as one."""

DRAWS = 9999
"""Of the signs: a p-value near .05 is then known to .004 (its 95 % interval)."""

Numbers = Float[np.ndarray, " _"]
Sides = tuple[Numbers, Numbers]
"""Before and after."""
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Drop:
    """One area under the curve, before and after; and the chance `p` that among all of the areas
    one falls so far, in units of its standard error, where none has changed."""

    before: float
    after: float
    p: float


def paired_drops(
    firsts: Mapping[str, Sides], second: Sides, *, seed: Seed, draws: int = DRAWS
) -> dict[str, Drop]:
    """For every sample of `firsts` its `auc` against `second`, before and after, and a joint
    p-value of the fall.

    Where there are several, also for all of them as one, TOGETHER: a fall of every area shows there
    first, since the mean of many members is known better.

    The members are the same before and after; the numbers may have another scale. Each member's
    share in the fall is the difference of its placement among the other sample: v_i for the m
    members of a first sample, u_j for the n of the second. The fall is -mean(v) = -mean(u), and its
    variance without a change (DeLong et al. 1988) is s^2 = sum(v^2) / m^2 + sum(u^2) / n^2. A draw
    of the paired wild bootstrap flips the sign of every share at random, which before and after
    being exchangeable allows: T* = -(sum(e_i v_i) / m + sum(f_j u_j) / n) / s. The signs f_j are
    the same for all areas, which share the second sample, and the largest T* of a draw is what each
    area's own T = fall / s is compared with: all of the p-values hold at once. On the floor, where
    both areas are 0, all shares are 0, and p is 1.
    """
    random = np.random.default_rng(derive_seed(seed, "paired drop"))
    shares = {name: _Shares.of(*first, *second) for name, first in firsts.items()}
    moved = [each for each in shares.values() if each.error > 0]
    if len(shares) > 1:
        shares[TOGETHER] = _Shares.of(*_joined(firsts), *second)
    widest = max([len(second[0]), *(len(each.first) for each in moved)])
    together = shares.get(TOGETHER)
    largest = np.concatenate(
        [
            _largest(moved, together, len(second[0]), count, random)
            for count in in_blocks(draws, widest)
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
        cls,
        first_before: Numbers,
        first_after: Numbers,
        second_before: Numbers,
        second_after: Numbers,
    ) -> "_Shares":
        before, after = (
            placements(first_before, second_before),
            placements(first_after, second_after),
        )
        # Of a member of the second sample: the share of the first that lies below it.
        first = (after - before) / len(before)
        second = (
            placements(second_before, first_before) - placements(second_after, first_after)
        ) / len(second_before)
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
        # The area of all is the mean of the areas, weighed by their members: so are the signs'
        # sums.
        largest = np.maximum(largest, -total / len(together.first) / together.error)
    return largest


def _p(each: _Shares, largest: Numbers) -> float:
    if each.error == 0:
        return 1.0
    # Equal sums of the same numbers in another order may differ in their last digits.
    reached = largest >= (each.before - each.after) / each.error - 1e-9
    return float((1 + reached.sum()) / (1 + len(largest)))


@dataclass(frozen=True)
class PairedArea:
    """One area under the curve, before and after; the change with its 95 % interval; and the joint
    chance of a change so large, in either direction, where none of the areas has changed."""

    before: float
    after: float
    change: IntervalEstimate
    p: float


def paired_areas(
    firsts: Mapping[str, Sides], second: Sides, *, seed: Seed
) -> dict[str, PairedArea]:
    """For every sample of `firsts` its `auc` against `second`, before and after, with the change
    and all together.

    p is twice the smaller of the p-values of `paired_drops` in the two directions. The interval of
    one change is `bounded_interval` in [-1, 1] with the variance of DeLong et al. (1988), var(v) /
    m + var(u) / n, v_i and u_j being the members' shares in the change. Where all areas stay at 0
    or 1 the shares have no variance, and the limits are those of a difference of two independent
    areas (Newcombe 1998), which lie in [-1, 1] too.
    """
    falls = paired_drops(firsts, second, seed=seed)
    turned = {name: (after, before) for name, (before, after) in firsts.items()}
    rises = paired_drops(turned, (second[1], second[0]), seed=seed)
    areas = {}
    for name, fall in falls.items():
        before, after = firsts[name] if name in firsts else _joined(firsts)
        change = _change((before, after), second, seed=seed)
        areas[name] = PairedArea(
            fall.before, fall.after, change, min(1.0, 2 * min(fall.p, rises[name].p))
        )
    return areas


def _joined(firsts: Mapping[str, Sides]) -> Sides:
    before, after = (np.concatenate([sides[side] for sides in firsts.values()]) for side in (0, 1))
    return before, after


def _change(first: Sides, second: Sides, *, seed: Seed) -> IntervalEstimate:
    shares = placements(first[1], second[1]) - placements(first[0], second[0])
    others = placements(second[0], first[0]) - placements(second[1], first[1])
    value = float(shares.mean())
    if all(np.array_equal(*sides) for sides in (first, second)):
        return IntervalEstimate(value, value, value)
    variance = sum(
        float(part.var(ddof=1)) / len(part) for part in (shares, others) if len(part) > 1
    )
    if variance == 0:
        before, after = (auc_interval(first[side], second[side], seed=seed) for side in (0, 1))
        down = math.hypot(after.value - after.low, before.high - before.value)
        up = math.hypot(after.high - after.value, before.value - before.low)
        return IntervalEstimate(value, value - down, value + up)
    members = max(2, min(len(shares), len(others)))
    return IntervalEstimate(
        value, *bounded_interval(value, math.sqrt(variance), members, (-1.0, 1.0))
    )


@dataclass(frozen=True)
class PairedMean(Mean):
    """The mean of one row of differences over the texts that have one, with its interval over
    texts.

    `p` is the joint chance, over all rows, of a mean so far outside its margin where none is
    outside.
    """

    p: float


def paired_means(
    differences: Float[np.ndarray, "rows texts"],
    margins: Float[np.ndarray, " rows"],
    bounds: list[Bounds | None],
    steps: Float[np.ndarray, " rows"] | None = None,
    *,
    seed: Seed,
    draws: int = DRAWS,
) -> list[PairedMean]:
    """The mean of every row, NaN standing for a text without a difference, with a joint test of
    |mean| <= margin.

    The interval is Student's over texts; of differences that have `bounds`, as those of shares and
    ranks, it is `bounded_interval`, which never leaves them. Where they come in steps and are
    mostly 0, the lower limit is that with one more text a step below 0, the upper with one a step
    above; a row of zeros would otherwise tell no error.

    The test: let m be the number in [-margin, margin] that is nearest to the row's mean, and u_t =
    d_t - m. The row's statistic is T = |sum_t u_t| / sqrt(sum_t u_t^2). A draw flips the signs of
    whole texts, the same for all rows, and the largest |sum_t e_t u_t| / sqrt(sum_t u_t^2) of the
    draw is what each T is compared with. For two models that can be exchanged, differences are
    symmetric around 0, and the chance that any p is under .05 is at most .05, however the rows
    depend on each other (Westfall and Young 1993).

    >>> rows = paired_means(np.array([[1.0] * 20, [1.0, -1.0] * 10]), np.array([0.1, 0.1]), [None, None], seed=0)
    >>> [(row.value, row.p < 0.01) for row in rows]
    [(1.0, True), (0.0, False)]
    """  # noqa: E501
    present = ~np.isnan(differences)
    counts = present.sum(axis=1)
    means = np.where(present, differences, 0.0).sum(axis=1) / np.maximum(counts, 1)
    beyond = means - np.clip(means, -margins, margins)
    left = np.where(present, differences - (means - beyond)[:, None], 0.0)
    p = _joint_p(left, np.abs(beyond) * counts, seed=seed, draws=draws)
    steps = np.zeros(len(means)) if steps is None else steps
    return [
        PairedMean(float(mean), *_limits(row[here], bound, step), float(chance))
        for row, here, mean, bound, step, chance in zip(
            differences, present, means, bounds, steps, p, strict=True
        )
    ]


def _limits(
    values: Numbers, bounds: Bounds | None, step: float
) -> tuple[float | None, float | None]:
    if len(values) < LEAST:
        return None, None
    if bounds is None:
        interval = mean_interval(values.tolist())
        return interval.low, interval.high
    ends = []
    for side, more in enumerate((-step, step)):
        known = np.append(values, more) if step else values
        error = float(known.std(ddof=1)) / math.sqrt(len(known))
        ends.append(bounded_interval(float(known.mean()), error, len(known), bounds)[side])
    return ends[0], ends[1]


def _joint_p(
    left: Float[np.ndarray, "rows texts"],
    sums: Float[np.ndarray, " rows"],
    *,
    seed: Seed,
    draws: int,
) -> Float[np.ndarray, " rows"]:
    size = np.sqrt((left**2).sum(axis=1))
    moved: Bool[np.ndarray, " rows"] = size > 0
    p = np.ones(len(left))
    if moved.any():
        scaled = (left[moved] / size[moved, None]).T
        random = np.random.default_rng(derive_seed(seed, "paired means"))
        largest = np.concatenate(
            [
                np.abs(_signs(count, len(scaled), random) @ scaled).max(axis=1)
                for count in in_blocks(draws, max(scaled.shape))
            ]
        )
        # Equal sums of the same numbers in another order may differ in their last digits.
        reached = largest[:, None] >= sums[moved] / size[moved] - 1e-9
        p[moved] = (1 + reached.sum(axis=0)) / (1 + draws)
    return p


def _signs(
    draws: int, members: int, random: np.random.Generator
) -> Float[np.ndarray, "draws members"]:
    return 2.0 * random.integers(0, 2, size=(draws, members), dtype=np.int8) - 1
