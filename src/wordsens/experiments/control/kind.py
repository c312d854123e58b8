"""The kind of cell that trains under control."""

from wordsens.experiments.control.cell import describe_control, measure_control
from wordsens.experiments.control.record import ControlRecord
from wordsens.experiments.control.spec import ControlCell
from wordsens.experiments.control.summary import summarise_control
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    name="control",
    folder="control-records",
    cell_type=ControlCell,
    record_type=ControlRecord,
    measure=measure_control,
    described=describe_control,
    summarise=summarise_control,
)
