"""The column of a table that holds its texts, where nobody named one."""

from contextlib import closing
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.text.plain_files import csv_records, delimiter_of, json_lines_records, parquet_records, require_names

USUAL = "text"

_ROWS, _WORDS = 50, 2.0
"""Rows that are looked at, and the mean number of words from which on a column holds texts, not names or numbers."""


def text_column_of(source: str | PathLike[str], encoding: str = "utf-8") -> str:
    """`text` where a table has that column or none can be told; else the only one whose fields have several words.

    Of a folder its first table is looked at.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        path = min((entry for entry in path.iterdir() if entry.is_file()), default=path)
    rows = _rows(path, encoding)
    delimited = path.suffix.lower() in (".csv", ".tsv")
    if rows is None:
        return USUAL
    with closing(rows):
        some = list(islice((row for _, row in rows), _ROWS))
    names = list(dict.fromkeys(name for row in some for name in row))
    result = [name for name in names if _holds_texts([row.get(name) for row in some])]
    if delimited and USUAL not in names:
        require_names(names, path)
    return result[0] if USUAL not in names and len(result) == 1 else USUAL


def _rows(path: Path, encoding: str) -> Any:
    """Number and fields of a table's rows, to be closed; None for anything else."""
    kind = path.suffix.lower()
    if not path.is_file() or path.stat().st_size == 0:
        return None
    if kind in (".csv", ".tsv"):
        return csv_records(path, encoding, delimiter=delimiter_of(path, encoding))
    if kind in (".jsonl", ".ndjson"):
        return json_lines_records(path, encoding)
    return parquet_records(path) if kind == ".parquet" else None


def _holds_texts(fields: list[Any]) -> bool:
    texts = [field for field in fields if isinstance(field, str)]
    if not texts or len(texts) < sum(field is not None for field in fields):
        return False
    return sum(len(text.split()) for text in texts) / len(texts) >= _WORDS
