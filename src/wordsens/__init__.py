"""Word sensitivity: how much can one word change what a model sees?

The public names are those of `__init__.pyi`. Each is loaded on first use, so that importing the
package, and the command line's help, stay light.
"""

from typing import Any

import lazy_loader

from wordsens import looks
from wordsens.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _table(result: Any) -> Any:
    from wordsens.findings.tables import table

    return table(result)


def _figure(result: Any, *, style: Any = None) -> Any:
    from wordsens.plotting.results import plot

    return plot(result, style=style)


def _display(result: Any, **options: Any) -> Any:
    from wordsens.findings.tables import display

    return display(result, **options)


def _answer(result: Any) -> tuple[str, ...]:
    from wordsens.findings.tables import answer

    return answer(result)


looks.register(table=_table, figure=_figure, display=_display, answer=_answer)
