"""The making of a record: the code, the libraries, the machine, the cost."""

import hashlib
import json
import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import wordsens

_SHOWING = ("app", "cli", "figures", "report")
"""Parts of the package that show values and compute none."""

_LIBRARIES = ("torch", "numpy", "scipy", "transformers", "tokenizers")


@cache
def code_version() -> str:
    """SHA-256 of the package's Python files that a value can depend on, the first 12 hexadecimal digits: equal for
    equal code, in a wheel, a checkout or a checkout with uncommitted changes.
    """
    package = Path(wordsens.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] not in _SHOWING:
            digest.update(f"{place.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def provenance() -> dict[str, Any]:
    """The columns that say how a record was made, at the end of its cell."""
    torch = sys.modules.get("torch")
    return {
        "wordsens_version": wordsens.__version__,
        "code": code_version(),
        "libraries": _libraries(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": None if torch is None else torch.get_num_threads(),
        "peak_memory_mb": peak_memory_mb(),
    }


def peak_memory_mb() -> float | None:
    """The largest resident memory of this process so far, in MiB; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if platform.system() == "Darwin" else 2**10)


@cache
def _libraries() -> str:
    """The versions of Python and of the libraries that a value can depend on, as JSON."""
    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return json.dumps(versions, sort_keys=True)


def error_line(error: BaseException) -> str:
    """The error on one line, its class first.

    >>> error_line(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
