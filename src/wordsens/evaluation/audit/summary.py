"""From audited texts to their summary: the mean effect of every kind of word and place; and changes
since an earlier audit."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsens.display.numbers import Estimate
from wordsens.errors import InputError
from wordsens.evaluation.audit.text import AuditedText
from wordsens.intervals import mean_estimate
from wordsens.text.english import KINDS, kind_of, place_of

MEASURES = ("sensitivity", "removal", "swap")


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
class AuditSummary:
    """What an audit measured.

    Attributes:
        texts, words: how many were measured.
        groups: by kind of word and by place.
    """

    texts: int
    words: int
    groups: tuple[Group, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return asdict(self)


def summarise_audit(texts: Iterable[AuditedText]) -> AuditSummary:
    """The summary of the texts that were measured.

    Raises:
        InputError: there is no text.
    """
    texts = list(texts)
    if not texts:
        raise InputError(
            "no text of the dataset could be measured; give texts of two words or more"
        )
    words = [word for text in texts for word in text.measured]
    categories = {
        "kind": [kind_of(word.word) for word in words],
        "place": [place_of(word.place) for word in words],
    }
    groups = []
    for name, values in categories.items():
        for value in sorted(set(values)):
            members = [word for word, own in zip(words, values, strict=True) if own == value]
            means = (_mean([getattr(word, measure) for word in members]) for measure in MEASURES)
            groups.append(Group(f"{name}: {value}", len(members), *means))
    return AuditSummary(len(texts), len(words), tuple(groups))


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
