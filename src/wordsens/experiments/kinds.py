"""The kinds of cell that a sweep can have: one folder each, whose module `kind` holds a `KIND`."""

import importlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.store.record import Record

KIND_NAMES = ("sensitivity", "generalization", "audit", "dry-run")
"""A further kind is a folder of its name (`-` written `_`) in `wordsens.experiments`, and its name here."""


@dataclass(frozen=True)
class CellKind:
    """A kind of cell.

    Attributes:
        name: as specs write it.
        folder: of the records, in the folder of a sweep.
        cell_type: the model of a cell's spec, with `draw`, `identity()` and `content_hash()`.
        record_type: the dataclass of its records.
        attempt: function of (cell, keep=) that gives a record, failed or done.
        failed: function of (cell, error) that gives the record of a cell that could not be attempted.
        sharing: method of the cell whose equal results mean that cells share costly work (a fit), so that one worker
            should get them together; None where they share nothing.
        witnesses: whether its cells have witnesses to keep.
    """

    name: str
    folder: str
    cell_type: type[Any]
    record_type: type[Record]
    attempt: Callable[..., Record]
    failed: Callable[..., Record]
    sharing: Callable[[Any], Hashable] | None = None
    witnesses: bool = True

    def shared_by(self, cell: Any) -> Hashable:
        """Equal for cells that share costly work; None for a cell that shares none."""
        return None if self.sharing is None else self.sharing(cell)


def kind_named(name: str) -> CellKind:
    """The kind of that name; its folder is imported when it is first asked for.

    >>> kind_named("dry-run").cell_type.__name__
    'DryRunCell'
    """
    package = require_choice("kind", name, KIND_NAMES).replace("-", "_")
    return importlib.import_module(f"wordsens.experiments.{package}.kind").KIND


def kind_of_records(record: type[Record]) -> CellKind:
    """The kind whose records are of that type."""
    for name in KIND_NAMES:
        if (kind := kind_named(name)).record_type is record:
            return kind
    raise InputError(f"`record` (={record.__name__}) is no kind of cell; add its kind to wordsens.experiments.kinds")
