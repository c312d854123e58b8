"""Rows of CSV, TSV, JSON and Parquet files, and plain text files. All but a JSON array is streamed.

CSV is read with the standard library, which is strict about quotes and gives the line of each row.
"""

import codecs
import csv
import json
import re
import unicodedata
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, argument, first_line, require_extra, running, shown
from wordsens.files import replace_file, require_file, writing

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")

# The place, such as "pairs.csv:7", and the fields. The number is that of the row's last line; in
# Parquet and in a JSON array that of the row.
Rows = Generator[tuple[str, dict[str, Any]], None, None]

_USUAL = {".csv": ",", ".tsv": "\t"}
_DELIMITERS = (",", ";", "\t", "|")
# The first line that tells Excel what separates the fields.
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w\r\n"])"?\s*', re.IGNORECASE)

_BATCH_ROWS = 1024

# Remedies for a file that is not text in its encoding, by what its first bytes contain.
_UTF_16 = "it looks like UTF-16, so pass {utf_16}"
_REMEDIES = {
    codecs.BOM_UTF16_LE: _UTF_16,
    codecs.BOM_UTF16_BE: _UTF_16,
    b"\0": "it looks binary; give a text file, or pass its encoding, e.g. {utf_16}",
    b"": "pass its own encoding, e.g. {latin_1} or {utf_16}",
}


def table_rows(path: Path, encoding: str = "utf-8", columns: Sequence[str] | None = None) -> Rows:
    """The rows of a file with one of the extensions TABLES, without completely empty rows; a .txt
    file is one row with the column `text`.

    Args:
        path: the file.
        encoding: encoding of all files but Parquet.
        columns: the columns to read from Parquet, empty rows included; None: all columns.

    Raises:
        InputError: a damaged file or row, or two columns with one name.
        MissingExtraError: reading Parquet needs pyarrow.
    """
    match path.suffix.lower():
        case ".parquet":
            return _parquet_rows(path, columns)
        case ".csv" | ".tsv":
            return _csv_rows(path, encoding)
        case ".txt":
            return _text_row(path, encoding)
        case _:
            return _json_rows(path, encoding)


def column_named(name: str, names: Collection[str]) -> str | None:
    """The column with exactly that name, else the only one that differs in case or blanks around
    it.

    >>> column_named("text", [" Text ", "label"]), column_named("text", ["TEXT", "text"])
    (' Text ', 'text')
    """
    if name in names:
        return name
    alike = [each for each in names if _plain(each) == _plain(name)]
    return alike[0] if len(alike) == 1 else None


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()


def require_column(name: str, names: Collection[str], where: str, remedy: str) -> str:
    """The column that `column_named` finds; InputError with the names of all columns."""
    column = column_named(name, names)
    if column is None:
        raise InputError(
            f"{where} has no column {name!r}; its columns are {', '.join(map(repr, names))}; "
            f"{remedy}"
        )
    return column


def require_different(names: Sequence[str], where: str) -> None:
    """InputError for a name that occurs twice: a dictionary would silently keep its last value."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{where} has the name {twice!r} twice; rename one, or keep one of them")


def require_table(path: Path, name: str) -> None:
    """InputError for a file with none of the extensions TABLES; `name` is the argument's name."""
    if path.suffix.lower() not in TABLES:
        raise InputError(
            f"{argument(name)} (={str(path)!r}) has an unknown extension; use one of "
            f"{', '.join(TABLES)}"
        )


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path, name: str) -> None:
    """Write rows to a file with one of the extensions TABLES, completely or not at all; a column
    that a row lacks is empty.

    Raises:
        InputError: another extension, a column that Parquet cannot hold, a file that cannot be
            written; it names the argument.
        MissingExtraError: writing Parquet needs pyarrow.
    """
    require_table(path, name)
    import pandas

    frame = pandas.DataFrame(list(rows), dtype=object)
    match path.suffix.lower():
        case ".parquet":
            require_extra("records", "writing Parquet", "pyarrow")
            remedy = "give the values of a column one type, or write JSON lines"
            with running(
                f"writing {argument(name)} (={str(path)!r}) as Parquet failed", remedy=remedy
            ):
                content = frame.to_parquet(index=False)
        case ".csv" | ".tsv" as ending:
            text = frame.to_csv(index=False, sep=_USUAL[ending])
            content = text.encode("utf-8", "backslashreplace")
        case ".json":
            content = json.dumps(list(rows), ensure_ascii=False, indent=1, default=str).encode()
        case _:
            lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
            content = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    with writing(name, path):
        replace_file(path, content)


def file_text(path: Path, encoding: str) -> str:
    """The whole file as one text; InputError if it is not text in this encoding."""
    return "".join(_lines(path, encoding, newline=None))


def _text_row(path: Path, encoding: str) -> Rows:
    yield path.name, {"text": file_text(path, encoding)}


def delimiter_of(path: Path, encoding: str) -> str:
    """The sign that separates the fields of a CSV or TSV file: the one that its line `sep=` names,
    else the one that splits the first line with a field into the most fields.

    If several do, the comma, or the tab in a .tsv file.
    """
    csv.field_size_limit(2**31 - 1)
    first = next(filter(str.strip, _lines(path, encoding)), "")
    if separator := _SEPARATOR_LINE.fullmatch(first):
        return separator[1]
    signs = (_USUAL[path.suffix.lower()], *_DELIMITERS)
    return max(signs, key=lambda sign: len(next(csv.reader([first], delimiter=sign))))


