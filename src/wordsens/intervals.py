"""Six kinds of interval and test, each with a function that returns an `Estimate`: Student's t of a
mean, Clopper and Pearson's of a share, DeLong's of an AUC, the fit of a power law, order statistics
of a median, and sign flips of changes between two models."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import bdtr, betaincinv, stdtrit

from wordsens.display.numbers import Estimate
from wordsens.seeds import Seed, derive_seed

# Of every interval.
LEVEL = 0.95

ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)

# Fewer values give no interval of a mean, and fewer points none of an exponent.
LEAST = 3

# Bootstrap draws; a 2.5 % limit of 2000 draws stands between the 36th and the 64th of them in 95 %
# of seeds.
DRAWS = 2000

# Draws of signs: a p-value near .05 is then known to .004 (its 95 % interval).
FLIPS = 9999

# The exponent of 1/sqrt(n), at which a fully connected layer's sensitivity falls.
ROOT = -0.5

# Exponents this near to each other differ by less than 5 % when a text becomes ten times as long.
NEAR = 0.02

# The name of the AUC of all first samples as one.
TOGETHER = "all together"

# Numbers that are held at once: 32 MB of them.
_BLOCK = 4_000_000

Numbers = Float[np.ndarray, " _"]
# Before and after.
Sides = tuple[Numbers, Numbers]
Bounds = tuple[float, float]


def mean_estimate(
    values: Sequence[float] | Numbers, bounds: Bounds | None = None, *, over: str = "draws"
) -> Estimate:
    """The mean of the values with Student's interval, from LEAST values on: exact for normal
    values, close for a few dozen of any law. With `bounds` it is `bounded_interval`.

    >>> print(mean_estimate([1.0, 1.2, 1.1, 0.9, 1.3]), mean_estimate([1.0, 3.0]), sep="; ")
    1.10 [0.90, 1.30]; 2.00
    """
    values = [float(value) for value in values]
    mean, count = fmean(values), len(values)
    if count < LEAST:
        return Estimate(mean, n=count)
    error = stdev(values) / math.sqrt(count)
    reach = student(count - 1) * error
    free = mean - reach, mean + reach
    limits = free if bounds is None else bounded_interval(mean, error, count, bounds)
    return Estimate(mean, *limits, n=count, method=f"t over {over}")


def bounded_interval(
    mean: float, error: float, members: int, bounds: Bounds, most: float = math.inf
) -> Bounds:
    """A 95 % interval for the mean of numbers in [a, b], inside [a, b] whatever the error.

    Wilson's score interval (1927) of p = (mean - a) / (b - a), with Student's quantile and as many
    members as would give a share that standard error, p (1 - p) (b - a)^2 / error^2 (Korn and
    Graubard 1998), but no more than `most`; of numbers without scatter, which give no error, as
    many as there are.

    >>> [round(end, 3) for end in bounded_interval(0.75, 0.13, 12, (0.0, 1.0))]
    [0.423, 0.925]
    >>> bounded_interval(0.0, 0.0, 12, (0.0, 1.0))[0]
    0.0
    """
    low, width = bounds[0], bounds[1] - bounds[0]
    share = min(1.0, max(0.0, (mean - low) / width))
    scatter = share * (1 - share)
    effective = float(members)
    if error > 0 and scatter > 0:
        effective = min(most, scatter * (width / error) ** 2)
    square = student(members - 1) ** 2 / effective
    middle = (share + square / 2) / (1 + square)
    reach = math.sqrt(square * (scatter + square / 4)) / (1 + square)
    # Rounding may lead beyond 0 and 1.
    return low + width * max(0.0, middle - reach), low + width * min(1.0, middle + reach)


def student(freedom: float) -> float:
    """Half the width of a 95 % interval in standard errors.

    >>> round(student(4), 3)
    2.776
    """
    return float(stdtrit(freedom, ENDS[1]))


def ends(estimate: Estimate) -> Bounds:
    """The interval; everything where the estimate has none."""
    if estimate.low is None or estimate.high is None:
        return -math.inf, math.inf
    return estimate.low, estimate.high


def difference(second: Estimate, first: Estimate) -> Estimate:
    """second - first of independent estimates, with the square-and-add interval (Newcombe 1998; Zou
    and Donner 2008): each end lies as far from the value as both estimates' ends together.

    >>> print(difference(Estimate(1.0, 0.7, 1.3), Estimate(0.4, 0.0, 0.8)))
    0.6 [0.1, 1.1]
    """
    value = second.value - first.value
    (low, high), (first_low, first_high) = ends(second), ends(first)
    down = math.hypot(second.value - low, first_high - first.value)
    up = math.hypot(high - second.value, first.value - first_low)
    if math.isinf(down + up):
        return Estimate(value)
    return Estimate(value, value - down, value + up, method="square and add")


def share_estimate(hits: int, trials: int) -> Estimate:
    """The share of hits with Clopper and Pearson's interval, each end of which misses with a chance
    of at most 2.5 %. The trials are independent, and what is a hit does not depend on them.

    >>> print(share_estimate(0, 20))
    0.00 [0.00, 0.17]
    """
    high = share_at_most(hits, trials, ENDS[1])
    low = 1 - share_at_most(trials - hits, trials, ENDS[1])
    return Estimate(hits / trials, low, high, n=trials, method="Clopper–Pearson")


def share_at_most(hits: int, trials: int, level: float = LEVEL) -> float:
    """The largest share with which so few hits in so many trials still have the chance 1 - level:
    an upper limit.

    >>> round(share_at_most(0, 66), 4)
    0.0444
    """
    return 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, level))


def least_count(budget: float, confidence: float = LEVEL) -> int:
    """How many trials without a hit it takes for the upper limit of the share to be at most the
    budget.

    >>> least_count(0.01)
    299
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-budget))


