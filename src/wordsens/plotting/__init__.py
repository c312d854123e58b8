"""Figures of records and results, drawn with matplotlib; no input or output.

Each function takes what was measured and gives a matplotlib Figure, in our style or in `style=`, a
file of your own.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
