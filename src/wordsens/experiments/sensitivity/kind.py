"""The kind of cell that measures one text under one map."""

from wordsens.experiments.kinds import CellKind
from wordsens.experiments.sensitivity.cell import attempt_cell, failed_cell
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell

KIND = CellKind("sensitivity", "records", SensitivityCell, SensitivityRecord, attempt_cell, failed_cell)
