"""Models in one form: texts in, vectors out.

The names that other packages use are those of `__init__.pyi`, each loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
