"""Words that move their texts more, or less, than the other measured words of the same texts do."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from wordsens.audit.text import AuditedText
from wordsens.statistics.median import least_values, median_ends


@dataclass(frozen=True)
class Reaction:
    """The effect of a word's removal, compared with that of the other measured words of its text.

    Attributes:
        word: in lower case.
        ratio: the median over its texts of its mean removal / the median removal of the text's other measured words.
        low, high: an interval of that median with coverage COVERAGE at least: order statistics, for any distribution,
            the texts being independent. Infinite where the other words' removals are 0.
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
    """The reaction to every word that was measured in `least_values` texts or more, and the most texts of any word."""
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
        own = measured[word]
        if len(own) >= least_values():
            ordered, place = sorted(_ratio(word, removals) for removals in own), median_ends(len(own))
            count = sum(len(removals[word]) for removals in own)
            listed[word] = Reaction(word, median(ordered), ordered[place], ordered[-1 - place], len(ordered), count)
    return listed, max(map(len, measured.values()), default=0)


def _ratio(word: str, removals: Mapping[str, Sequence[float]]) -> float:
    """The word's mean removal over the median removal of the text's other words."""
    removal = math.fsum(removals[word]) / len(removals[word])
    usual = median(value for other, values in removals.items() if other != word for value in values)
    return removal / usual if usual else math.inf if removal > 0 else 1.0
