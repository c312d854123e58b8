"""Rows from a Parquet file, batch by batch."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, MissingExtraError
from wordsens.text.messages import first_line
from wordsens.text.rows import Columns, Row

_BATCH_ROWS = 1024


def parquet_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """The rows of the file; only the columns that are needed are read, and only a batch is held at a time."""
    pyarrow, parquet = _require_pyarrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            label = columns.label_in(schema.names, f"the file {str(path)!r}")
            wanted = [columns.text, *([label] if label else [])]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
                texts = batch.column(columns.text).to_pylist()
                labels = batch.column(label).to_pylist() if label else [None] * len(texts)
                for text, value in zip(texts, labels, strict=True):
                    number += 1
                    yield Row(text, value, f"{path.name}:{number}")
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def parquet_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and fields of every row, all columns."""
    pyarrow, parquet = _require_pyarrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def parquet_class_names(path: Path, columns: Columns) -> list[str] | None:
    """The names of the label's numbers, where `datasets` wrote them into the file; None elsewhere."""
    pyarrow, parquet = _require_pyarrow()
    try:
        schema = parquet.read_schema(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    label = columns.label_in(schema.names, f"the file {str(path)!r}")
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return list(features[label]["names"])
    except (KeyError, TypeError, ValueError):
        return None


def _require_pyarrow() -> tuple[Any, Any]:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("pyarrow", "records", "reading Parquet")
    import pyarrow
    import pyarrow.parquet

    return pyarrow, pyarrow.parquet


def _unreadable(path: Path, error: BaseException) -> InputError:
    return InputError(f"the file {str(path)!r} cannot be read as Parquet: {first_line(error)}; it may be damaged")
