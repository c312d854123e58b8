"""The styles and scripts of the page, which other pages in its look have too."""

from collections.abc import Sequence
from functools import cache

from wordsens.files import packaged_text


@cache
def static(names: Sequence[str]) -> str:
    """These files of `static`, one after the other: what a style or script tag holds."""
    return "\n".join(packaged_text(f"report/static/{name}") for name in names)