def _csv_rows(path: Path, encoding: str) -> Rows:
    """The rows of a file whose first line names the columns; empty columns at its end are
    ignored."""
    where = f"of the file {str(path)!r}"
    delimiter = delimiter_of(path, encoding)
    header: list[str] = []
    first = 1
    with closing(_lines(path, encoding)) as lines:
        # Strict, so that an unclosed quote is an error and not one text to the end of the file.
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for record in reader:
                last = reader.line_num
                if header and _filled(record):
                    if len(record) < len(header) or _filled(record[len(header) :]):
                        place = f"line {last}" if first == last else f"lines {first} to {last}"
                        raise InputError(
                            f"{place} {where} has {len(record)} fields, but the first line names "
                            f"{len(header)} columns; put quotes around texts with {delimiter!r}"
                        )
                    yield f"{path.name}:{last}", dict(zip(header, record, strict=False))
                elif _filled(record) and not _SEPARATOR_LINE.fullmatch(delimiter.join(record)):
                    named = [number for number, name in enumerate(record, start=1) if name.strip()]
                    header = record[: named[-1]]
                    require_different(header, f"the first line {where}")
                first = last + 1
        except csv.Error as error:
            rest = "".join(islice(_lines(path, encoding), first - 1, None))
            number = first + _lines_before_broken_field(rest, delimiter)
            raise InputError(
                f"line {number} {where} opens a quote that does not close at the end of its field; "
                'close it, write "" for a quote within a text, or save the texts as Parquet or '
                "JSON lines"
            ) from error


def _filled(fields: Iterable[Any]) -> bool:
    """False for a completely empty row."""
    return any(field is not None and str(field).strip() for field in fields)


def _lines_before_broken_field(content: str, delimiter: str) -> int:
    """How many lines end before the first field whose quotes are not closed at its end."""
    plain = rf'[^"{re.escape(delimiter)}\r\n][^{re.escape(delimiter)}\r\n]*'
    field = rf'(?:"(?:[^"]|"")*+"|{plain}|)(?:{re.escape(delimiter)}|\r\n|\r|\n)'
    sound = re.match(f"(?:{field})*+", content)
    return len(re.findall(r"\r\n|\r|\n", sound[0])) if sound else 0


def _json_rows(path: Path, encoding: str) -> Rows:
    """One JSON object per line, or one array of objects; blank lines are skipped."""
    where = f"the file {str(path)!r}"
    is_array = next(filter(str.strip, _lines(path, encoding)), "").lstrip().startswith("[")
    with closing(_lines(path, encoding)) as lines:
        if is_array:
            unit, values = "entry", enumerate(parsed_json("".join(lines), where), start=1)
        else:
            unit = "line"
            values = (
                (number, parsed_json(line, f"line {number} of {where}"))
                for number, line in enumerate(lines, start=1)
                if line.strip()
            )
        for number, record in values:
            if not isinstance(record, dict):
                raise InputError(
                    f"{unit} {number} of {where} is not a JSON object; write one object per line, "
                    'like {"text": ...}'
                )
            if _filled(record.values()):
                yield f"{path.name}:{number}", record


def parsed_json(content: str, where: str) -> Any:
    """The value of a user's JSON.

    Raises:
        InputError: it is damaged, or an object has two values for one key; names `where`.
    """
    try:
        return json.loads(content, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where} is not valid JSON: {error}; write one object per line, or one array of "
            "objects"
        ) from error


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    require_different([name for name, _ in members], "an object")
    return dict(members)


def _parquet_rows(path: Path, columns: Sequence[str] | None) -> Rows:
    """The rows, read in batches."""
    with _opened_parquet(path) as file:
        require_different(file.schema_arrow.names, f"the file {str(path)!r}")
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
        records = (record for batch in batches for record in batch.to_pylist())
        for number, record in enumerate(records, start=1):
            # If columns were chosen, the others may hold something.
            if columns is not None or _filled(record.values()):
                yield f"{path.name}:{number}", record


def parquet_columns(path: Path) -> dict[str, list[str] | None]:
    """The columns of a file, each with the names of its class numbers if `datasets` stored them."""
    with _opened_parquet(path) as file:
        schema = file.schema_arrow
    columns = dict.fromkeys(schema.names)
    with suppress(AttributeError, KeyError, TypeError, ValueError):  # most files have none
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        columns |= {name: features[name].get("names") for name in columns}
    return columns


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    require_extra("records", "reading Parquet", "pyarrow")
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the file {str(path)!r} cannot be read as Parquet: {first_line(error)}; it may be "
            "damaged"
        ) from error


def _lines(path: Path, encoding: str, *, newline: str | None = "") -> Generator[str, None, None]:
    """The lines of the file, decoded; InputError if it is not text in this encoding."""
    require_file(path)
    try:
        # utf-8-sig also reads UTF-8 without a byte order mark.
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with path.open(encoding=codec, newline=newline) as file:
            for line in file:
                if "\0" in line:
                    raise UnicodeError("a null character")
                yield line
    except UnicodeError as error:
        with path.open("rb") as file:
            start = file.read(8192)
        remedy = next(remedy for sign, remedy in _REMEDIES.items() if sign in start)
        raise InputError(
            f"the file {str(path)!r} is not text in the encoding {encoding!r}; "
            + remedy.format(
                latin_1=argument("encoding", "latin-1"), utf_16=argument("encoding", "utf-16")
            )
        ) from error
    except (LookupError, ValueError) as error:  # ValueError for a name with a null character
        raise InputError(
            f"{argument('encoding')} (={shown(encoding)}) is not a text encoding; use e.g. "
            "'utf-8', 'latin-1' or 'utf-16'"
        ) from error
    except OSError as error:
        raise InputError(f"the file {str(path)!r} cannot be read: {error.strerror}") from error
