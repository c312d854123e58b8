"""The kind of cell that only takes time."""

from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord, attempt_dry_run, failed_dry_run
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    "dry-run", "dry-run-records", DryRunCell, DryRunRecord, attempt_dry_run, failed_dry_run, witnesses=False
)
