"""What a record says of how it was made: when, on what, with which libraries, at what cost."""

import json
import os
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("torch", "numpy", "transformers", "tokenizers", "pyarrow")


class Watch:
    """When a cell began, and how long it has taken."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._begin = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the watch was made."""
        return time.perf_counter() - self._begin


def peak_memory_mb() -> float | None:
    """The largest resident memory of this process so far, in MiB; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows has no such module
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if platform.system() == "Darwin" else 2**10)


@cache
def machine() -> str:
    """Operating system, processor and cores."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


@cache
def libraries(names: Sequence[str] = LIBRARIES) -> str:
    """The versions of Python and of the installed libraries that a value can depend on, as JSON.

    >>> sorted(json.loads(libraries(("numpy", "no-such-package"))))
    ['numpy', 'python']
    """
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return json.dumps(found, sort_keys=True)


def error_line(error: BaseException) -> str:
    """The error on one line, its kind first.

    >>> error_line(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
