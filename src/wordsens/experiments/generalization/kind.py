"""The kind of cell that fits texts and changes one word of a further one."""

from wordsens.experiments.generalization.cell import describe_generalization, measure_generalization
from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.spec import GeneralizationCell
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    name="generalization",
    folder="generalization-records",
    cell_type=GeneralizationCell,
    record_type=GeneralizationRecord,
    measure=measure_generalization,
    described=describe_generalization,
    sharing=GeneralizationCell.of_fit,
    most_together=100,  # a fit of 1,300 texts takes as long as a hundred cells
)
