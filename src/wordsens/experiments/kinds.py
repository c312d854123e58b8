"""The kinds of cell that a sweep can have: one folder each, whose module `cell` holds a `KIND`."""

import importlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.run.provenance import Watch, error_line, provenance
from wordsens.experiments.store.record import Record, hash_identity
from wordsens.experiments.store.spec_columns import columns_of
from wordsens.experiments.summary import Summary

KIND_NAMES = (
    "sensitivity", "generalization", "attention", "departures", "correlations", "several-words", "similarity",
    "control", "audit", "dry-run",
)  # fmt: skip
"""A further kind is a folder of its name (`-` written `_`) in `wordsens.experiments`, and its name here."""

MOST_TOGETHER = 16
"""Of the cells that share costly work, so many go to a worker at once, as a rule: what it loses when it dies."""

Keep = Callable[[Mapping[str, Any]], None]
"""Called with the tensors from which a finished cell's value can be computed again."""


@dataclass(frozen=True, kw_only=True)
class CellKind:
    """A kind of cell: its spec, its record, and the measurement that leads from one to the other.

    Attributes:
        name: as specs write it.
        folder: of the records, in the folder of a sweep.
        cell_type: the model of a cell's spec, with `identity()` and `content_hash()`.
        record_type: the dataclass of its records. Columns about the run (`run.provenance`) and its SPEC_COLUMNS are
            filled in here.
        measure: function of (cell, keep) that gives the columns of a finished cell; `keep`, where it is not None, wants
            the witnesses.
        described: function of a cell that gives the columns which it alone decides; a failed cell has no others.
        sharing: method of the cell whose equal results mean that cells share costly work (a fit), so that one worker
            should get them together; None where they share nothing.
        most_together: how many of those at most: what a lost worker loses.
        summarise: function of the finished records that gives their table and sentences, where one is enough for a
            terminal and a report; None where they have their own.
        witnesses: whether its cells have witnesses to keep.
    """

    name: str
    folder: str
    cell_type: type[Any]
    record_type: type[Record]
    measure: Callable[[Any, Keep | None], Mapping[str, Any]]
    described: Callable[[Any], Mapping[str, Any]]
    sharing: Callable[[Any], Hashable] | None = None
    most_together: int = MOST_TOGETHER
    summarise: Callable[[Sequence[Any]], Summary] | None = None
    witnesses: bool = True

    def run(self, cell: Any, *, keep: Keep | None = None) -> Any:
        """The record of the cell, with status "done"; an error is raised. It depends on the cell alone."""
        watch = Watch()
        return self.record(cell, watch, {"status": "done", **self.measure(cell, keep)})

    def attempt(self, cell: Any, *, keep: Keep | None = None) -> Any:
        """The record of the cell; an error becomes a record with status "failed" and the error in one line."""
        watch = Watch()
        try:
            return self.record(cell, watch, {"status": "done", **self.measure(cell, keep)})
        except Exception as error:
            return self.failed(cell, error_line(error), watch=watch)

    def failed(self, cell: Any, error: str, *, watch: Watch | None = None) -> Any:
        """The record of a cell that could not be measured, for the reason that the error gives."""
        return self.record(cell, watch or Watch(), {"status": "failed", "error": error})

    def shared_by(self, cell: Any) -> Hashable:
        """Equal for cells that share costly work; None for a cell that shares none."""
        return None if self.sharing is None else self.sharing(cell)

    def record(self, cell: Any, watch: Watch, columns: Mapping[str, Any]) -> Any:
        """The record of the cell: these columns, those of its spec, and how it was made."""
        identity = cell.identity()
        asked = columns_of(identity)
        names = {field.name for field in fields(self.record_type)}
        values = {
            "cell": hash_identity(identity),
            "spec": identity,
            **provenance(watch, names, device=cell.device),
            **{name: asked.get(name) for name in self.record_type.SPEC_COLUMNS},
            **self.described(cell),
            **columns,
        }
        return self.record_type(**values)


def kind_named(name: str) -> CellKind:
    """The kind of that name; its folder is imported when it is first asked for.

    >>> kind_named("dry-run").cell_type.__name__
    'DryRunCell'
    """
    package = require_choice("kind", name, KIND_NAMES).replace("-", "_")
    return importlib.import_module(f"wordsens.experiments.{package}.cell").KIND


def kind_of_records(record: type[Record]) -> CellKind:
    """The kind whose records are of that type."""
    for name in KIND_NAMES:
        if (kind := kind_named(name)).record_type is record:
            return kind
    raise InputError(f"`record` (={record.__name__}) is no kind of cell; add its kind to wordsens.experiments.kinds")
