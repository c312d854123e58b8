"""From audited texts to their summary: categories, words that a model reacts to or ignores, length;
and changes."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from wordsens.display.numbers import Estimate
from wordsens.errors import InputError
from wordsens.evaluation.audit.text import AuditedText, AuditedWord
from wordsens.intervals import (
    least_values,
    mean_estimate,
    median_estimate,
    power_law,
    unfit_for_power_law,
)
from wordsens.text.english import KINDS, kind_of, place_of


def frequency_bands(counts: Counter[str]) -> dict[str, str]:
    """For each word of the data, "common" if it is among the words that make up half of all running
    words, else "frequent" for the next 40 %, and "rare" for the last tenth.

    >>> frequency_bands(Counter(the=50, film=40, gaffer=10))
    {'the': 'common', 'film': 'frequent', 'gaffer': 'rare'}
    """
    total = sum(counts.values())
    before, bands = 0, {}
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        bands[word] = (
            "common" if before < 0.5 * total else "frequent" if before < 0.9 * total else "rare"
        )
        before += count
    return bands


@dataclass(frozen=True)
class Reaction:
    """The effect of a word's removal, compared with that of the other measured words of its text.

    Attributes:
        word: in lower case.
        ratio: the median over its texts of its mean removal / the median removal of the text's
            other measured words.
        low, high: an interval of that median with coverage COVERAGE at least: order statistics, for
            any distribution, the texts being independent. Infinite where the other words' removals
            are 0.
        texts: how many it was measured in, beside another word.
        count: how often it was measured.
    """

    word: str
    ratio: float
    low: float
    high: float
    texts: int
    count: int

    @property
    def more(self) -> bool:
        """True where it moves its texts more than their other words do."""
        return self.low > 1

    @property
    def less(self) -> bool:
        """True where it moves its texts less."""
        return self.high < 1


def reactions(texts: Iterable[AuditedText]) -> tuple[dict[str, Reaction], int]:
    """The reaction to every word that was measured in `least_values` texts or more, and the most
    texts of any word."""
    measured: dict[str, list[dict[str, list[float]]]] = defaultdict(list)
    for text in texts:
        removals: dict[str, list[float]] = defaultdict(list)
        for word in text.measured:
            removals[word.word.lower()].append(word.removal)
        if len(removals) > 1:
            for word in removals:
                measured[word].append(removals)
    listed = {}
    for word in sorted(measured):
        by_text = measured[word]
        if len(by_text) >= least_values():
            ratio = median_estimate([_ratio(word, removals) for removals in by_text])
            count = sum(len(removals[word]) for removals in by_text)
            ends = ratio.low or 0.0, ratio.high or 0.0
            listed[word] = Reaction(word, ratio.value, *ends, len(by_text), count)
    return listed, max(map(len, measured.values()), default=0)


def _ratio(word: str, removals: Mapping[str, Sequence[float]]) -> float:
    """The word's mean removal over the median removal of the text's other words."""
    removal = math.fsum(removals[word]) / len(removals[word])
    usual = median(value for other, values in removals.items() if other != word for value in values)
    return removal / usual if usual else math.inf if removal > 0 else 1.0


MEASURES = ("sensitivity", "removal", "swap")

LISTED = 8
"""Words in each list, at most."""


@dataclass(frozen=True)
class Group:
    """The words of one category: how many, and the mean of each measure; None where it was not
    measured."""

    category: str
    count: int
    sensitivity: float | None
    removal: float | None
    swap: float | None


@dataclass(frozen=True)
class Exponent:
    """The growth of one measure of one kind of word with the number of tokens: a power law, or the
    reason for none.

    Attributes:
        fit: with its interval over texts; None where `reason` says why.
        reason: why there is no fit.
        texts: of how many texts the words are.
    """

    fit: Estimate | None
    reason: str | None
    texts: int

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        fit = self.fit or Estimate(math.nan)
        numbers = {"exponent": self.fit and fit.value, "low": fit.low, "high": fit.high}
        return {**numbers, "texts": self.texts, "reason": self.reason}


@dataclass(frozen=True)
class AuditSummary:
    """The findings of an audit.

    Attributes:
        texts, words: how many were measured.
        groups: by kind, place and frequency band.
        compared: how many words were measured in enough texts (`least_values`) to be listed; about
            one in forty of them is in a list by chance.
        most_texts: the most texts that any word was measured in beside another; 0 where no text had
            two.
        overreacts: of these, the function words that move their texts more than the texts' other
            words do.
        ignores: the content words and negations that move them less.
        exponents: of each kind's measures in the number of tokens.
    """

    texts: int
    words: int
    groups: tuple[Group, ...]
    compared: int
    most_texts: int
    overreacts: tuple[Reaction, ...]
    ignores: tuple[Reaction, ...]
    exponents: dict[str, dict[str, Exponent]]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""

        def finite(reaction: Reaction) -> dict[str, Any]:
            """JSON has no infinite number."""
            return {
                key: None if value == math.inf else value for key, value in asdict(reaction).items()
            }

        exponents = {
            kind: {name: exponent.to_dict() for name, exponent in measures.items()}
            for kind, measures in self.exponents.items()
        }
        return {
            "texts": self.texts,
            "words": self.words,
            "groups": [asdict(group) for group in self.groups],
            "compared": self.compared,
            "overreacts": [finite(word) for word in self.overreacts],
            "ignores": [finite(word) for word in self.ignores],
            "exponents": exponents,
        }


@dataclass(frozen=True)
class _SortedWord:
    """A measured word with its categories and its text."""

    measured: AuditedWord
    text: int
    tokens: int
    kind: str
    place: str
    band: str


def summarise_audit(texts: Iterable[AuditedText], counts: Counter[str]) -> AuditSummary:
    """The summary of the texts that were measured.

    Args:
        texts: of one audit.
        counts: how often each word occurs in the data.

    Raises:
        InputError: there is no text.
    """
    texts = list(texts)
    if not texts:
        raise InputError(
            "no text of the dataset could be measured; give texts of two words or more"
        )
    bands = frequency_bands(counts)
    words = [
        _SortedWord(
            word,
            at,
            text.tokens,
            kind_of(word.word),
            place_of(word.place),
            bands.get(word.word.lower(), "rare"),
        )
        for at, text in enumerate(texts)
        for word in text.measured
    ]
    groups = []
    for name in ("kind", "place", "band"):
        for value in sorted({getattr(word, name) for word in words}):
            members = [word.measured for word in words if getattr(word, name) == value]
            means = (_mean([getattr(word, measure) for word in members]) for measure in MEASURES)
            groups.append(Group(f"{name}: {value}", len(members), *means))
    compared, most_texts = reactions(texts)
    more = [
        word for word in compared.values() if word.more and kind_of(word.word) == "function word"
    ]
    less = [
        word
        for word in compared.values()
        if word.less and kind_of(word.word) in ("content word", "negation")
    ]
    kinds = sorted({word.kind for word in words})
    return AuditSummary(
        texts=len(texts),
        words=len(words),
        groups=tuple(groups),
        compared=len(compared),
        most_texts=most_texts,
        overreacts=tuple(sorted(more, key=lambda word: -word.low)[:LISTED]),
        ignores=tuple(sorted(less, key=lambda word: word.high)[:LISTED]),
        exponents={
            kind: _exponents([word for word in words if word.kind == kind]) for kind in kinds
        },
    )


def _exponents(words: Sequence[_SortedWord]) -> dict[str, Exponent]:
    """The exponent of each measure that these words have."""
    exponents = {}
    for name in MEASURES:
        known = [
            (word, value) for word in words if not math.isnan(value := getattr(word.measured, name))
        ]
        if known:
            sizes, texts = [word.tokens for word, _ in known], [word.text for word, _ in known]
            values = [value for _, value in known]
            reason, zeros = unfit_for_power_law(sizes), values.count(0)
            if reason is None and zeros:
                reason = f"{zeros} of its {len(values)} values are 0, and a power law has none"
            fit = None if reason else power_law(sizes, values, texts)
            exponents[name] = Exponent(fit and fit[0], reason, len(set(texts)))
    return exponents


def _mean(values: Sequence[float]) -> float | None:
    """The mean of the numbers among the values; None where there is none."""
    numbers = [value for value in values if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers) if numbers else None


@dataclass(frozen=True)
class AuditChange:
    """The change of one measure of one kind of word from an earlier audit to a later one.

    Attributes:
        kind: of the words.
        measure: sensitivity, removal or swap.
        before, after: means over texts of the texts' own means.
        difference: after - before, with its interval over texts.
        texts: how many have words of the kind that both audits measured.
    """

    kind: str
    measure: str
    before: float
    after: float
    difference: Estimate
    texts: int

    @property
    def certain(self) -> bool:
        """True where the interval leaves out 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)


