"""Experiments in cells, one file each; `__init__.pyi` is the table of them: one further is a file and a line there."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
