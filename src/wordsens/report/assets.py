"""The styles and scripts of the page, which other pages in its look have too."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "static"


@cache
def static(names: Sequence[str]) -> str:
    """These files of `static`, one after the other: what a style or script tag holds."""
    return "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)
