"""Words that move their texts more, or less, than the other measured words of the same texts do."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from wordsens.audit.text import AuditedText

COVERAGE = 0.95


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


def least_texts() -> int:
    """The fewest texts whose smallest and largest ratio enclose the median with the coverage: 1 - 2^(1 - m) >= it.

    >>> least_texts()
    6
    """
    return math.ceil(1 - math.log2(1 - COVERAGE))


def reactions(texts: Iterable[AuditedText]) -> tuple[dict[str, Reaction], int]:
    """The reaction to every word that was measured in `least_texts` texts or more, and the most texts of any word."""
    ratios: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for text in texts:
        removals: dict[str, list[float]] = defaultdict(list)
        for word in text.measured:
            removals[word.word.lower()].append(word.removal)
        for word, values in removals.items():
            others = [value for other, values in removals.items() if other != word for value in values]
            if others:
                removal, usual = math.fsum(values) / len(values), median(others)
                ratios[word].append(removal / usual if usual else math.inf if removal > 0 else 1.0)
                counts[word] += len(values)
    listed = {}
    for word in sorted(ratios):
        ordered, place = sorted(ratios[word]), _place(len(ratios[word]))
        if len(ordered) >= least_texts():
            ends = ordered[place], ordered[-1 - place]
            listed[word] = Reaction(word, median(ordered), *ends, len(ordered), counts[word])
    return listed, max(map(len, ratios.values()), default=0)


def _place(size: int) -> int:
    """The largest k such that the (k + 1)-th smallest and largest of `size` values enclose their median with the
    coverage: 2 P(Binomial(size, 1/2) <= k) <= 1 - coverage."""
    place, below = -1, 1
    while 2 * below <= (1 - COVERAGE) * 2**size:
        place += 1
        below += math.comb(size, place + 1)
    return place
