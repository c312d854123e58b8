"""Differences of areas under the curve between two measurements of the same members, in either direction."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wordsens.seeds import Seed
from wordsens.statistics.auc import Estimate, auc_interval, placements
from wordsens.statistics.mean import student
from wordsens.statistics.paired_drop import paired_drops

Numbers = Float[np.ndarray, " _"]
Sides = tuple[Numbers, Numbers]


@dataclass(frozen=True)
class PairedArea:
    """One area under the curve, before and after.

    Attributes:
        before, after: the areas.
        change: after - before with its 95 % interval.
        p: the joint chance of a change so large, in either direction, where none of the areas has changed.
    """

    before: float
    after: float
    change: Estimate
    p: float


def paired_areas(firsts: Mapping[str, Sides], second: Sides, *, seed: Seed) -> dict[str, PairedArea]:
    """For every sample of `firsts` its `auc` against `second`, before and after, with the change and all together.

    p is twice the smaller of the p-values of `paired_drops` in the two directions. The interval of one change is
    Student's with the variance of DeLong et al. (1988), var(v) / m + var(u) / n, v_i and u_j being the members'
    shares in the change. Where all areas stay at 0 or 1 the shares have no variance, and the limits are those of the
    areas themselves.
    """
    falls = paired_drops(firsts, second, seed=seed)
    turned = {name: (after, before) for name, (before, after) in firsts.items()}
    rises = paired_drops(turned, (second[1], second[0]), seed=seed)
    result = {}
    for name, fall in falls.items():
        before, after = firsts[name] if name in firsts else _joined(firsts)
        change = _change((before, after), second, seed=seed)
        result[name] = PairedArea(fall.before, fall.after, change, min(1.0, 2 * min(fall.p, rises[name].p)))
    return result


def _joined(firsts: Mapping[str, Sides]) -> Sides:
    before, after = (np.concatenate([sides[side] for sides in firsts.values()]) for side in (0, 1))
    return before, after


def _change(first: Sides, second: Sides, *, seed: Seed) -> Estimate:
    shares = placements(first[1], second[1]) - placements(first[0], second[0])
    others = placements(second[0], first[0]) - placements(second[1], first[1])
    value = float(shares.mean())
    if all(np.array_equal(*sides) for sides in (first, second)):
        return Estimate(value, value, value)
    variance = sum(float(part.var(ddof=1)) / len(part) for part in (shares, others) if len(part) > 1)
    if variance == 0:
        before, after = (auc_interval(first[side], second[side], seed=seed) for side in (0, 1))
        return Estimate(value, value - (before.high - before.low), value + (after.high - after.low))
    reach = student(max(1, min(len(shares), len(others)) - 1)) * math.sqrt(variance)
    return Estimate(value, max(-1.0, value - reach), min(1.0, value + reach))
