"""Who makes a result's table, display, sentences and figure. The package registers them: results
know none of these."""

from collections.abc import Callable
from typing import Any

_makers: dict[str, Callable[..., Any]] = {}


def register(
    *,
    table: Callable[[Any], Any],
    figure: Callable[..., Any],
    display: Callable[..., Any],
    answer: Callable[[Any], tuple[str, ...]],
) -> None:
    """Have these show results from now on."""
    _makers.update(table=table, figure=figure, display=display, answer=answer)


def table_of(result: Any) -> Any:
    """The result as a ResultTable."""
    return _makers["table"](result)


def figure_of(result: Any, *, style: Any = None) -> Any:
    """The result as a matplotlib figure."""
    return _makers["figure"](result, style=style)


def display_of(result: Any, **options: Any) -> Any:
    """Everything that the result says, as a display.content.Display."""
    return _makers["display"](result, **options)


def answer_of(result: Any) -> tuple[str, ...]:
    """The result in sentences, the overall answer first."""
    return _makers["answer"](result)
