"""Figures of records and results, drawn with matplotlib; no input or output.

`lines`, `points`, `bars` and `heat` take columns by name and return a matplotlib Figure in the
package's style, or in `style=`, a file of your own. `draw` draws the chart of a view.
"""

import lazy_loader

from wordsens.errors import MissingExtraError

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures", "a figure") from error

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
