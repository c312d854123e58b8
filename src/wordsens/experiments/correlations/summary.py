"""Records of correlated texts in a table and sentences: what mean cosine, repetition and real texts do to S."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from wordsens.experiments.correlations.record import CorrelationRecord
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.summary import Claim, Section, Summary, ratio
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate

NEAR = 0.05
"""A ratio whose interval lies this near to 1 is said to hardly change."""

CORRELATED = "correlated"


@dataclass(frozen=True)
class Place:
    """The draws of one map on texts of one kind: `cosine` is the mean cosine that their rows have, measured."""

    map: str
    text: str
    asked: float
    cosine: float
    value: Estimate
    records: tuple[CorrelationRecord, ...]

    @property
    def title(self) -> str:
        """The texts in words."""
        one = self.records[0]
        if one.text == CORRELATED:
            return f"mean cosine {one.mean_cosine:g}"
        if one.text == "repeated":
            return f"{one.distinct} different words of {one.n}"
        return text_title(one.text) + (f", layer {one.layer}" if one.layer else "")


def places(records: Sequence[CorrelationRecord]) -> list[Place]:
    """The finished records of each map and kind of text, by mean cosine."""
    groups: dict[tuple[str, str, float], list[CorrelationRecord]] = defaultdict(list)
    for record in records:
        if record.done:
            text = record.text if not record.layer else f"{record.text}, layer {record.layer}"
            groups[record.map, text, float(record.mean_cosine or record.distinct or 0)].append(record)
    found = [
        Place(
            *key,
            round(fmean(one.cosine or 0.0 for one in own), 9),
            Estimate.of([one.value or 0.0 for one in own]),
            tuple(own),
        )
        for key, own in groups.items()
    ]
    order = {key: at for at, key in enumerate(dict.fromkeys((one.map, one.text) for one in found))}
    return sorted(found, key=lambda one: (order[one.map, one.text], one.cosine))


def summarise_correlations(records: Sequence[CorrelationRecord]) -> Summary:
    """A row a map and kind of text; what the mean cosine does, and where real texts lie."""
    found = places(records)
    rows = tuple(
        (map_title(one.map), one.title, one.records[0].n, one.records[0].d, one.cosine, one.value, one.value.draws)
        for one in found
    )
    claims = []
    for name in dict.fromkeys(one.map for one in found):
        own = [one for one in found if one.map == name]
        curve = [one for one in own if one.text == CORRELATED]
        if len(curve) > 1:
            claims += _along(curve)
            claims += [claim for one in own if one.text != CORRELATED for claim in _beside(one, curve)]
    headings = ("map", "texts", "n", "d", "mean cosine", "S", "draws")
    return Summary(
        (Section("Correlated words", headings, rows),),
        "S: attained, means over draws with standard errors. Mean cosine: of two different rows, measured.",
        tuple(claims),
    )


def _along(curve: Sequence[Place]) -> list[Claim]:
    """The most correlated texts beside the least correlated ones: the same draws."""
    first, last = curve[0], curve[-1]
    change = ratio(last.records, first.records)
    if change is None:
        return []
    low, high = change.interval
    subject = (
        f"{map_title(first.map)}, {first.records[0].n} words: from mean cosine {first.cosine:.2g} to {last.cosine:.2g}"
    )
    if low > 1 - NEAR and high < 1 + NEAR:
        told = f"S hardly changes, by the factor {change}"
    elif low > 1 or high < 1:
        told = f"S {'grows' if low > 1 else 'falls'} by the factor {change}, from {first.value} to {last.value}"
    else:
        return []
    return [Claim(f"×{change.mean:.2g}", f"{subject} to {last.cosine:.2g} {told}.", _known(change))]


def _beside(place: Place, curve: Sequence[Place]) -> list[Claim]:
    """Texts of another kind beside correlated ones of the same mean cosine, interpolated."""
    around = [(a, b) for a, b in pairwise(curve) if a.cosine <= place.cosine <= b.cosine]
    if not around:
        return []
    a, b = around[0]
    share = (place.cosine - a.cosine) / (b.cosine - a.cosine)
    expected = a.value.mean + share * (b.value.mean - a.value.mean)
    error = max(a.value.error, b.value.error)
    low, high = place.value.interval
    if low - 2 * error <= expected <= high + 2 * error:
        return []
    more = "more" if place.value.mean > expected else "less"
    sentence = (
        f"{map_title(place.map)}: {place.title} (mean cosine {place.cosine:.2g}) has S = {place.value}, {more} than "
        f"equally correlated texts of that mean cosine ({expected:.3g} ± {error:.2g}): the rest of the Gram matrix "
        "counts."
    )
    return [Claim(f"{place.value.mean:.2g}", sentence, _known(place.value) + " The other is interpolated.")]


def _known(estimate: Estimate) -> str:
    return f"Attained; mean over {estimate.draws} draws, ± one standard error."
