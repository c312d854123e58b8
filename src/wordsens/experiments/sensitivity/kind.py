"""The kind of cell that measures one text under one map."""

from wordsens.experiments.kinds import CellKind
from wordsens.experiments.sensitivity.cell import describe_sensitivity, measure_sensitivity
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell

KIND = CellKind(
    name="sensitivity",
    folder="records",
    cell_type=SensitivityCell,
    record_type=SensitivityRecord,
    measure=measure_sensitivity,
    described=describe_sensitivity,
)
