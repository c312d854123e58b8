"""The number of processes that this machine has cores and memory for."""

import os

GIGABYTES_A_PROCESS = 3.0
"""The most that a worker was seen to hold: deep random features of 8 layers at d = 768, n = 80, four words."""


def cores() -> int:
    """The cores that this process may use, two threads of one core counted apart."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def useful_processes(threads: int = 1) -> int:
    """As many processes of so many threads as there are physical cores for, and memory that is free now; at least 1.

    Limits that a container sets to cores and memory count.
    """
    try:
        import psutil  # of dask.distributed, without which there are no workers
        from dask.system import CPU_COUNT
        from distributed.system import MEMORY_LIMIT
    except ImportError:
        return 1
    physical = psutil.cpu_count(logical=False) or CPU_COUNT
    free = min(psutil.virtual_memory().available, MEMORY_LIMIT) / 1e9
    return max(1, min(min(CPU_COUNT, physical) // threads, int(free / GIGABYTES_A_PROCESS)))
