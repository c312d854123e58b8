"""The kinds of cell that a sweep can have: where each keeps its spec, its record, and what measures it."""

import importlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.record import Record


@dataclass(frozen=True)
class CellKind:
    """A kind of cell. Its modules are loaded when they are needed: a rehearsal needs no torch.

    Attributes:
        name: as specs write it.
        folder: of the records, in the folder of a sweep.
        home: the module of the spec; `cell` is the model in it, with `draw`, `identity()` and `content_hash()`.
        cell: see `home`.
        record_home, record: the module of the records and their dataclass, a `Record`.
        attempt_home: the module of `attempt` and `failed`.
        attempt: function of (cell, keep=) that gives a record, failed or done.
        failed: function of (cell, error) that gives the record of a cell that could not be attempted.
        sharing: name of the cell's method whose equal results mean that cells share costly work (a fit), so that one
            worker should get them together; None where they share nothing.
        witnesses: whether its cells have witnesses to keep.
    """

    name: str
    folder: str
    home: str
    cell: str
    record_home: str
    record: str
    attempt_home: str
    attempt: str
    failed: str
    sharing: str | None = None
    witnesses: bool = True

    @property
    def cell_type(self) -> type[Any]:
        """The model of a cell's spec."""
        return _named(self.home, self.cell)

    @property
    def record_type(self) -> type[Record]:
        """The dataclass of its records."""
        return _named(self.record_home, self.record)

    @property
    def attempt_with(self) -> Callable[..., Record]:
        """What measures a cell."""
        return _named(self.attempt_home, self.attempt)

    @property
    def failed_with(self) -> Callable[..., Record]:
        """What makes the record of a cell that could not be measured."""
        return _named(self.attempt_home, self.failed)

    def shared_by(self, cell: Any) -> Hashable:
        """Equal for cells that share costly work; None for a cell that shares none."""
        return None if self.sharing is None else getattr(cell, self.sharing)()


_ROWS = (
    CellKind(
        name="sensitivity",
        folder="records",
        home="spec",
        cell="SensitivityCell",
        record_home="record",
        record="SensitivityRecord",
        attempt_home="cell",
        attempt="attempt_cell",
        failed="failed_cell",
    ),
    CellKind(
        name="generalization",
        folder="generalization-records",
        home="generalization_spec",
        cell="GeneralizationCell",
        record_home="generalization_record",
        record="GeneralizationRecord",
        attempt_home="generalization_cell",
        attempt="attempt_generalization",
        failed="failed_generalization",
        sharing="of_fit",
    ),
    CellKind(
        name="audit",
        folder="audit-records",
        home="audit_spec",
        cell="AuditCell",
        record_home="audit_record",
        record="AuditRecord",
        attempt_home="audit_cell",
        attempt="attempt_audit",
        failed="failed_audit",
        witnesses=False,
    ),
    CellKind(
        name="rehearsal",
        folder="rehearsal-records",
        home="rehearsal",
        cell="RehearsalCell",
        record_home="rehearsal",
        record="RehearsalRecord",
        attempt_home="rehearsal",
        attempt="attempt_rehearsal",
        failed="failed_rehearsal",
        witnesses=False,
    ),
)
KINDS = {row.name: row for row in _ROWS}
"""A further kind is a row here; its modules need nothing from this one."""


def kind_named(name: str) -> CellKind:
    """The kind of that name.

    >>> kind_named("rehearsal").cell_type.__name__
    'RehearsalCell'
    """
    return KINDS[require_choice("kind", name, KINDS)]


def kind_of_records(record: type[Record]) -> CellKind:
    """The kind whose records are of that type."""
    for kind in KINDS.values():
        if kind.record == record.__name__:
            return kind
    raise InputError(f"`record` (={record.__name__}) is no kind of cell; add a row to wordsens.experiments.cell_kind")


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"wordsens.experiments.{module}"), name)
