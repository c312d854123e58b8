"""What this process has used so far: memory at its peak, seconds of CPU."""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def peak_gigabytes() -> float:
    """The most resident memory of this process, in GB (10⁹ bytes)."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux getrusage also counts what the parent held when it started this process; VmHWM does not.
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (peak if sys.platform == "darwin" else peak * 1024) / 1e9


@contextmanager
def spent(into: dict[str, float], name: str) -> Iterator[None]:
    """Adds `name` and `name`_cpu to a dictionary: wall-clock and CPU seconds of what runs inside."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    into[name] = time.perf_counter() - wall
    into[f"{name}_cpu"] = time.process_time() - cpu
