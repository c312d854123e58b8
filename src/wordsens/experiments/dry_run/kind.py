"""The kind of cell that only takes time."""

from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord, describe_dry_run, measure_dry_run
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    name="dry-run",
    folder="dry-run-records",
    cell_type=DryRunCell,
    record_type=DryRunRecord,
    measure=measure_dry_run,
    described=describe_dry_run,
    witnesses=False,
)
