"""The function that draws results, registered by the package itself: results need not know of figures."""

from collections.abc import Callable
from typing import Any

_draw: list[Callable[..., Any]] = []


def register(draw: Callable[..., Any]) -> None:
    """Have `draw(result, style=...)` draw results from now on."""
    _draw[:] = [draw]


def draw(result: Any, *, style: Any = None) -> Any:
    """The result as a figure."""
    return _draw[0](result, style=style)
