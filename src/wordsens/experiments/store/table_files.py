"""A table of records as text: CSV and JSON lines."""

import io
import json
from typing import Any

SUFFIXES = (".parquet", ".csv", ".jsonl")

_ROWS = 5000


def csv_of(table: Any, file: Any) -> None:
    """The table as CSV, in UTF-8: a list as JSON, a missing value as nothing."""
    import csv

    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    rows = csv.writer(text)
    rows.writerow(table.column_names)
    for batch in table.to_batches(_ROWS):
        columns = [batch.column(at).to_pylist() for at in range(batch.num_columns)]
        rows.writerows(zip(*([_plain(value) for value in column] for column in columns), strict=True))
    text.flush()
    text.detach()


def jsonl_of(table: Any, file: Any) -> None:
    """The table as one JSON object a line, in UTF-8. A number that JSON has no name for (infinity) is null."""
    for batch in table.to_batches(_ROWS):
        for row in batch.to_pylist():
            plain = {
                key: None if isinstance(value, float) and not _finite(value) else value for key, value in row.items()
            }
            file.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _finite(value: float) -> bool:
    return value - value == 0
