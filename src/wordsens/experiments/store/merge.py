"""Records of several folders in one."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from wordsens.experiments.store.record import Record
from wordsens.experiments.store.shard import write_whole
from wordsens.experiments.store.store import WITNESSES, RecordStore
from wordsens.experiments.store.witness import packed_witness

_OF_THE_RUN = frozenset(
    {
        "seconds",
        "fit_seconds",
        "peak_memory_mb",
        "device",
        "threads",
        "started",
        "machine",
        "process",
        "libraries",
        "wordsens_version",
        "torch_version",
    }
)
"""Columns that say how a record was made; two runs of one cell differ in them."""


@dataclass(frozen=True)
class Merged:
    """What a merge did.

    Attributes:
        added: cells that the target did not have.
        known: cells that it had.
        different: of those, the cells whose results differ; the target's were kept.
    """

    added: int
    known: int
    different: tuple[str, ...]


def result_columns(kind: type[Record]) -> list[str]:
    """The columns that a cell determines, whoever measures it."""
    return [field.name for field in fields(kind) if field.name not in _OF_THE_RUN]


def merge_into(target: RecordStore[Any], source: RecordStore[Any]) -> Merged:
    """Add the records of `source`, and their witnesses, to `target`. A finished cell of the target stays as it is."""
    import pyarrow as pa

    have, give = target.table(), source.table()
    done = {cell: at for at, (cell, status) in enumerate(_columns(have, ("cell", "status"))) if status == "done"}
    failed = {cell for cell, status in _columns(have, ("cell", "status")) if status != "done"}
    new, known, different = [], 0, []
    columns = result_columns(target.kind)
    for at, (cell, status) in enumerate(_columns(give, ("cell", "status"))):
        if cell in done:
            known += 1
            if status == "done" and not _alike(have, done[cell], give, at, columns):
                different.append(cell)
        elif status == "done" or cell not in failed:
            new.append(at)
    if new:
        target.add_table(give.take(pa.array(new)))
    _copy_witnesses(target, source, give)
    return Merged(len(new), known, tuple(different))


def _columns(table: Any, names: Sequence[str]) -> Any:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)


def _alike(one: Any, at: int, other: Any, there: int, columns: Sequence[str]) -> bool:
    return all(one.column(name)[at].equals(other.column(name)[there]) for name in columns)


def _copy_witnesses(target: RecordStore[Any], source: RecordStore[Any], table: Any) -> None:
    home = source.folder / WITNESSES
    if not home.is_dir():
        return
    for cell in table.column("cell").to_pylist():
        path = target.folder / WITNESSES / f"{cell}.safetensors"
        if (home / path.name).is_file() and not path.is_file() and (tensors := source.witness(cell)) is not None:
            path.parent.mkdir(exist_ok=True)
            content = packed_witness(cell, tensors)
            write_whole(path, lambda file, content=content: file.write(content))
