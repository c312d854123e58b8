"""The page to try: a server of screens, and worker processes that measure for them."""

import os
import tempfile
from pathlib import Path

# Nothing is stored; NiceGUI only wants to know where it would be.
os.environ.setdefault(
    "NICEGUI_STORAGE_PATH", str(Path(tempfile.gettempdir()) / "wordsens-no-storage")
)
