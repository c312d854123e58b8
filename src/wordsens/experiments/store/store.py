"""The records of a sweep on disk: a folder of verified Parquet files that survives whatever stops a run."""

import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from wordsens.errors import InputError, MissingExtraError, shown
from wordsens.experiments.store.lock import locked
from wordsens.experiments.store.record import SomeRecord, arrow_schema
from wordsens.experiments.store.shard import (
    SCHEMA_KEY,
    StoreError,
    as_table,
    read_records,
    read_shard,
    records_of,
    write_aside,
    write_table_aside,
    write_whole,
)
from wordsens.experiments.store.witness import read_witness
from wordsens.files import named_path

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError("pyarrow", "records", "a store of records") from error

SET_ASIDE = "set-aside"
WITNESSES = "witnesses"
COMPACT_AT = 1000
"""So many files of one record each are brought together into one."""

_OLD_SECONDS = 24 * 3600.0
_TRIES = 3
"""A file that is listed and gone so many times was not taken away by a run: a link to nothing, for one."""

_ONE = re.compile(r"([0-9a-f]{32})(\.failed)?\.parquet")
_MANY = re.compile(r"many-[0-9a-f]{16}\.parquet")


@dataclass(frozen=True)
class SetAside:
    """A file that is not a whole shard of ours, and where it was moved; None: it was left where it is."""

    path: Path
    moved_to: Path | None
    reason: str

    def __str__(self) -> str:
        went = f"moved to {self.moved_to}" if self.moved_to else "left where it is, not read"
        return f"{self.path.name} {self.reason}; {went}"


