"""Rows of CSV, TSV, JSON and Parquet files, and plain text files. Reading streams: no table is held
whole, except a JSON array."""

import codecs
import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, first_line, require_extra, shown
from wordsens.files import replace_file, require_file, writing

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
TEXT_COLUMN = "text"

_DELIMITED = (".csv", ".tsv")
_SNIFFED_BYTES, _SNIFFED_LINES = 8192, 40
_DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w\r\n"])"?\s*', re.IGNORECASE)
"""The first line by which a file tells Excel what separates its fields."""

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_NAME_WORDS = 3
"""Words of a column's name, at most, that do not read as a text."""

_LOOKED_AT, _TEXT_WORDS = 50, 2.0
"""Rows that are looked at, and the mean number of words from which on a column holds texts, not
names or numbers."""

_BATCH_ROWS = 1024

Row = tuple[int, dict[str, Any]]
"""Number (of the row's last line; in Parquet and in a JSON array of the row) and fields."""

Choose = Callable[[Sequence[str], str], Sequence[str] | None]
"""From the names of the columns, and what messages call the place, to the columns that are needed;
it may raise."""


def table_rows(
    path: Path, encoding: str = "utf-8", choose: Choose = lambda names, where: None
) -> Generator[Row, None, None]:
    """The rows of a file with one of the extensions TABLES, without rows that are empty altogether.

    `choose` is called before the first row; for JSON, which has no names of its own, before every
    row.

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


def column_named(name: str, names: Iterable[str]) -> str | None:
    """The column of that name: exactly, else the only one that differs in case or blanks around it.

    >>> column_named("text", [" Text ", "label"]), column_named("text", ["TEXT", "text"])
    (' Text ', 'text')
    """
    names = list(names)
    if name in names:
        return name
    alike = [each for each in names if _plain(each) == _plain(name)]
    return alike[0] if len(alike) == 1 else None


def require_column(name: str, names: Iterable[str], where: str, remedy: str) -> str:
    """The column of that name as `column_named` finds it; InputError with the columns that there
    are."""
    column = column_named(name, names)
    if column is None:
        columns = ", ".join(map(repr, names)) or "none"
        raise InputError(f"{where} has no column {name!r}; its columns are {columns}; {remedy}")
    return column


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()


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
        case ".json":
            content = json.dumps(list(rows), ensure_ascii=False, indent=1, default=str).encode()
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
    if column_named(TEXT_COLUMN, names) is not None:
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
    """The sign that separates the fields of a CSV or TSV file: the one that its line `sep=` names,
    else the one that gives all rows of its head as many fields.

    A comma, or a tab in a .tsv file, where several do; where none does, the most frequent one of
    the first line.
    """
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    with closing(_lines(path, encoding, newline="")) as lines:
        head = list(islice(lines, _SNIFFED_LINES))
    if head and (separator := _SEPARATOR_LINE.fullmatch(head[0])):
        return separator[1]

    def separates(sign: str) -> bool:
        try:
            rows = [row for row in csv.reader(head, delimiter=sign) if _filled(row)]
        except csv.Error:
            return False
        rows = (
            rows[:-1] if len(head) == _SNIFFED_LINES else rows
        )  # the last row of a head may be cut
        columns = _without_empty_end(rows[0]) if rows else []
        return len(columns) > 1 and all(_fits(row, len(columns)) for row in rows)

    signs = (usual, *_DELIMITERS)
    first = next(filter(str.strip, head), "")
    return next(filter(separates, signs), max(signs, key=first.count))


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
    """The rows of a file whose first line names the columns; empty columns at its end are none."""
    csv.field_size_limit(2**31 - 1)
    delimiter = delimiter_of(path, encoding)
    read: list[str] = []  # the lines of the record that is being read

    def reading(lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            read.append(line)
            yield line

    def place() -> str:
        first, last = reader.line_num - len(read) + 1, reader.line_num
        numbers = f"line {last}" if first == last else f"lines {first} to {last}"
        return f"{numbers} of the file {str(path)!r}"

    with closing(_lines(path, encoding, newline="")) as lines:
        # Strict, so that an unclosed quote is an error and not one text to the end of the file.
        reader = csv.reader(reading(lines), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        try:
            for record in reader:
                if header is None and _SEPARATOR_LINE.fullmatch(delimiter.join(record)):
                    pass
                elif header is None and _filled(record):
                    header = _without_empty_end(record)
                    require_different(header, f"the file {str(path)!r}")
                    choose(header, f"the file {str(path)!r}")
                elif header is not None and _filled(record):
                    if not _fits(record, len(header)):
                        raise InputError(
                            f"{place()} has {len(record)} fields, but the first line names "
                            f"{len(header)} columns; put quotes around texts with {delimiter!r}"
                        )
                    yield reader.line_num, dict(zip(header, record, strict=False))
                read.clear()
        except csv.Error as error:
            opened = _unclosed_quote("".join(read), delimiter)
            if opened is None:
                wrong = f"{place()} is not valid CSV: {error}; mend it"
            else:
                number = reader.line_num - len(read) + 1 + opened
                wrong = (
                    f"line {number} of the file {str(path)!r} opens a quote that does not close at "
                    'the end of its field; close it, write "" for a quote within a text'
                )
            raise InputError(f"{wrong}, or save the texts as Parquet or JSON lines") from error


def _filled(fields: Iterable[Any]) -> bool:
    """False of a row that is empty altogether."""
    return any(field is not None and field != "" and not str(field).isspace() for field in fields)


def _without_empty_end(names: list[str]) -> list[str]:
    """The names of the columns without those at the end that have none."""
    while names and not names[-1].strip():
        names = names[:-1]
    return names


def _fits(record: Sequence[str], columns: int) -> bool:
    """True of a record with a field for each column, and nothing in the fields behind them."""
    return len(record) >= columns and not _filled(record[columns:])


def _unclosed_quote(record: str, delimiter: str) -> int | None:
    """The line of a record, 0 the first, that opens a quote which does not close before a delimiter
    or a line's end."""
    quoted, rest = r'"[^"]*(?:""[^"]*)*("?)', rf"[^{re.escape(delimiter)}\r\n]*"
    for field in re.finditer(f"({quoted})?({rest})", record):
        if field[1] and (not field[2] or field[3]):
            return len(re.findall(r"\r\n|\r|\n", record[: field.start()]))
    return None


