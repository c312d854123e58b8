"""The kind of cell that compares the attention of two texts."""

from wordsens.experiments.attention.cell import describe_attention, measure_attention
from wordsens.experiments.attention.record import AttentionRecord
from wordsens.experiments.attention.spec import AttentionCell
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    name="attention",
    folder="attention-records",
    cell_type=AttentionCell,
    record_type=AttentionRecord,
    measure=measure_attention,
    described=describe_attention,
    witnesses=False,
)
