"""The table that shows a result."""

from collections.abc import Callable
from typing import Any

from wordsens.display.result_table import ResultTable
from wordsens.findings import generalization, sensitivity

TABLES: dict[type, Callable[[Any], ResultTable]] = {**sensitivity.TABLES, **generalization.TABLES}


def table(result: Any) -> ResultTable:
    """The columns of the result under a heading; a class without findings is headed by its name."""
    make = TABLES.get(type(result))
    return ResultTable(type(result).__name__, result.columns()) if make is None else make(result)
