"""One Parquet file of records: written aside and renamed, verified when read."""

import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, MissingExtraError, WordsensError
from wordsens.experiments.store.record import (
    DIGEST,
    SCHEMA_VERSION,
    Record,
    SomeRecord,
    arrow_schema,
    digest_of,
    record_from_row,
    require_rows,
)
from wordsens.experiments.store.spec_columns import columns_of

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("pyarrow", "records", "a store of records") from error

SCHEMA_KEY = b"wordsens.schema"
_MANY = 1000


class StoreError(WordsensError, OSError):
    """Records cannot be written: no space, no permission, a folder that went away."""


def read_shard(path: Path, kind: type[Record], *, cell: str | None = None) -> Any:
    """The pyarrow table of one Parquet file, every page's checksum and every row's hash verified.

    Args:
        path: the file.
        kind: what its records are.
        cell: the only cell that the file may hold, where it is known.

    Raises:
        InputError: what is wrong with the file.
        FileNotFoundError: it is not there.
    """
    try:
        # Given a name, pyarrow takes a folder called ~ for the user's own.
        # A shard is small: threads would cost more than they save, and a folder may have a thousand.
        whole = {"page_checksum_verification": True, "pre_buffer": False}
        with path.open("rb") as opened, pq.ParquetFile(opened, **whole) as file:
            metadata = file.schema_arrow.metadata or {}
            table = file.read(use_threads=False) if SCHEMA_KEY in metadata else None
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"is not a whole Parquet file ({' '.join(str(error).split())})") from error
    version = metadata.get(SCHEMA_KEY, b"").decode(errors="replace")
    if version != str(SCHEMA_VERSION) or table is None:
        origin = f"was written with record schema {version}" if version else "was not written by wordsens"
        raise InputError(f"{origin}; this version reads record schema {SCHEMA_VERSION}")
    made = _in_schema(table, kind)
    require_rows(row for batch in table.to_batches(_MANY) for row in batch.to_pylist())
    if cell is not None and made.column("cell").to_pylist() != [cell]:
        raise InputError("does not hold the one cell that its name says")
    if DIGEST in table.column_names and set(table.column_names) != set(made.column_names):
        made = _digested(made, [one is not None for one in made.column(DIGEST).to_pylist()])
    return made


def _digested(table: Any, wanted: Sequence[bool]) -> Any:
    """The table with a digest for each of the rows that want one."""
    rows = (row for batch in table.to_batches(_MANY) for row in batch.to_pylist())
    digests = [digest_of(row) if one else None for row, one in zip(rows, wanted, strict=True)]
    return table.set_column(
        table.column_names.index(DIGEST), table.schema.field(DIGEST), pa.array(digests, pa.string())
    )


def _in_schema(table: Any, kind: type[Record]) -> Any:
    """The table with exactly the columns of that kind."""
    schema = arrow_schema(kind)
    columns = []
    lacks_spec = "spec" in table.column_names and not set(kind.SPEC_COLUMNS) <= set(table.column_names)
    specs = [columns_of(str(spec)) for spec in table.column("spec").to_pylist()] if lacks_spec else []
    for field in schema:
        if field.name in table.column_names:
            columns.append(table.column(field.name))
        elif field.name in kind.SPEC_COLUMNS and lacks_spec:
            columns.append(pa.array([spec.get(field.name) for spec in specs], field.type))
        else:
            raise InputError(f"its table has no column {field.name!r}")
    try:
        made = pa.Table.from_arrays(columns, schema=schema)
        made.validate()
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"a column is not of its type ({' '.join(str(error).split())})") from error
    for field, column in zip(schema, made.columns, strict=True):
        if not field.nullable and column.null_count:
            raise InputError(f"its column {field.name!r} has holes")
    return made


def read_records(
    path: Path,
    kind: type[SomeRecord],
    *,
    cell: str | None = None,
) -> list[SomeRecord]:
    """The records of one Parquet file, verified as by `read_shard`."""
    try:
        return records_of(read_shard(path, kind, cell=cell), kind)
    except FileNotFoundError as error:
        raise InputError(f"is not a whole Parquet file ({error.strerror})") from error


def records_of(table: Any, kind: type[SomeRecord]) -> list[SomeRecord]:
    """The records of a verified table, in its order."""
    return [record_from_row(row, kind) for batch in table.to_batches(_MANY) for row in batch.to_pylist()]


def write_aside(path: Path, records: Iterable[Record], kind: type[Record]) -> None:
    """Write the records of that kind as one Parquet file that is never seen half-written."""
    write_table_aside(path, as_table(records, kind))


def write_table_aside(path: Path, table: Any) -> None:
    """Write a table of records as one Parquet file that is never seen half-written.

    Raises:
        StoreError: when the file cannot be written whole; nothing is left of it then.
    """
    # A shard has one row: what Parquet adds to make large tables small would only make it slower to write.
    small = table.num_rows < _MANY
    marked = table.replace_schema_metadata({SCHEMA_KEY: str(SCHEMA_VERSION).encode()})

    def write(file: Any) -> None:
        pq.write_table(
            marked,
            file,
            write_page_checksum=True,
            compression="none" if small else "zstd",
            use_dictionary=not small,
            write_statistics=not small,
        )

    write_whole(path, write)


def write_whole(path: Path, write: Any) -> None:
    """Call `write` with a file next to `path`, flush it to disk, and give it the name `path`.

    Raises:
        StoreError: when that cannot be done; nothing is left of the file then.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        try:
            with aside.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path.name} cannot be written to {path.parent} ({error.strerror or error})") from error


def as_table(records: Iterable[Record], kind: type[Record]) -> Any:
    """The records of that kind as one pyarrow table."""
    records = list(records)
    schema = arrow_schema(kind)
    columns = [pa.array([getattr(record, one.name, None) for record in records], one.type) for one in schema]
    return _digested(pa.Table.from_arrays(columns, schema=schema), [True] * len(records))