def audit_changes(pairs: Sequence[tuple[AuditedText, AuditedText]]) -> list[AuditChange]:
    """The changes of every measure and kind of word that both audits have, over the same words of
    the same texts."""
    changes = []
    for kind in KINDS:
        for measure in MEASURES:
            means = [
                means for pair in pairs if (means := _both_means(*pair, kind, measure)) is not None
            ]
            if means:
                before, after = (math.fsum(side) / len(means) for side in zip(*means, strict=True))
                difference = mean_estimate([late - early for early, late in means], over="texts")
                changes.append(AuditChange(kind, measure, before, after, difference, len(means)))
    return changes


def _both_means(
    before: AuditedText, after: AuditedText, kind: str, measure: str
) -> tuple[float, float] | None:
    """The means over the words of the kind that stand at the same place in both; None where there
    is none."""
    earlier = {
        (word.word, round(word.place, 6)): getattr(word, measure) for word in before.measured
    }
    later = {(word.word, round(word.place, 6)): getattr(word, measure) for word in after.measured}
    both = [
        (earlier[name], value)
        for name, value in later.items()
        if kind_of(name[0]) == kind and not math.isnan(earlier.get(name, math.nan) + value)
    ]
    if not both:
        return None
    first, second = (math.fsum(side) / len(both) for side in zip(*both, strict=True))
    return first, second
