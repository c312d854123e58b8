"""The C library's allocator in worker processes: memory freed between two operations is kept, not handed back."""

import ctypes
import sys
from functools import cache

KEPT = 1 << 30
"""Freed memory of up to so many bytes at the top of a heap stays with the process."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_ON_A_HEAP = 32 << 20


@cache
def keep_freed_memory() -> bool:
    """Let glibc reuse freed blocks, once a process; whether it took the settings. O(1).

    Dask starts its workers with `MALLOC_TRIM_THRESHOLD_=65536`, which also fixes glibc's threshold for memory maps at
    128 KiB: every larger tensor is then mapped afresh, page by page. Measured on attention at n = 250: a third of all
    CPU time. We ask for what glibc would reach by itself. Other C libraries are left alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_ON_A_HEAP) and mallopt(_M_TRIM_THRESHOLD, KEPT))
