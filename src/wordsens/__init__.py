"""Word sensitivity: how much can one word change what a model sees?

The public names are those of `__init__.pyi`. Each is loaded on first use, so that importing the
package, and the command line's help, stay light.
"""

import lazy_loader

from wordsens.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
