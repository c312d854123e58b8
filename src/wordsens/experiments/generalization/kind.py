"""The kind of cell that fits texts and changes one word of a further one."""

from wordsens.experiments.generalization.cell import attempt_generalization, failed_generalization
from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.spec import GeneralizationCell
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    "generalization",
    "generalization-records",
    GeneralizationCell,
    GeneralizationRecord,
    attempt_generalization,
    failed_generalization,
    sharing=GeneralizationCell.of_fit,
)