def kept_threshold(values: Float[np.ndarray, "*draws m"], keep: float) -> Any:
    """The largest threshold that at least the share `keep` of the values reaches: of m values the
    (k + 1)-th smallest, k = floor((1 - keep) m).

    >>> float(kept_threshold(np.array([0.5, 0.6, 0.7, 0.8, 0.9]), 0.8))
    0.6
    """
    count = values.shape[-1]
    place = min(count - 1, math.floor((1 - keep) * count + 1e-9))
    return np.partition(values, place, axis=-1)[..., place]


def share_over(
    values: Numbers,
    threshold: float,
    kept: tuple[Numbers, float] | None = None,
    *,
    seed: Seed = 0,
    draws: int = DRAWS,
) -> Estimate:
    """The share of the values at or above the threshold: `share_estimate` at a given threshold.

    Where it is the `kept_threshold` of another sample, `kept` is that sample and the share to keep.
    Each draw then takes the threshold of a bootstrap sample, and a share of the law Beta(h + 1/2,
    m - h + 1/2), h of m values being at or above it.
    """
    count, hits = len(values), int((values >= threshold).sum())
    if kept is None:
        return share_estimate(hits, count)
    sample, keep = kept
    random = np.random.default_rng(derive_seed(seed, "share"))
    thresholds = kept_threshold(random.choice(sample, size=(draws, len(sample))), keep)
    above = count - np.searchsorted(np.sort(values), thresholds, "left")
    low, high = np.quantile(random.beta(above + 0.5, count - above + 0.5), ENDS).tolist()
    value = hits / count
    limits = min(low, value), max(high, value)
    return Estimate(value, *limits, n=count, method="bootstrap of both samples")


def placements(first: Numbers, second: Numbers) -> Numbers:
    """For every number of `first` the share of `second` that lies above it, ties half.

    >>> placements(np.array([0.0, 2.0]), np.array([1.0, 2.0]))
    array([1.  , 0.25])
    """
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, "left") + np.searchsorted(ordered, first, "right")
    return 1 - below / (2 * len(second))


def auc(first: Numbers, second: Numbers) -> float:
    """The area under the curve: P(x < y) + P(x = y) / 2 for x of `first` and y of `second`.

    >>> auc(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    0.875
    """
    return float(placements(first, second).mean())


