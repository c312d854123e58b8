"""Rows from files: .txt (one text a file), CSV, TSV, JSON lines and Parquet. They stream: no file is held whole."""

import codecs
import csv
import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, MissingExtraError, first_line, shown
from wordsens.files import require_file
from wordsens.text.document import Columns, Row

EXTENSIONS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_SNIFFED_BYTES = 8192
_SNIFFED_LINES = 40
_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_NAME_WORDS = 3
"""Words of a column's name, at most, that do not read as a text."""

_BATCH_ROWS = 1024


def file_rows(path: Path, columns: Columns, encoding: str) -> Iterator[Row]:
    """The rows of a file with one of EXTENSIONS."""
    match path.suffix.lower():
        case ".parquet":
            return _parquet_rows(path, columns)
        case ".csv" | ".tsv":
            return _csv_rows(path, encoding, columns, delimiter=delimiter_of(path, encoding))
        case ".txt":
            return text_file_rows(path, encoding)
        case _:
            return _json_lines_rows(path, encoding, columns)


def text_file_rows(path: Path, encoding: str, *, label: object = None, where: str | None = None) -> Iterator[Row]:
    """The whole file as one row."""
    yield Row("".join(_lines(path, encoding, newline=None)), label, where or path.name)


def _csv_rows(path: Path, encoding: str, columns: Columns, *, delimiter: str) -> Iterator[Row]:
    """The rows of a CSV file whose first line names the columns."""

    def accept(header: list[str]) -> None:
        if columns.text not in header:
            require_names(header, path)
        columns.label_in(header, f"the file {str(path)!r}")

    for number, fields in csv_records(path, encoding, delimiter=delimiter, accept=accept):
        label = columns.label_in(fields, f"the file {str(path)!r}")
        yield Row(fields[columns.text], fields[label] if label else None, f"{path.name}:{number}")


def delimiter_of(path: Path, encoding: str) -> str:
    """The sign that separates the fields of a CSV or TSV file: the one that gives all rows of its head as many fields.

    A comma, or a tab in a .tsv file, where several or none do.
    """
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    with closing(_lines(path, encoding, newline="")) as lines:
        head = list(islice(lines, _SNIFFED_LINES))
    return next((sign for sign in (usual, *_DELIMITERS) if _is_table(head, sign)), usual)


def _is_table(lines: Sequence[str], delimiter: str) -> bool:
    """True where all rows have two fields or more, and as many; the last row of a head may be cut."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return False
    rows = rows[:-1] if len(lines) == _SNIFFED_LINES else rows
    return bool(rows) and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1


def require_names(header: Sequence[str], path: Path) -> None:
    """Refuse a first line that reads as data: a number, or a whole sentence, where the name of a column should be."""
    odd = next((name for name in header if _NUMBER.fullmatch(name.strip()) or len(name.split()) > _NAME_WORDS), None)
    if odd is not None:
        raise InputError(
            f"the first line of the file {str(path)!r} holds {odd[:60]!r}, which reads as data, not as the name of a "
            "column; put a line such as text,label before it, or name the column of the texts with text_column"
        )


def csv_records(
    path: Path, encoding: str, *, delimiter: str = ",", accept: Callable[[list[str]], None] = lambda header: None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Last line's number and fields of every row; `accept` is shown the names of the columns first, and may raise."""
    csv.field_size_limit(2**31 - 1)
    with closing(_lines(path, encoding, newline="")) as lines:
        # Strict, so that an unclosed quote is an error and not one text to the end of the file.
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            _require_different(header, path)
            accept(header)
            for record in filter(None, reader):
                if len(record) != len(header):
                    raise InputError(
                        f"line {reader.line_num} of the file {str(path)!r} has {len(record)} fields, but the "
                        f"first line names {len(header)} columns; put quotes around texts with {delimiter!r}"
                    )
                yield reader.line_num, dict(zip(header, record, strict=True))
        except csv.Error as error:
            raise InputError(
                f"line {reader.line_num} of the file {str(path)!r} is not valid CSV: {error}; mend it, or save "
                "the texts as Parquet or JSON lines"
            ) from error


def _json_lines_rows(path: Path, encoding: str, columns: Columns) -> Iterator[Row]:
    """One JSON object a line; blank lines are passed over."""
    for number, record in json_lines_records(path, encoding):
        label = columns.label_in(record, f"line {number} of the file {str(path)!r}")
        yield Row(record[columns.text], record[label] if label else None, f"{path.name}:{number}")


def json_lines_records(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and content of every line that is not blank."""
    with closing(_lines(path, encoding, newline="\n")) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"line {number} of the file {str(path)!r}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where} is not valid JSON: {error}; write one object a line") from error
            if not isinstance(record, dict):
                raise InputError(f'{where} is not a JSON object; write one object a line, like {{"text": ...}}')
            yield number, record


def _parquet_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """The rows of a Parquet file, of which only the columns that are needed are read, a batch at a time."""
    pyarrow, parquet = _require_pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            _require_different(file.schema_arrow.names, path)
            label = columns.label_in(file.schema_arrow.names, f"the file {str(path)!r}")
            batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns.to_read(label))
            yield from columns.rows((batch.to_pydict() for batch in batches), label, path.name)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def parquet_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and fields of every row, all columns."""
    pyarrow, parquet = _require_pyarrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            _require_different(file.schema_arrow.names, path)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def parquet_class_names(path: Path, columns: Columns) -> list[str] | None:
    """The names of the label's numbers, where `datasets` wrote them into the file; None elsewhere."""
    pyarrow, parquet = _require_pyarrow()
    try:
        schema = parquet.read_schema(path)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    label = columns.label_in(schema.names, f"the file {str(path)!r}")
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return list(features[label]["names"])
    except (KeyError, TypeError, ValueError):
        return None


def _require_different(names: Sequence[str], path: Path) -> None:
    """Two columns of one name: a dictionary would keep the last without a word."""
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InputError(f"the file {str(path)!r} has two columns of the name {twice!r}; rename one")


def _require_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "records", "reading Parquet") from error
    return pyarrow, pyarrow.parquet


def _unreadable(path: Path, error: BaseException) -> InputError:
    return InputError(f"the file {str(path)!r} cannot be read as Parquet: {first_line(error)}; it may be damaged")


def _lines(path: Path, encoding: str, *, newline: str | None) -> Generator[str, None, None]:
    """The lines of the file, decoded; InputError when it is no text in this encoding."""
    require_file(path)
    try:
        # utf-8-sig also reads UTF-8 without a byte order mark.
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        file = path.open(encoding=codec, newline=newline)
    except (LookupError, ValueError) as error:  # ValueError of a name with a null character
        raise InputError(
            f"`encoding` (={shown(encoding)}) is not a text encoding; use e.g. 'utf-8', 'latin-1' or 'utf-16'"
        ) from error
    except OSError as error:
        raise InputError(f"the file {str(path)!r} cannot be read: {error.strerror}") from error
    with file:
        try:
            for line in file:
                if "\0" in line:
                    raise _not_text(path, encoding)
                yield line
        except UnicodeError as error:
            raise _not_text(path, encoding) from error


def _not_text(path: Path, encoding: str) -> InputError:
    with path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        reason = "it looks like UTF-16, so pass encoding='utf-16'"
    elif b"\0" in start:
        reason = "it looks binary; give a text file, or pass its encoding, e.g. encoding='utf-16'"
    else:
        reason = "pass its own encoding, e.g. encoding='latin-1' or encoding='utf-16'"
    return InputError(f"the file {str(path)!r} is not text in the encoding {encoding!r}; {reason}")
