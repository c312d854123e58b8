"""Records on disk: one Parquet shard per cell, written aside and renamed, verified when read."""

import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from wordsens.errors import InputError, MissingExtraError
from wordsens.experiments.record import Record, SensitivityRecord, SomeRecord, arrow_schema, record_from_row
from wordsens.experiments.spec import SCHEMA_VERSION

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("pyarrow", "records", "a store of records") from error

SCHEMA_KEY = b"wordsens.schema"
SET_ASIDE = "set-aside"


@dataclass(frozen=True)
class SetAside:
    """A file that is not a whole shard of ours, and where it was moved."""

    path: Path
    moved_to: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path.name} {self.reason}; moved to {self.moved_to}"


class RecordStore(Generic[SomeRecord]):
    """A folder of shards. A finished cell is `HASH.parquet`, a failed one `HASH.failed.parquet`.

    A shard appears whole or not at all: it is written under another name in the same folder, flushed to disk
        and
    renamed. Two runs may share a store; a cell that both finish is written twice with the same values. A
    shard may hold
    several rows: each carries its spec, from which its hash is recomputed when it is read.

    Args:
        folder: made when it does not exist.
        kind: what its records are.
        on_set_aside: told of every file that was moved away; a torn or foreign file is never trusted and
            never deleted.

    Raises:
        InputError: when the folder is a file or cannot be made.
    """

    def __init__(
        self,
        folder: str | Path,
        kind: type[SomeRecord] = SensitivityRecord,  # pyright: ignore[reportArgumentType]
        *,
        on_set_aside: Callable[[SetAside], None] = lambda found: None,
    ):
        self.folder = Path(folder)
        self.kind = kind
        self._on_set_aside = on_set_aside
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"`out` (={str(folder)!r}) cannot be used as a folder for records ({error.strerror}); name another one"
            ) from error

    def write(self, record: SomeRecord) -> Path:
        """Add the record of one cell; a done one takes the place of an earlier failure."""
        failure = self.folder / f"{record.cell}.failed.parquet"
        path = self.folder / f"{record.cell}.parquet" if record.done else failure
        write_aside(path, [record])
        if record.done:
            failure.unlink(missing_ok=True)
        return path

    def read(self, cells: Iterable[str] | None = None) -> list[SomeRecord]:
        """The records, sorted by cell; done ones win over failures.

        Args:
            cells: the hashes wanted; None for every record of the store. Only their shards are opened, so
                that the records of other specs in the folder cost nothing and stay where they are.
        """
        wanted = None if cells is None else set(cells)
        records: dict[str, SomeRecord] = {}
        for path in sorted(self.folder.glob("*.parquet")):
            if wanted is not None and path.name.split(".")[0] not in wanted:
                continue
            for record in self._verified(path):
                if record.done or record.cell not in records:
                    records[record.cell] = record
        return [records[cell] for cell in sorted(records) if wanted is None or cell in wanted]

    def _verified(self, path: Path) -> list[SomeRecord]:
        try:
            return read_records(path, self.kind, cell=path.name.split(".")[0])
        except InputError as error:
            target = self.folder / SET_ASIDE / f"{path.name}.{secrets.token_hex(4)}"
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
            self._on_set_aside(SetAside(path, target, str(error)))
            return []


def read_records(
    path: Path,
    kind: type[SomeRecord] = SensitivityRecord,  # pyright: ignore[reportArgumentType]
    *,
    cell: str | None = None,
) -> list[SomeRecord]:
    """The records of one Parquet file, every page's checksum and every row's hash verified.

    Args:
        path: the file.
        kind: what its records are.
        cell: the only cell that the file may hold, where it is known.

    Raises:
        InputError: what is wrong with the file.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            metadata = file.schema_arrow.metadata or {}
            rows = file.read().to_pylist() if SCHEMA_KEY in metadata else []
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"is not a whole Parquet file ({' '.join(str(error).split())})") from error
    version = metadata.get(SCHEMA_KEY, b"").decode(errors="replace")
    if version != str(SCHEMA_VERSION):
        origin = f"was written with record schema {version}" if version else "was not written by wordsens"
        raise InputError(f"{origin}; this version reads record schema {SCHEMA_VERSION}")
    records = [record_from_row(row, kind) for row in rows]
    if cell is not None and [record.cell for record in records] != [cell]:
        raise InputError("does not hold the one cell that its name says")
    return records


def write_aside(path: Path, records: Iterable[Record]) -> None:
    """Write the records, of one kind, as one Parquet file that is never seen half-written."""
    records = list(records)
    schema = arrow_schema(_kind_of(records)).with_metadata({SCHEMA_KEY: str(SCHEMA_VERSION).encode()})
    table = pa.Table.from_pylist([record.to_dict() for record in records], schema=schema)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with aside.open("wb") as file:
            pq.write_table(table, file, write_page_checksum=True)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def as_table(records: Iterable[Record]) -> Any:
    """The records, of one kind, as one pyarrow table."""
    records = list(records)
    return pa.Table.from_pylist([record.to_dict() for record in records], schema=arrow_schema(_kind_of(records)))


def _kind_of(records: Sequence[Record]) -> type[Record]:
    return type(records[0]) if records else SensitivityRecord
