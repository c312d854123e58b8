"""The kind of cell that measures a text whose words are correlated."""

from functools import partial
from typing import ClassVar

from wordsens.experiments.correlations.record import CorrelationRecord
from wordsens.experiments.correlations.summary import summarise_correlations
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.sensitivity.cell import describe_sensitivity, measure_sensitivity
from wordsens.experiments.sensitivity.spec import SensitivityCell


class CorrelationCell(SensitivityCell):
    """A sensitivity cell whose record is kept with others of its experiment."""

    KIND: ClassVar[str | None] = "correlations"
    SCHEMA: ClassVar[int] = 1


KIND = CellKind(
    name="correlations",
    folder="correlations-records",
    cell_type=CorrelationCell,
    record_type=CorrelationRecord,
    # The bounds would take as long as the searches, and correlated words leave them wide.
    measure=partial(measure_sensitivity, certificate=False),
    described=describe_sensitivity,
    summarise=summarise_correlations,
)
