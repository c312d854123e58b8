"""Two audits of the same texts: what changed, with intervals over texts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.evaluation.audit.text import AuditedText, AuditedWord
from wordsens.statistics.mean import Mean, mean_interval
from wordsens.text.english import KINDS, kind_of

MEASURES = ("sensitivity", "removal", "swap")


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
    difference: Mean
    texts: int

    @property
    def certain(self) -> bool:
        """True where the interval leaves out 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)


def audit_changes(pairs: Sequence[tuple[AuditedText, AuditedText]]) -> list[AuditChange]:
    """The changes of every measure and kind of word that both audits have, over the same words of the same texts."""
    result = []
    for kind in KINDS:
        for measure in MEASURES:
            means = [means for pair in pairs if (means := _means(*pair, kind, measure)) is not None]
            if means:
                before, after = ([own[side] for own in means] for side in (0, 1))
                change = mean_interval([late - early for early, late in means])
                result.append(
                    AuditChange(
                        kind, measure, math.fsum(before) / len(means), math.fsum(after) / len(means), change, len(means)
                    )
                )
    return result


def _means(before: AuditedText, after: AuditedText, kind: str, measure: str) -> tuple[float, float] | None:
    """The means over the words of the kind that stand at the same place in both; None where there is none."""
    earlier = {_name(word): getattr(word, measure) for word in before.measured}
    both = [
        (earlier[_name(word)], getattr(word, measure))
        for word in after.measured
        if kind_of(word.word) == kind and _name(word) in earlier
    ]
    both = [values for values in both if not any(map(math.isnan, values))]
    if not both:
        return None
    return math.fsum(one for one, _ in both) / len(both), math.fsum(other for _, other in both) / len(both)


def _name(word: AuditedWord) -> tuple[str, float]:
    return word.word, round(word.place, 6)
