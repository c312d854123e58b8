"""Texts: where they come from, and how they become matrices.

The names that other packages use are those of `__init__.pyi`. Each is loaded on first use: datasets
and pyarrow are imported only when they are needed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