def auc_estimate(first: Numbers, second: Numbers) -> Estimate:
    """`auc` with the variance of DeLong et al. (1988) in a `bounded_interval`: where all placements
    are equal, as on the floor, the interval stays open.

    The variance counts as no smaller than that of a share of as many trials as both samples have
    members. Near 0 and 1 few comparisons go the other way, and DeLong's variance is often far too
    small: for two exponential samples of 120 with an AUC of .995 the coverage would be 77 %.

    >>> print(auc_estimate(np.arange(9.0, 29), np.arange(20.0)))
    0.15 [0.07, 0.31]
    """
    count = len(first) + len(second)
    limits = _delong(placements(first, second), 1 - placements(second, first), (0.0, 1.0), count)
    return Estimate(auc(first, second), *limits, n=count, method="DeLong")


def _delong(first: Numbers, second: Numbers, bounds: Bounds, most: float = math.inf) -> Bounds:
    """The interval of a mean of both samples' placements; of a single member, all of the bounds."""
    members = min(len(first), len(second))
    if members < 2:
        return bounds
    variance = first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second)
    # Equal placements have a mean that rounding may set apart from them.
    error = math.sqrt(variance) if np.ptp(first) + np.ptp(second) > 0 else 0.0
    return bounded_interval(float(first.mean()), error, members, bounds, most)


def power_law(
    sizes: Sequence[Any], values: Sequence[float], texts: Sequence[Hashable] | None = None
) -> tuple[Estimate, float] | None:
    """The exponent and the constant of value = constant * n^exponent: least squares of log value on
    log n, every point alike, with Student's interval.

    The points must be independent. Those of one text are not: with `texts` the logarithms of one
    text at one size are averaged to a single point first. The interval covers the scatter of the
    points, not a departure of their mean from a power law.

    None where there is no fit: fewer than LEAST points, one size, or a size or value that is no
    positive number.

    >>> exponent, constant = power_law([1, 4, 16], [1.0, 0.5, 0.25])
    >>> exponent.value, constant
    (-0.5, 1.0)
    """
    positive = all(isinstance(size, int | float | np.number) and size > 0 for size in sizes)
    if not positive or min(values, default=0) <= 0:
        return None
    points: dict[tuple[Hashable, float], list[float]] = {}
    owners = range(len(sizes)) if texts is None else texts
    for size, value, text in zip(sizes, values, owners, strict=True):
        points.setdefault((text, size), []).append(math.log(value))
    if len(points) < LEAST or len({size for _, size in points}) < 2:
        return None
    from scipy.stats import linregress  # takes half a second to import

    # Sorted, so that the order of the records does not change the last digits.
    logarithms = sorted((math.log(size), fmean(logs)) for (_, size), logs in points.items())
    fit: Any = linregress([x for x, _ in logarithms], [y for _, y in logarithms])
    # NaN for equal values.
    error = 0.0 if math.isnan(fit.stderr) else float(fit.stderr)
    slope, reach = float(fit.slope), student(len(points) - 2) * error
    limits = slope - reach, slope + reach
    return Estimate(slope, *limits, n=len(points), method="log-log fit"), math.exp(fit.intercept)


def behaviour(exponent: Estimate) -> str:
    """The most that an exponent's interval allows to say.

    >>> behaviour(Estimate(-0.51, -0.54, -0.48)), behaviour(Estimate(-0.02, -0.1, 0.06))
    ('falls about as 1/√n', 'shows no trend')
    """
    low, high = ends(exponent)
    about_root = low <= ROOT <= high
    phrases = {
        "hardly changes": low > -NEAR and high < NEAR,
        "shows no trend": low <= 0 <= high,
        "grows": low > 0,
        "falls as 1/√n": low > ROOT - NEAR and high < ROOT + NEAR,
        "falls about as 1/√n": about_root and high - low < -ROOT / 2,
        "falls": about_root,
        "falls, but slower than 1/√n": low > ROOT,
    }
    allowed = (phrase for phrase, holds in phrases.items() if holds)
    return next(allowed, "falls faster than 1/√n")