class RecordStore(Generic[SomeRecord]):
    """A folder of shards. A finished cell is `HASH.parquet`, a failed one `HASH.failed.parquet`; when there are many
    they are brought together in files `many-*.parquet`.

    A shard appears whole or not at all: it is written under another name in the same folder, flushed to disk and
    renamed. A cell that two runs finish is written twice with the same values, and read once. Every row carries its
    spec and a digest of all that it says; both are recomputed when it is read.

    Args:
        folder: made when it does not exist.
        kind: what its records are.
        on_set_aside: told of every file that cannot be trusted; it is moved to `set-aside`, never deleted.
        read_only: nothing is made, moved or written; what cannot be trusted is told and passed over.

    Raises:
        InputError: when the folder is a file or cannot be made.
    """

    def __init__(
        self,
        folder: str | Path,
        kind: type[SomeRecord],
        *,
        on_set_aside: Callable[[SetAside], None] = lambda found: None,
        read_only: bool = False,
    ):
        self.folder = named_path("out", folder, home=False)
        self.kind = kind
        within = [path for path in sorted(self.folder.glob("*records")) if path.is_dir()]
        if within and not any(self.folder.glob("*.parquet")):
            raise InputError(
                f"`folder` (={shown(str(folder))}) is that of a run, whose records lie in folders of their own; give "
                f"{str(within[0])!r}"
            )
        self._on_set_aside = on_set_aside
        self._read_only = read_only
        self._loose = 0
        if read_only:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"`out` (={str(folder)!r}) cannot be used as a folder for records ({error.strerror}); name another one"
            ) from error

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Keep other runs away inside the block, and clear away what a killed run left half-written.

        Gives False where the file system has no locks; see `store_lock.locked`.
        """
        try:
            with locked(self.folder) as alone:
                self._sweep_up(older=0.0 if alone else _OLD_SECONDS)
                self._loose = len(self._loose_files())
                yield alone
        except PermissionError as error:
            raise StoreError(f"{self.folder} cannot be written to ({error.strerror})") from error

    def write(self, record: SomeRecord, witness: bytes | None = None) -> Path:
        """Add the record of one cell; a done one takes the place of an earlier failure.

        Args:
            record: of the cell.
            witness: the content of its witness file, written first: a done record with a witness has it on disk.

        Raises:
            StoreError: when the disk is full, for instance; nothing half-written is left.
        """
        if witness is not None:
            home = self.folder / WITNESSES
            home.mkdir(exist_ok=True)
            write_whole(home / f"{record.cell}.safetensors", lambda file: file.write(witness))
        failure = self.folder / f"{record.cell}.failed.parquet"
        path = self.folder / f"{record.cell}.parquet" if record.done else failure
        write_aside(path, [record], self.kind)
        if record.done:
            failure.unlink(missing_ok=True)
        self._loose += 1
        if self._loose > COMPACT_AT:
            self.compact()
        return path

    def compact(self) -> int:
        """Bring the files of one record each together into one file; how many there were.

        Whenever it is stopped, every record is in one of the files, or in both, which reads as one.
        """
        paths = self._loose_files()
        self._loose = 0
        if len(paths) < 2:
            return 0
        found = []
        for path in paths:
            # Where there are no locks, another run may be at the same files.
            with suppress(FileNotFoundError):
                if (table := self._verified(path)) is not None:
                    found.append((path, table))
        if found:
            table = _one_a_cell(pa.concat_tables([table for _, table in found]), None)
            write_table_aside(self.folder / f"many-{secrets.token_hex(8)}.parquet", table)
            for path, _ in found:
                path.unlink(missing_ok=True)
        return len(found)

    def add_table(self, table: Any) -> None:
        """Add a verified table of records as one file."""
        write_table_aside(self.folder / f"many-{secrets.token_hex(8)}.parquet", table)

    def read(self, cells: Iterable[str] | None = None) -> list[SomeRecord]:
        """The records, sorted by cell; done ones win over failures. Args as for `table`."""
        return records_of(self.table(cells), self.kind)

    def table(self, cells: Iterable[str] | None = None) -> Any:
        """The records as a pyarrow table, sorted by cell, one row a cell; done ones win over failures.

        Args:
            cells: the hashes wanted; None for every record of the store. Of files of one record only theirs are
                opened, so that the records of other specs in the folder cost nothing and stay where they are.
        """
        wanted = None if cells is None else set(cells)
        tables: dict[Path, Any] = {}
        missed: Counter[Path] = Counter()
        while True:
            # A run that brings files together takes some away while we read, and their records lie in a new one.
            before = missed.total()
            for path in self._files(wanted):
                if path not in tables:
                    try:
                        tables[path] = self._verified(path)
                    except FileNotFoundError as error:
                        missed[path] += 1
                        if missed[path] == _TRIES:
                            tables[path] = None
                            self._set_aside(path, f"is listed but cannot be opened ({error.strerror})")
            if missed.total() == before:
                break
        found = [table for table in tables.values() if table is not None]
        if not found:
            return arrow_schema(self.kind).empty_table()
        return _one_a_cell(pa.concat_tables(found), wanted)

    def to_pandas(self, cells: Iterable[str] | None = None) -> Any:
        """The records as a pandas DataFrame, sorted by cell. Args as for `table`."""
        return self.table(cells).to_pandas()

    def witness(self, cell: str) -> dict[str, Any] | None:
        """The verified tensors of a cell's witness; None where there is none, or one that cannot be trusted."""
        path = self.folder / WITNESSES / f"{cell}.safetensors"
        try:
            return read_witness(path, cell)
        except FileNotFoundError:
            return None
        except InputError as error:
            self._set_aside(path, str(error))
            return None

    def _files(self, wanted: set[str] | None) -> list[Path]:
        paths = sorted(path for path in self.folder.glob("*.parquet") if not path.name.startswith("."))
        if wanted is None:
            return paths
        return [path for path in paths if _MANY.fullmatch(path.name) or path.name.split(".")[0] in wanted]

    def _loose_files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.parquet") if _ONE.fullmatch(path.name))

    def _verified(self, path: Path) -> Any:
        """The table of a file; None, and the file set aside, where it cannot be trusted."""
        try:
            cell = None if _MANY.fullmatch(path.name) else path.name.split(".")[0]
            return read_shard(path, self.kind, cell=cell)
        except InputError as error:
            self._set_aside(path, str(error))
            return None

    def _set_aside(self, path: Path, reason: str) -> None:
        target = None
        if not self._read_only:
            target = self.folder / SET_ASIDE / f"{path.name}.{secrets.token_hex(4)}"
            try:
                target.parent.mkdir(exist_ok=True)
                path.replace(target)
            except FileNotFoundError:  # another reader was faster
                return
            except OSError as error:
                raise StoreError(f"{path.name} {reason}, and cannot be set aside ({error.strerror})") from error
        self._on_set_aside(SetAside(path, target, reason))

    def _sweep_up(self, *, older: float) -> None:
        for path in [*self.folder.glob(".*.tmp"), *self.folder.glob(f"{WITNESSES}/.*.tmp")]:
            try:
                if time.time() - path.stat().st_mtime >= older:
                    path.unlink(missing_ok=True)
            except OSError:
                continue


def _one_a_cell(table: Any, wanted: set[str] | None) -> Any:
    """The rows sorted by cell, one each, a done one where there is one."""
    rows: dict[str, int] = {}
    statuses = table.column("status").to_pylist()
    for row, cell in enumerate(table.column("cell").to_pylist()):
        if (wanted is None or cell in wanted) and (cell not in rows or statuses[rows[cell]] != "done"):
            rows[cell] = row
    return table.take([rows[cell] for cell in sorted(rows)]) if rows else table.slice(0, 0)


__all__ = [
    "SCHEMA_KEY",
    "RecordStore",
    "SetAside",
    "StoreError",
    "as_table",
    "read_records",
    "write_aside",
]
