"""Who makes a result's table and its figure. The package registers them, so that results know neither."""

from collections.abc import Callable
from typing import Any

_makers: dict[str, Callable[..., Any]] = {}


def register(*, table: Callable[[Any], Any], figure: Callable[..., Any]) -> None:
    """Have `table(result)` and `figure(result, style=...)` show results from now on."""
    _makers.update(table=table, figure=figure)


def table_of(result: Any) -> Any:
    """The result as a display.result_table.ResultTable."""
    return _makers["table"](result)


def figure_of(result: Any, *, style: Any = None) -> Any:
    """The result as a matplotlib figure."""
    return _makers["figure"](result, style=style)