def median_estimate(values: Sequence[float] | Numbers) -> Estimate:
    """The median of the values, and the innermost order statistics that enclose the law's median
    with the coverage: the (k + 1)-th smallest and largest of m values, k the largest number with
    2 P(Binomial(m, 1/2) <= k) <= 1 - LEVEL. Exact for independent values of any one distribution;
    no interval of fewer than `least_values`.

    >>> median_estimate(range(20)).low, median_estimate(range(5)).low
    (5.0, None)
    """
    ordered, count = np.sort(np.asarray(values, dtype=np.float64)), len(values)
    place = int(np.count_nonzero(2 * bdtr(np.arange(count + 1), count, 0.5) <= 1 - LEVEL)) - 1
    if place < 0:
        return Estimate(float(np.median(ordered)), n=count)
    limits = float(ordered[place]), float(ordered[-1 - place])
    return Estimate(float(np.median(ordered)), *limits, n=count, method="order statistics")


def least_values() -> int:
    """The fewest values whose smallest and largest enclose the median with the coverage: 1 - 2^(1 -
    m) >= it.

    >>> least_values()
    6
    """
    return math.ceil(1 - math.log2(1 - LEVEL))


def sign_flips(
    parts: Float[np.ndarray, "rows members"],
    totals: Float[np.ndarray, " rows"],
    *,
    two_sided: bool = True,
    seed: Seed,
    draws: int = FLIPS,
) -> Float[np.ndarray, " rows"]:
    """For every row the joint p-value of its total change, to which each member contributes a part.

    A row's statistic is T = total / sqrt(sum_t part_t^2), or |T|. A draw flips the signs of whole
    members, the same for all rows, and the largest of sum_t e_t part_t / sqrt(sum_t part_t^2) over
    the rows is what each T is compared with. For two models that can be exchanged, parts are
    symmetric around 0, and the chance that any p is under .05 is at most .05, however the rows
    depend on each other (Westfall and Young 1993). A row of zeros has p = 1.
    """
    size = np.sqrt((parts**2).sum(axis=1))
    size = np.where(size > 0, size, 1.0)
    scaled, observed = (parts / size[:, None]).T, totals / size
    random = np.random.default_rng(derive_seed(seed, "sign flips"))
    step, reached = max(1, _BLOCK // max(scaled.shape)), np.zeros(len(observed))
    for start in range(0, draws, step):
        shape = min(step, draws - start), len(scaled)
        flipped = (2.0 * random.integers(0, 2, size=shape, dtype=np.int8) - 1) @ scaled
        largest = (np.abs(flipped) if two_sided else flipped).max(axis=1)
        # Equal sums of the same numbers in another order may differ in their last digits.
        least = (np.abs(observed) if two_sided else observed) - 1e-9
        reached += (largest[:, None] >= least).sum(axis=0)
    return (1 + reached) / (1 + draws)


def mean_changes(
    differences: Float[np.ndarray, "rows texts"],
    margins: Float[np.ndarray, " rows"],
    bounds: Sequence[Bounds | None],
    steps: Sequence[float] = (),
    *,
    seed: Seed,
    draws: int = FLIPS,
) -> list[Estimate]:
    """The mean of every row over its texts, NaN standing for a text without a difference, with the
    p-value of `sign_flips` for |mean| <= margin.

    The interval is `mean_estimate` with the row's `bounds`. Where bounded differences come in steps
    and are mostly 0, the lower limit is that with one more text a step below 0, the upper with one
    a step above. In the test u_t = d_t - m are the parts, m being the number in [-margin, margin]
    that is nearest to the row's mean.

    >>> rows = np.array([[1.0] * 20, [1.0, -1.0] * 10])
    >>> changes = mean_changes(rows, np.array([0.1, 0.1]), [None, None], seed=0)
    >>> [(change.value, change.p < 0.01) for change in changes]
    [(1.0, True), (0.0, False)]
    """
    present = ~np.isnan(differences)
    means = np.where(present, differences, 0.0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    nearest = np.clip(means, -margins, margins)
    parts = np.where(present, differences - nearest[:, None], 0.0)
    p = sign_flips(parts, parts.sum(axis=1), seed=seed, draws=draws)
    changes = []
    for row, here, bound, step, chance in zip(
        differences, present, bounds, steps or np.zeros(len(p)), p, strict=True
    ):
        change = mean_estimate(row[here], bound, over="texts")
        if bound is not None and step and change.low is not None:
            low, high = (mean_estimate([*row[here], more], bound) for more in (-step, step))
            change = replace(change, low=low.low, high=high.high)
        changes.append(replace(change, p=float(chance)))
    return changes


def auc_changes(
    firsts: Mapping[str, Sides],
    second: Sides,
    *,
    falls: bool = False,
    seed: Seed,
    draws: int = FLIPS,
) -> dict[str, Estimate]:
    """For every sample of `firsts` the change of its `auc` against `second`. Several samples have
    one more entry, TOGETHER, for all of them as one. The p-values are those of `sign_flips`: of a
    change, or with `falls` of a fall.

    The members are the same before and after; the numbers may have another scale. A member's part
    is the change of its placement among the other sample: v_i / m and u_j / n, where mean v = mean
    u is the change. Its variance is var v / m + var u / n (DeLong et al. 1988), its interval
    `bounded_interval` in [-1, 1]. Where all AUCs stay at 0 or 1 the parts have no variance, and the
    interval is the `difference` of the two AUCs.
    """
    samples = dict(firsts)
    if len(firsts) > 1:
        before, after = (np.concatenate(sides) for sides in zip(*firsts.values(), strict=True))
        samples[TOGETHER] = before, after
    starts = np.cumsum([0, *(len(before) for before, _ in firsts.values())]).tolist()
    places = [slice(*both) for both in pairwise(starts)] + [slice(0, starts[-1])]
    parts = np.zeros((len(samples), starts[-1] + len(second[0])))
    changes = []
    for row, place, sides in zip(parts, places, samples.values(), strict=False):
        first = placements(sides[1], second[1]) - placements(sides[0], second[0])
        others = placements(second[0], sides[0]) - placements(second[1], sides[1])
        row[place], row[starts[-1] :] = first / len(first), others / len(others)
        changes.append(_auc_change(first, others, sides, second))
    totals = np.array([change.value for change in changes])
    if falls:
        totals = -totals
    p = sign_flips(parts, totals, two_sided=not falls, seed=seed, draws=draws)
    return {
        name: replace(change, p=float(chance))
        for name, change, chance in zip(samples, changes, p, strict=True)
    }


def _auc_change(first: Numbers, others: Numbers, sides: Sides, second: Sides) -> Estimate:
    value, method = float(first.mean()), "DeLong, sign flips"
    if all(np.array_equal(*pair) for pair in (sides, second)):
        return Estimate(value, value, value, n=len(first), method=method)
    limits = _delong(first, others, (-1.0, 1.0))
    if min(map(len, (first, others))) > 1 and np.ptp(first) + np.ptp(others) == 0:
        apart = difference(*(auc_estimate(sides[side], second[side]) for side in (1, 0)))
        limits = ends(apart)
    return Estimate(value, *limits, n=len(first), method=method)


def correlation_estimate(
    draws: Sequence[Sequence[tuple[float, float]]], *, resamples: int = 500
) -> Estimate:
    """Spearman's rank correlation of the pairs of all draws, with its bootstrap interval over
    draws; NaN, without an interval, where a column does not vary. Of few draws the interval is too
    narrow: of 20 normal ones it covers 92 %, of 5 to 10 ones 88 %.

    >>> correlation_estimate([[(1, 0.1), (2, 0.4)], [(3, 0.2), (4, 9.0)]]).value
    0.8
    """
    from scipy.stats import rankdata

    tables = [np.array(pairs, float) for pairs in draws]

    def correlation(chosen: Iterable[int]) -> float:
        ranks = rankdata(np.concatenate([tables[place] for place in chosen]), axis=0)
        varied = (np.ptp(ranks, axis=0) > 0).all()
        return round(float(np.corrcoef(ranks.T)[0, 1]), 12) if varied else math.nan

    value, count = correlation(range(len(draws))), len(draws)
    if math.isnan(value):
        return Estimate(value, n=count)
    random = np.random.default_rng(derive_seed(0, "rank correlation"))
    samples = random.integers(count, size=(resamples, count))
    low, high = np.nanquantile(list(map(correlation, samples)), ENDS).tolist()
    return Estimate(value, low, high, n=count, method="bootstrap over draws")
