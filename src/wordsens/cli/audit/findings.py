"""The first lines of an audit: what was found, in words, each with its number, its interval and what to do."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wordsens.audit.categories import PLACES, place_of
from wordsens.audit.text import AuditedText, AuditedWord
from wordsens.experiments.audit import audited
from wordsens.report.findings.audit import mean_intervals
from wordsens.report.findings.finding import times
from wordsens.text.english import kind_of

if TYPE_CHECKING:
    from wordsens.cli.audit.outcome import Audit

MOST = 10
"""Lines: a screen has room for them and for the first table."""

_REACTIONS = 2
"""Words that are named for reacting, and for being ignored."""


def findings(audit: "Audit") -> list[str]:
    """At most MOST sentences; none whose interval includes its opposite."""
    texts = [audited(record) for record in audit.records if record.done]
    lines = [
        *_changed(audit),
        *_advice(audit),
        *_negations(texts),
        *_words(audit),
        *_places(texts),
        *_lengths(audit),
        *_cut(audit),
        *_swaps(texts),
        *_reach(texts),
    ]
    return lines[:MOST]


def _by_text(texts: Sequence[AuditedText], wanted: str, **only: str) -> list[list[float]]:
    """A measure of the words of a kind or place, a list a text."""

    def fits(word: AuditedWord) -> bool:
        return only.get("kind", kind_of(word.word)) == kind_of(word.word) and only.get(
            "place", place_of(word.place)
        ) == place_of(word.place)

    return [
        [value for word in text.measured if fits(word) and not math.isnan(value := getattr(word, wanted))]
        for text in texts
    ]


def _mean(sample: Sequence[Sequence[float]]) -> float:
    values = [value for own in sample for value in own]
    return math.fsum(values) / len(values)


def _compared(one: list[list[float]], other: list[list[float]]) -> tuple[float, float, float, float] | None:
    """Both means and the interval of their difference; None where that includes 0, or is not known."""
    if not any(one) or not any(other) or (intervals := mean_intervals(one, other)) is None:
        return None
    low, high = intervals[2]
    return None if low <= 0 <= high else (_mean(one), _mean(other), low, high)


def _changed(audit: "Audit") -> Iterator[str]:
    if audit.changes is None:
        return
    certain = [change for change in audit.changes if change.certain]
    for change in certain[:3]:
        way = "grew" if change.difference.value > 0 else "fell"
        yield (
            f"Since the earlier audit the {change.measure} of {change.kind}s {way} from {times(change.before)} to "
            f"{times(change.after)} (change {change.difference}, 95 % over {change.texts} texts). Look at what changed "
            "in the model before you compare its scores with earlier ones."
        )
    if not certain:
        texts = max((change.texts for change in audit.changes), default=0)
        yield f"Since the earlier audit no kind of word changed beyond chance ({texts} texts in both)."


def _advice(audit: "Audit") -> Iterator[str]:
    advice = audit.advice
    if advice is None:
        return
    sentence = advice.advice[0].upper() + advice.advice[1:]
    if advice.length is not None and advice.decisive:
        yield f"{sentence}. Cut longer texts into passages of that length."
    elif advice.length is None and advice.high is not None and advice.low is None:
        yield (
            f"Even passages of {advice.high} {advice.unit} lose a {advice.kind}: it moves the embedding by less than "
            f"{advice.threshold:g} (95 %, {advice.changes} changed sentences). Decide such cases by a reranker or a "
            "classifier; only single short sentences could keep it."
        )
    elif advice.length is None and advice.low is not None:
        yield (
            f"A {advice.kind} moves the embedding by {advice.threshold:g} or more in passages of {advice.low} "
            f"{advice.unit} (95 %, {advice.changes} changed sentences). Passages of that length keep it."
        )


def _negations(texts: Sequence[AuditedText]) -> Iterator[str]:
    found = _compared(_by_text(texts, "removal", kind="negation"), _by_text(texts, "removal", kind="content word"))
    if found is not None:
        own, other, low, high = found
        less = high < 0
        do = (
            "Do not trust a similarity to tell a statement from its opposite; `wordsens check` measures it."
            if less
            else "Look at how texts are cut: a lost “not” is felt."
        )
        yield (
            f"Taking out a “not” or its like moves the output {'less' if less else 'more'} than a word of content: by "
            f"{times(own)} of its size against {times(other)} (difference 95 %: {times(low)} to {times(high)}). {do}"
        )


def _words(audit: "Audit") -> Iterator[str]:
    told = (
        (
            audit.summary.overreacts,
            "moves its texts more than their other words do",
            "Drop it, or write it in one way.",
        ),
        (
            audit.summary.ignores,
            "moves its texts less than their other words do",
            "Do not rely on it to tell texts apart.",
        ),
    )
    for words, how, do in told:
        for one in words[:_REACTIONS]:
            high = "any" if math.isinf(one.high) else times(one.high)
            yield (
                f"“{one.word}” {how}: {times(one.ratio)} times as far (95 %: {times(one.low)} to {high}; "
                f"{one.texts} texts). {do}"
            )


def _places(texts: Sequence[AuditedText]) -> Iterator[str]:
    found = _compared(_by_text(texts, "removal", place=PLACES[0]), _by_text(texts, "removal", place=PLACES[2]))
    if found is not None:
        own, other, low, high = found
        side, weak = ("beginning", "end") if low > 0 else ("end", "beginning")
        yield (
            f"Words at the {side} of a text count for more: taking one out moves the output by {times(own)} in the "
            f"first fifth and {times(other)} in the last (difference 95 %: {times(low)} to {times(high)}). Do not hide "
            f"what matters at the {weak}."
        )


def _lengths(audit: "Audit") -> Iterator[str]:
    exponents = audit.summary.exponents.get("content word", {}).get("removal")
    fit = None if exponents is None else exponents.fit
    if exponents is not None and fit is not None and abs(fit.exponent) > 2 * fit.standard_error:
        halved = 2**fit.exponent
        low, high = sorted(2 ** (fit.exponent + side * 2 * fit.standard_error) for side in (-1, 1))
        way = "less" if halved < 1 else "more"
        yield (
            f"In a text twice as long a word counts for {way}: {times(halved)} times as much (95 %: {times(low)} to "
            f"{times(high)}; {exponents.texts} texts). "
            + ("Shorter passages tell texts apart by single words." if halved < 1 else "Longer passages do no harm.")
        )


def _cut(audit: "Audit") -> Iterator[str]:
    if audit.cut:
        lost = sum(record.words_lost for record in audit.cut)
        negations = sum(record.negations_lost for record in audit.cut)
        yield (
            f"{lost:,} words were never read, {negations:,} negations among them: {len(audit.cut)} of "
            f"{audit.summary.texts} texts are longer than what is read (counted). Raise --max-words, or cut the texts."
        )


def _swaps(texts: Sequence[AuditedText]) -> Iterator[str]:
    found = [word for text in texts for word in text.measured if not math.isnan(word.swap)]
    sample = _by_text(texts, "swap")
    intervals = mean_intervals(sample) if found else None
    if found and intervals is not None:
        best = max(found, key=lambda word: word.swap)
        yield (
            f"Another word that a writer could have meant moves the output by {times(_mean(sample))} of its size at "
            f"most, on average (95 %: {times(intervals[0][0])} to {times(intervals[0][1])}); the farthest is "
            f"“{best.swapped_for}” for “{best.word}”, {times(best.swap)}. Look at these pairs in the records."
        )


def _reach(texts: Sequence[AuditedText]) -> Iterator[str]:
    sample = _by_text(texts, "sensitivity")
    intervals = mean_intervals(sample) if any(sample) else None
    if intervals is not None:
        low, high = intervals[0]
        yield (
            f"Moved freely within its own length, one word reaches {times(_mean(sample))} of the output's size on "
            f"average (attained; 95 %: {times(low)} to {times(high)}). Odd tokens can do that too: clean the texts of "
            "signs and code that nobody wrote."
        )
