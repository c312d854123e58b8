"""Rows of CSV, TSV, JSON lines and Parquet files, and plain text files. Reading streams: no table
is held whole."""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, first_line, require_extra, shown
from wordsens.files import replace_file, require_file, writing

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
TEXT_COLUMN = "text"

_DELIMITED = (".csv", ".tsv")
_SNIFFED_BYTES, _SNIFFED_LINES = 8192, 40
_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_NAME_WORDS = 3
"""Words of a column's name, at most, that do not read as a text."""

_LOOKED_AT, _TEXT_WORDS = 50, 2.0
"""Rows that are looked at, and the mean number of words from which on a column holds texts, not
names or numbers."""

_BATCH_ROWS = 1024

Row = tuple[int, dict[str, Any]]
"""Number (of the row's last line; in Parquet of the row) and fields."""

Choose = Callable[[Sequence[str], str], Sequence[str] | None]
"""From the names of the columns, and what messages call the place, to the columns that are needed;
it may raise."""


def table_rows(
    path: Path, encoding: str = "utf-8", choose: Choose = lambda names, where: None
) -> Generator[Row, None, None]:
    """The rows of a file with one of the extensions TABLES.

    `choose` is called before the first row; for JSON lines, which have no names of their own,
    before every row.

    Raises:
        InputError: a damaged file or row, two columns of one name, or what `choose` raises.
        MissingExtraError: reading Parquet needs pyarrow.
    """
    match path.suffix.lower():
        case ".parquet":
            return _parquet_rows(path, choose)
        case ".csv" | ".tsv":
            return _csv_rows(path, encoding, choose)
        case _:
            return _json_rows(path, encoding, choose)


def require_table(path: Path, name: str) -> None:
    """InputError where a file's extension is none of TABLES; `name` is the argument's."""
    if path.suffix.lower() not in TABLES:
        raise InputError(
            f"`{name}` (={str(path)!r}) has an unknown extension; use one of {', '.join(TABLES)}"
        )


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path, name: str) -> None:
    """Write rows to a file with one of the extensions TABLES, whole or not at all; a column that a
    row lacks is empty.

    Raises:
        InputError: another extension, a column that Parquet cannot hold, a file that cannot be
            written; it names the argument.
        MissingExtraError: writing Parquet needs pyarrow.
    """
    require_table(path, name)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    match path.suffix.lower():
        case ".parquet":
            content = _parquet(rows, columns, path, name)
        case ".csv" | ".tsv" as extension:
            text = io.StringIO(newline="")
            writer = csv.DictWriter(
                text, columns, restval="", delimiter="\t" if extension == ".tsv" else ","
            )
            writer.writeheader()
            writer.writerows(
                {column: _field(value) for column, value in row.items()} for row in rows
            )
            content = text.getvalue().encode("utf-8", "backslashreplace")
        case _:
            lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            content = "".join(lines).encode("utf-8", "backslashreplace")
    with writing(name, path):
        replace_file(path, content)


def _field(value: Any) -> Any:
    """A value as CSV has it: true, false, and lists and objects as JSON."""
    return (
        json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, bool | list | dict)
        else value
    )


