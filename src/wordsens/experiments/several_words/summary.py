"""Records of several words at once in a table and sentences: from how many words on a map notices."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.several_words.record import SeveralWordsRecord
from wordsens.experiments.summary import Claim, Section, Summary
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate, with_error
from wordsens.statistics.power_law import fit_power_law

NOTICED = 0.5
"""Features that move by half their norm: a constant fraction, which the theory of random features speaks of."""

Key = tuple[str, str, int, int]
"""Map, kind of text, n, d."""


def series_of_counts(records: Sequence[SeveralWordsRecord]) -> dict[Key, dict[int, list[SeveralWordsRecord]]]:
    """The finished records of each map, kind of text and size, by the number of words that move.

    Words of a set may stay where they are, so what fewer words attain in a draw more words attain too.
    """
    found: dict[Key, dict[int, list[SeveralWordsRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.done:
            found[record.map, record.text, record.n, record.d][record.count].append(record)
    return {key: _never_falling(dict(sorted(own.items()))) for key, own in found.items()}


def _never_falling(counts: dict[int, list[SeveralWordsRecord]]) -> dict[int, list[SeveralWordsRecord]]:
    best: dict[int, float] = {}
    for own in counts.values():
        for record in own:
            best[record.draw] = max(best.get(record.draw, 0.0), record.value or 0.0)
        own[:] = [replace(record, value=best[record.draw]) for record in own]
    return counts


def summarise_several_words(records: Sequence[SeveralWordsRecord]) -> Summary:
    """A row a map, text and number of words; from how many on each map notices, and how its sensitivity grows."""
    rows, claims = [], []
    for (name, text, n, d), counts in series_of_counts(records).items():
        for count, own in counts.items():
            value = Estimate.of([record.value or 0.0 for record in own])
            uppers = [record.upper for record in own if record.upper is not None]
            upper = math.fsum(uppers) / len(uppers) if len(uppers) == len(own) else None
            rows.append((map_title(name), text_title(text), n, d, count, count / n, value, upper, value.draws))
        claims += _claims(f"{map_title(name)} on {text_title(text)} of {n} words", n, counts)
    headings = ("map", "texts", "n", "d", "words moved", "share", "S", "upper bound", "draws")
    return Summary(
        (Section("Several words at once", headings, tuple(rows)),),
        "S: attained, means over draws with standard errors; every word moves in a ball of its own, or stays. The "
        "upper bounds hold for every set of so many words, each with probability 1 - 1e-9 over the weights.",
        tuple(claims),
    )


def _claims(subject: str, n: int, counts: dict[int, list[SeveralWordsRecord]]) -> list[Claim]:
    claims = []
    first = Estimate.of([record.value or 0.0 for record in counts[min(counts)]])
    crossings = [crossing for crossing in _crossings(counts) if crossing is not None]
    if min(counts) == 1 and first.interval[0] >= NOTICED:
        sentence = f"{subject} notices a single word: it moves the features by {first} times their norm."
        claims.append(Claim(f"{first.mean:.2g}×", sentence, _known(first)))
    elif crossings and len(crossings) == first.draws:
        at = Estimate.of(crossings)
        sentence = (
            f"{subject} notices (S reaches {NOTICED:g}) when {at} words change at once, {at.mean / n:.0%} of the text; "
            f"a single one moves it by {first}."
        )
        claims.append(Claim(f"{at.mean:.0f}", sentence, _known(at) + " Interpolated between the numbers tried."))
    unseen = [k for k, own in counts.items() if all(one.upper is not None and one.upper < NOTICED for one in own)]
    if unseen:
        sentence = f"No {max(unseen)} of its words, chosen and moved however one likes, move {subject} by {NOTICED:g}."
        if max(unseen) == 1:
            sentence = f"No single word moves {subject} by {NOTICED:g}."
        claims.append(
            Claim(f"{max(unseen)}", sentence, "Upper bounds, each with probability 1 - 1e-9 over the weights.")
        )
    few = [(k, record.value or 0.0) for k, own in counts.items() if k <= n / 2 for record in own]
    if len({k for k, _ in few}) > 2 and first.interval[1] < NOTICED:
        law = fit_power_law([k for k, _ in few], [value for _, value in few])
        told = with_error(law.exponent, law.standard_error)
        sentence = f"{subject}: up to half of the words, S grows with their number k as k^b, b = {told}."
        claims.append(Claim(f"k^{law.exponent:.2f}", sentence, f"Least squares over {len(few)} values."))
    return claims


def _crossings(counts: dict[int, list[SeveralWordsRecord]]) -> list[float | None]:
    """For each draw the number of words at which S reaches NOTICED, interpolated on logarithmic axes."""
    by_draw: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for count, own in counts.items():
        for record in own:
            by_draw[record.draw].append((count, record.value or 0.0))
    return [_crossing(points) for points in by_draw.values()]


def _crossing(points: Sequence[tuple[int, float]]) -> float | None:
    """
    >>> _crossing([(1, 0.25), (4, 0.5), (16, 1.0)]), _crossing([(1, 0.1), (2, 0.2)])
    (4.0, None)
    """
    for (few, less), (many, more) in pairwise(points):
        if 0 < less < NOTICED <= more:
            along = math.log(NOTICED / less) / math.log(more / less)
            return round(few * (many / few) ** along, 12)
    return None


def _known(estimate: Estimate) -> str:
    return f"Attained; mean over {estimate.draws} draws, ± one standard error."
