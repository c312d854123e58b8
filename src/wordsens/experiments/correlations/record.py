"""The record of one measurement on a text whose words are correlated."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.sensitivity.record import SensitivityRecord


@dataclass(frozen=True, kw_only=True)
class CorrelationRecord(SensitivityRecord):
    """A sensitivity; `cosine` is what it is drawn against.

    Attributes:
        distinct: of a text of repeated words, how many of its words are different.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (*SensitivityRecord.SPEC_COLUMNS, "distinct")

    distinct: int | None = None
