"""Rows from plain text: .txt (one text a file), CSV, TSV and JSON lines."""

import codecs
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wordsens.errors import InputError
from wordsens.text.rows import Columns, Row

_SNIFFED_BYTES = 8192


def text_file_rows(path: Path, encoding: str, *, label: object = None, where: str | None = None) -> Iterator[Row]:
    """The whole file as one row."""
    yield Row("".join(_lines(path, encoding, newline=None)), label, where or path.name)


def csv_rows(path: Path, encoding: str, columns: Columns, *, delimiter: str = ",") -> Iterator[Row]:
    """The rows of a CSV file whose first line names the columns. Streams: the file is never held whole."""

    def accept(header: list[str]) -> None:
        columns.label_in(header, f"the file {str(path)!r}")

    for number, fields in csv_records(path, encoding, delimiter=delimiter, accept=accept):
        label = columns.label_in(fields, f"the file {str(path)!r}")
        yield Row(fields[columns.text], fields[label] if label else None, f"{path.name}:{number}")


def csv_records(
    path: Path, encoding: str, *, delimiter: str = ",", accept: Callable[[list[str]], None] = lambda header: None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and fields of every row; `accept` is shown the names of the columns first, and may raise."""
    # Strict, so that an unclosed quote is an error and not one text to the end of the file.
    reader = csv.reader(_lines(path, encoding, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        accept(header)
        for number, record in enumerate((record for record in reader if record), start=1):
            if len(record) != len(header):
                raise InputError(
                    f"line {reader.line_num} of the file {str(path)!r} has {len(record)} fields, but the "
                    f"first line names {len(header)} columns; put quotes around texts with {delimiter!r}"
                )
            yield number, dict(zip(header, record, strict=True))
    except csv.Error as error:
        raise InputError(
            f"line {reader.line_num} of the file {str(path)!r} is not valid CSV: {error}; mend it, or save "
            "the texts as Parquet or JSON lines"
        ) from error


def json_lines_rows(path: Path, encoding: str, columns: Columns) -> Iterator[Row]:
    """One JSON object a line; blank lines are passed over. Streams: the file is never held whole."""
    for number, record in json_lines_records(path, encoding):
        label = columns.label_in(record, f"line {number} of the file {str(path)!r}")
        yield Row(record[columns.text], record[label] if label else None, f"{path.name}:{number}")


def json_lines_records(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and content of every line that is not blank."""
    for number, line in enumerate(_lines(path, encoding, newline="\n"), start=1):
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


def _lines(path: Path, encoding: str, *, newline: str | None) -> Iterator[str]:
    """The lines of the file, decoded; InputError when it is no text in this encoding."""
    try:
        # utf-8-sig also reads UTF-8 without a byte order mark.
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        file = path.open(encoding=codec, newline=newline)
    except LookupError as error:
        raise InputError(
            f"`encoding` (={encoding!r}) is not a text encoding; use e.g. 'utf-8', 'latin-1' or 'utf-16'"
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