def _json_rows(path: Path, encoding: str, choose: Choose) -> Generator[Row, None, None]:
    """One JSON object per line, or one array of objects; blank lines are skipped."""
    for number, where, record in _json_values(path, encoding):
        if not isinstance(record, dict):
            raise InputError(
                f'{where} is not a JSON object; write one object per line, like {{"text": ...}}'
            )
        choose(list(record), where)
        if _filled(record.values()):
            yield number, record


def _json_values(path: Path, encoding: str) -> Iterator[tuple[int, str, Any]]:
    """The values of the lines, or of the array that starts there, with their numbers and places."""
    with closing(_lines(path, encoding, newline="\n")) as lines:
        for number, line in enumerate(lines, start=1):
            where = f"line {number} of the file {str(path)!r}"
            if line.lstrip().startswith("["):
                array = parsed_json(line + "".join(lines), f"the file {str(path)!r}")
                for entry, value in enumerate(array, start=1):
                    yield entry, f"entry {entry} of the file {str(path)!r}", value
            elif line.strip():
                yield number, where, parsed_json(line, where)


def parsed_json(content: str, where: str) -> Any:
    """The value that a user's JSON states.

    Raises:
        InputError: it is damaged, or an object has two values for one key; names `where`.
    """

    def different(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if (twice := _repeated([key for key, _ in members])) is not None:
            raise InputError(f"{where} has the key {twice!r} twice; keep one of them")
        return dict(members)

    try:
        return json.loads(content, object_pairs_hook=different)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where} is not valid JSON: {error}; write one object per line, or one array of "
            "objects"
        ) from error


def _parquet_rows(path: Path, choose: Choose) -> Generator[Row, None, None]:
    """Only the columns that are needed are read, a batch at a time."""
    with _opened_parquet(path) as file:
        require_different(file.schema_arrow.names, f"the file {str(path)!r}")
        columns = choose(file.schema_arrow.names, f"the file {str(path)!r}")
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
        records = (record for batch in batches for record in batch.to_pylist())
        for number, record in enumerate(records, start=1):
            # Of chosen columns nobody knows whether the others are empty too.
            if columns is not None or _filled(record.values()):
                yield number, record


def parquet_class_names(path: Path, label: str) -> list[str] | None:
    """The names of a column's numbers, where `datasets` wrote them into the file; None
    elsewhere."""
    with _opened_parquet(path) as file:
        metadata = file.schema_arrow.metadata or {}
        label = column_named(label, file.schema_arrow.names) or label
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


def require_different(names: Sequence[str], where: str) -> None:
    """Two columns of one name: a dictionary would keep the last without a word."""
    if (twice := _repeated(names)) is not None:
        raise InputError(f"{where} has two columns of the name {twice!r}; rename one")


def _repeated(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


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