def _parquet(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], path: Path, name: str
) -> bytes:
    require_extra("records", "writing Parquet", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    content = io.BytesIO()
    try:
        table = pyarrow.Table.from_pylist(
            [{column: row.get(column) for column in columns} for row in rows]
        )
        pyarrow.parquet.write_table(table, content)
    except (pyarrow.ArrowException, UnicodeError) as error:
        reason = f"`{name}` (={str(path)!r}) cannot be written as Parquet: {first_line(error)}"
        raise InputError(
            f"{reason}; give the values of a column one type, or write JSON lines"
        ) from error
    return content.getvalue()


def file_text(path: Path, encoding: str) -> str:
    """The whole file as one text; InputError when it is no text in this encoding."""
    return "".join(_lines(path, encoding, newline=None))


def text_column_of(source: str | PathLike[str], encoding: str = "utf-8") -> str:
    """`text` where a table has that column or none can be told; else the only one whose fields have
    several words.

    Of a folder its first table is looked at.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        path = min((entry for entry in path.iterdir() if entry.is_file()), default=path)
    if path.suffix.lower() not in TABLES or not path.is_file() or path.stat().st_size == 0:
        return TEXT_COLUMN
    with closing(table_rows(path, encoding)) as rows:
        some = [fields for _, fields in islice(rows, _LOOKED_AT)]
    names = list(dict.fromkeys(name for fields in some for name in fields))
    if TEXT_COLUMN in names:
        return TEXT_COLUMN
    if path.suffix.lower() in _DELIMITED:
        require_names(names, path)
    with_texts = [name for name in names if _are_texts([fields.get(name) for fields in some])]
    return with_texts[0] if len(with_texts) == 1 else TEXT_COLUMN


def _are_texts(fields: Iterable[Any]) -> bool:
    present = [field for field in fields if field is not None]
    if not present or not all(isinstance(field, str) for field in present):
        return False
    return sum(len(text.split()) for text in present) / len(present) >= _TEXT_WORDS


def delimiter_of(path: Path, encoding: str) -> str:
    """The sign that separates the fields of a CSV or TSV file: the one that gives all rows of its
    head as many fields.

    A comma, or a tab in a .tsv file, where several or none do.
    """
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    with closing(_lines(path, encoding, newline="")) as lines:
        head = list(islice(lines, _SNIFFED_LINES))

    def separates(sign: str) -> bool:
        try:
            rows = [row for row in csv.reader(head, delimiter=sign) if row]
        except csv.Error:
            return False
        rows = (
            rows[:-1] if len(head) == _SNIFFED_LINES else rows
        )  # the last row of a head may be cut
        return bool(rows) and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1

    return next(filter(separates, (usual, *_DELIMITERS)), usual)


def require_names(header: Iterable[str], path: Path) -> None:
    """Refuse a first line that reads as data: a number, or a whole sentence, where the name of a
    column should be."""
    odd = next(
        (
            name
            for name in header
            if _NUMBER.fullmatch(name.strip()) or len(name.split()) > _NAME_WORDS
        ),
        None,
    )
    if odd is not None:
        raise InputError(
            f"the first line of the file {str(path)!r} holds {odd[:60]!r}, which reads as data, "
            "not as the name of a "
            "column; put a line such as text,label before it, or name the column of the texts with "
            "text_column"
        )


def _csv_rows(path: Path, encoding: str, choose: Choose) -> Generator[Row, None, None]:
    """The rows of a file whose first line names the columns."""
    csv.field_size_limit(2**31 - 1)
    delimiter = delimiter_of(path, encoding)
    with closing(_lines(path, encoding, newline="")) as lines:
        # Strict, so that an unclosed quote is an error and not one text to the end of the file.
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            _require_different(header, path)
            choose(header, f"the file {str(path)!r}")
            for record in filter(None, reader):
                if len(record) != len(header):
                    raise InputError(
                        f"line {reader.line_num} of the file {str(path)!r} has {len(record)} "
                        "fields, but the "
                        f"first line names {len(header)} columns; put quotes around texts with "
                        f"{delimiter!r}"
                    )
                yield reader.line_num, dict(zip(header, record, strict=True))
        except csv.Error as error:
            raise InputError(
                f"line {reader.line_num} of the file {str(path)!r} is not valid CSV: {error}; mend "
                "it, or save "
                "the texts as Parquet or JSON lines"
            ) from error


def _json_rows(path: Path, encoding: str, choose: Choose) -> Generator[Row, None, None]:
    """One JSON object a line; blank lines are passed over."""
    with closing(_lines(path, encoding, newline="\n")) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"line {number} of the file {str(path)!r}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{where} is not valid JSON: {error}; write one object a line"
                ) from error
            if not isinstance(record, dict):
                raise InputError(
                    f'{where} is not a JSON object; write one object a line, like {{"text": ...}}'
                )
            choose(list(record), where)
            yield number, record


def _parquet_rows(path: Path, choose: Choose) -> Generator[Row, None, None]:
    """Only the columns that are needed are read, a batch at a time."""
    with _opened_parquet(path) as file:
        _require_different(file.schema_arrow.names, path)
        columns = choose(file.schema_arrow.names, f"the file {str(path)!r}")
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
        yield from enumerate((record for batch in batches for record in batch.to_pylist()), start=1)


def parquet_class_names(path: Path, label: str) -> list[str] | None:
    """The names of a column's numbers, where `datasets` wrote them into the file; None
    elsewhere."""
    with _opened_parquet(path) as file:
        metadata = file.schema_arrow.metadata or {}
    try:
        return list(json.loads(metadata[b"huggingface"])["info"]["features"][label]["names"])
    except (KeyError, TypeError, ValueError):
        return None


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    require_extra("records", "reading Parquet", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = f"{first_line(error)}; it may be damaged"
        raise InputError(f"the file {str(path)!r} cannot be read as Parquet: {reason}") from error


def _require_different(names: Sequence[str], path: Path) -> None:
    """Two columns of one name: a dictionary would keep the last without a word."""
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise InputError(
            f"the file {str(path)!r} has two columns of the name {twice!r}; rename one"
        )


def _lines(path: Path, encoding: str, *, newline: str | None) -> Generator[str, None, None]:
    """The lines of the file, decoded; InputError when it is no text in this encoding."""
    require_file(path)
    try:
        # utf-8-sig also reads UTF-8 without a byte order mark.
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        file = path.open(encoding=codec, newline=newline)
    except (LookupError, ValueError) as error:  # ValueError of a name with a null character
        raise InputError(
            f"`encoding` (={shown(encoding)}) is not a text encoding; use e.g. 'utf-8', 'latin-1' "
            "or 'utf-16'"
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
