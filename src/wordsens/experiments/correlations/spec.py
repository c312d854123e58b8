"""The typed spec of one measurement on a text whose words are correlated."""

from typing import ClassVar

from wordsens.experiments.sensitivity.spec import SensitivityCell


class CorrelationCell(SensitivityCell):
    """A sensitivity cell whose record is kept with others of its experiment."""

    KIND: ClassVar[str | None] = "correlations"
    SCHEMA: ClassVar[int] = 1
