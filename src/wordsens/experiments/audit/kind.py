"""The kind of cell that audits a model on one text."""

from wordsens.experiments.audit.cell import attempt_audit, failed_audit
from wordsens.experiments.audit.record import AuditRecord
from wordsens.experiments.audit.spec import AuditCell
from wordsens.experiments.kinds import CellKind

KIND = CellKind("audit", "audit-records", AuditCell, AuditRecord, attempt_audit, failed_audit, witnesses=False)
