"""Small text networks, trained under control of their word sensitivity: networks, tasks, controls,
the study.

The names for users are those of `__init__.pyi`, each loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
