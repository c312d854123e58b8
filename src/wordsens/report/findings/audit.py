"""Sentences about an audited model: the words that move it, those it ignores, and what it never read."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from wordsens.audit.summary import AuditSummary, Reaction, summarise_audit
from wordsens.audit.text import AuditedText
from wordsens.experiments.audit import audited
from wordsens.experiments.store import Record
from wordsens.report.findings.finding import ATTAINED, INTERVAL, Finding, minus, times
from wordsens.statistics.power_law import LEAST_TEXTS
from wordsens.text.english import KINDS, kind_of

RESAMPLES = 2000
"""The ends of a 95 % interval are then the 50th and the 1950th of them."""

_NAMES = {
    "negation": "a negation",
    "function word": "a function word",
    "content word": "a content word",
    "number or sign": "a number or sign",
}


def audit_findings(records: Sequence[Record]) -> list[Finding]:
    """The effect of taking a word out, by its kind, the words with an effect of their own, length, and what was cut."""
    texts = [audited(record) for record in records]
    summary = summarise_audit(texts, Counter())
    return [
        *_negations(texts),
        *_kinds(texts),
        *_swaps(texts),
        *_reactions(summary),
        *_lengths(summary),
        *_cut(texts),
    ]


def _removals(texts: Sequence[AuditedText], kind: str) -> list[list[float]]:
    return [[word.removal for word in text.measured if kind_of(word.word) == kind] for text in texts]


def mean_intervals(*samples: Sequence[Sequence[float]]) -> list[tuple[float, float]] | None:
    """95 % intervals of the means over words, and of the first less each other: bootstrap over texts.

    Every sample has a list a text, in one order of texts. None where fewer than five texts have words of each.

    >>> mean_intervals([[1.0]] * 5, [[0.5]] * 5)
    [(1.0, 1.0), (0.5, 0.5), (0.5, 0.5)]
    """
    if min(sum(map(bool, sample)) for sample in samples) < LEAST_TEXTS:
        return None
    drawn = np.random.default_rng(0).integers(len(samples[0]), size=(RESAMPLES, len(samples[0])))
    means = []
    for sample in samples:
        sums, counts = np.array([math.fsum(own) for own in sample]), np.array([len(own) for own in sample])
        with np.errstate(invalid="ignore", divide="ignore"):  # a draw may have no word of a kind
            means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    means += [means[0] - other for other in means[1:]]
    return [(float(low), float(high)) for low, high in (np.nanquantile(one, (0.025, 0.975)) for one in means)]


def _mean(sample: Sequence[Sequence[float]]) -> float:
    values = [value for own in sample for value in own]
    return math.fsum(values) / len(values)


def _negations(texts: Sequence[AuditedText]) -> list[Finding]:
    """The weight of a "not" beside that of a word of content, where an interval of the difference is known."""
    own, other = _removals(texts, "negation"), _removals(texts, "content word")
    if not any(own) or not any(other) or (intervals := mean_intervals(own, other)) is None:
        return []
    low, high = intervals[2]
    first, second = f"{times(_mean(own))} of its size", times(_mean(other))
    gap = f"the difference is {times(_mean(own) - _mean(other))} ({times(low)} to {times(high)})"
    if low <= 0 <= high:
        sentence = (
            f"Taking out a “not” or its like moves the output by {first}, a word of content by {second}; these texts "
            f"do not tell which counts for more: {gap}."
        )
    else:
        sentence = (
            f"Taking out a “not” or its like moves the output {'more' if low > 0 else 'less'} than taking out a word "
            f"of content: by {first} against {second}; {gap}."
        )
    known = f"Measured on {sum(map(len, own))} and {sum(map(len, other))} words; 95 % interval, bootstrap over texts."
    return [Finding(times(_mean(own)), minus(sentence), known, (INTERVAL,))]


def _kinds(texts: Sequence[AuditedText]) -> list[Finding]:
    """The mean effect of every kind of word."""
    told, counted = [], []
    for kind in KINDS:
        sample = _removals(texts, kind)
        if any(sample):
            intervals = mean_intervals(sample)
            spread = f" ({times(intervals[0][0])} to {times(intervals[0][1])})" if intervals else ""
            told.append(f"{_NAMES[kind]} {times(_mean(sample))}{spread}")
            counted.append(sum(map(len, sample)))
    words = [word.removal for text in texts for word in text.measured]
    sentence = f"Taking out a word moves the output by so much of its size, on average: {'; '.join(told)}."
    known = f"Measured on {', '.join(map(str, counted))} words of {len(texts)} texts. In brackets: 95 % intervals, "
    known += f"bootstrap over texts, where there are {LEAST_TEXTS} texts or more."
    return [Finding(times(math.fsum(words) / len(words)), sentence, known, (INTERVAL,))]


def _swaps(texts: Sequence[AuditedText]) -> list[Finding]:
    found = [word for text in texts for word in text.measured if not math.isnan(word.swap)]
    if not found:
        return []
    best = max(found, key=lambda word: word.swap)
    sentence = (
        f"The real word that moves a text most is “{best.swapped_for}” in the place of “{best.word}”: by "
        f"{times(best.swap)} of the output's size."
    )
    if not math.isnan(best.sensitivity):
        sentence += f" Moved freely within its own length, that word reaches {times(best.sensitivity)}."
    return [Finding(times(best.swap), sentence, f"Attained, the largest of {len(found)} words.", (ATTAINED,))]


def _reactions(summary: AuditSummary) -> list[Finding]:
    groups = (
        ("moves its texts more than their other words do", summary.overreacts),
        ("moves them less", summary.ignores),
    )
    return [
        Finding(
            f"{times(one.ratio)}×",
            f"“{one.word}” {how}: {times(one.ratio)} times as far ({_ends(one)}), in {one.texts} texts.",
            f"95 % interval of the median, by order statistics; of {summary.compared} words compared, about one in "
            "forty is listed by chance.",
            (INTERVAL,),
        )
        for how, listed in groups
        for one in listed[:2]
    ]


def _ends(one: Reaction) -> str:
    return f"{times(one.low)} to {'any' if math.isinf(one.high) else times(one.high)}"


def _lengths(summary: AuditSummary) -> list[Finding]:
    found = []
    for kind, measures in summary.exponents.items():
        fit = measures["removal"].fit
        if fit is not None and abs(fit.exponent) > 2 * fit.standard_error:
            way = "less" if fit.exponent < 0 else "more"
            low, high = fit.exponent - 2 * fit.standard_error, fit.exponent + 2 * fit.standard_error
            sentence = (
                f"In longer texts, taking out {_NAMES[kind]} moves the output {way}: as n^{fit.exponent:.2f} "
                f"({low:.2f} to {high:.2f})."
            )
            known = f"± 2 standard errors, jackknife over {measures['removal'].texts} texts."
            found.append(Finding(minus(f"n^{fit.exponent:.2f}"), minus(sentence), known, (INTERVAL,)))
    return found


def _cut(texts: Sequence[AuditedText]) -> list[Finding]:
    lost = sum(text.words_lost for text in texts)
    if not lost:
        return []
    cut, negations = sum(text.words_lost > 0 for text in texts), sum(text.negations_lost for text in texts)
    sentence = (
        f"{lost:,} words were never read: {cut} of {len(texts)} texts are longer than the model was given, and "
        f"{negations} negation{' is' if negations == 1 else 's are'} among what was cut off."
    )
    return [Finding(f"{lost:,}", sentence, "Counted.", ())]
