"""Sentences about similarities, each no surer than its interval."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean

from wordsens.experiments.similarity.series import Column, Place, auc_of, pairs_title, s_of
from wordsens.experiments.summary import Claim
from wordsens.statistics.mean import LEAST, Estimate
from wordsens.statistics.rank_correlation import correlation_interval

COIN = 0.5
"""The AUC of a guess."""


def all_claims(swaps: Sequence[Place], check: Sequence[Place]) -> Iterator[Claim]:
    """Along the length, map by map; flips beside synonyms; AUC beside S; and the pairs of check."""
    for text in dict.fromkeys(one.text for one in swaps):
        own = [one for one in swaps if one.text == text]
        for title in dict.fromkeys(one.title for one in own):
            yield from _along([one for one in own if one.title == title])
        yield from _moved(own)
        yield from _beside_s(own)
    for length in dict.fromkeys(one.records[0].length for one in check):
        yield from _check([one for one in check if one.records[0].length == length])


def _along(curve: Sequence[Place]) -> Iterator[Claim]:
    """AUC of one map at the shortest and the longest passages, and their difference draw by draw."""
    first, last = curve[0], curve[-1]
    start, end = first.estimate(auc_of), last.estimate(auc_of)
    if start is None or end is None or min(start.draws, end.draws) < LEAST:
        return
    sentence = (
        f"{first.title}, {pairs_title(first)}: AUC {start} in passages of {first.n} words, {_beside_a_coin(start)}"
    )
    if first.n != last.n:
        change = _differences(last, first, auc_of)
        low, high = change.interval
        told = "more" if low > 0 else "less" if high < 0 else "which is no change beyond its scatter"
        sentence += f"; {end} in passages of {last.n}, {_beside_a_coin(end)}, "
        sentence += told if low <= 0 <= high else f"{told} by {Estimate(abs(change.mean), change.error, change.draws)}"
    yield Claim(f"{end.mean:.2f}", f"{sentence}.", _known(end))


def _beside_a_coin(value: Estimate) -> str:
    low, high = value.interval
    return "better than a coin" if low > COIN else "worse than a coin" if high < COIN else "not told from a coin"


def _differences(place: Place, beside: Place, column: Column) -> Estimate:
    own, other = place.by_draw(column), beside.by_draw(column)
    return Estimate.of([own[draw] - other[draw] for draw in own if draw in other])


def _moved(swaps: Sequence[Place]) -> Iterator[Claim]:
    """How far a flip moves the features beside a synonym: the maps between which the ratio lies, at each length."""
    for n in dict.fromkeys(one.n for one in swaps):
        ratios = {one.title: ratio for one in swaps if one.n == n and (ratio := _ratio(one)) is not None}
        if len(ratios) < 2 or min(one.draws for one in ratios.values()) < LEAST:
            continue
        least, most = (pick(ratios, key=lambda title: ratios[title].mean) for pick in (min, max))
        sentence = (
            f"In passages of {n} words a flip moves the features {ratios[least]} ({least}) to {ratios[most]} ({most}) "
            "times as far as a synonym does."
        )
        yield Claim(f"×{ratios[most].mean:.2g}", sentence, _known(ratios[most]) + " Ratios of medians.")


def _ratio(place: Place) -> Estimate | None:
    both = [one.moved_flip / one.moved_synonym for one in place.records if one.moved_flip and one.moved_synonym]
    return Estimate.of(both) if both else None


def _beside_s(swaps: Sequence[Place]) -> Iterator[Claim]:
    """The rank correlation of AUC and S: over all features and lengths, over random maps, over layers."""
    with_s = [one for one in swaps if one.by_draw(s_of)]
    random, learned = ([one for one in with_s if one.learned == wanted] for wanted in (False, True))
    groups = {"all features": with_s, "the random maps": random, "the pooled layers": learned}
    for name, own in groups.items():
        if name == "all features" and not (random and learned):
            continue
        draws = _pairs_by_draw(own)
        if len(draws) < LEAST or min(map(len, draws.values())) < LEAST:
            continue
        value, low, high = correlation_interval(draws)
        if not math.isfinite(value):
            continue
        told = "AUC rises with S" if low > 0 else "AUC falls with S" if high < 0 else "AUC does not follow S"
        sentence = (
            f"{pairs_title(own[0]).capitalize()}: over {name} and the lengths measured {told}; their rank correlation "
            f"is {value:.2f} (95 % interval over draws {low:.2f} to {high:.2f}). S says how far a word can move the "
            "features, not that another meaning does."
        )
        known = (
            f"{sum(map(len, draws.values()))} pairs of values, {len(draws)} draws; bootstrap over draws. S attained."
        )
        yield Claim(f"{value:.2f}", sentence, known)


def _pairs_by_draw(own: Sequence[Place]) -> dict[int, list[tuple[float, float]]]:
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for place in own:
        s, auc = place.by_draw(s_of), place.by_draw(auc_of)
        for draw in s:
            found[draw].append((s[draw], auc[draw]))
    return dict(found)


def _check(check: Sequence[Place]) -> Iterator[Claim]:
    """Between which features the AUC of one length lies, and on which side of a coin all of them are."""
    values = {one.title: one.estimate(auc_of) for one in check}
    means = {title: value.mean for title, value in values.items() if value is not None}
    if len(means) < 2:
        return
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    lows, highs = ([one for place in check for one in place.by_draw(side).values()] for side in (_low, _high))
    side = ""
    if max(highs) < COIN:
        side = "; every feature finds the flipped pairs more alike than paraphrases"
    elif min(lows) > COIN:
        side = "; every feature finds the flipped pairs less alike than paraphrases"
    synonyms = {one.title: value.mean for one in check if (value := one.estimate(lambda own: own.auc_synonym))}
    beside = ""
    if synonyms:
        low, high = min(synonyms, key=synonyms.__getitem__), max(synonyms, key=synonyms.__getitem__)
        beside = (
            f" Against one-word synonyms it lies between {synonyms[low]:.2f} ({low}) and {synonyms[high]:.2f} ({high})."
        )
    between = f"between {means[least]:.2f} ({least}) and {means[most]:.2f} ({most})"
    if means[least] == means[most]:
        between = f"{means[least]:.2f} for every feature"
    sentence = f"{pairs_title(check[0]).capitalize()}, against paraphrases: AUC {between}{side}.{beside}"
    yield Claim(f"{fmean(means.values()):.2f}", sentence, "Means over draws; 95 % intervals over the pairs.")


def _low(record: object) -> float | None:
    return getattr(record, "auc_low", None)


def _high(record: object) -> float | None:
    return getattr(record, "auc_high", None)


def _known(estimate: Estimate) -> str:
    return f"Mean over {estimate.draws} draws of weights and passages, ± one standard error."
