"""The kind of cell that audits a model on one text."""

from wordsens.experiments.audit.cell import describe_audit, measure_audit
from wordsens.experiments.audit.record import AuditRecord
from wordsens.experiments.audit.spec import AuditCell
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    name="audit",
    folder="audit-records",
    cell_type=AuditCell,
    record_type=AuditRecord,
    measure=measure_audit,
    described=describe_audit,
    witnesses=False,
)
