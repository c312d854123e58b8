"""Worker processes keep freed memory: fewer page faults under the settings that Dask starts its workers with."""

import os
import subprocess
import sys

import pytest

# Blocks of 2 MiB, written and freed a hundred times: with a trim threshold set, each is mapped afresh.
PROGRAM = """
import resource, sys, torch
from wordsens.experiments.run.allocator import keep_freed_memory
torch.set_num_threads(1)
taken = keep_freed_memory() if sys.argv[1] == "keep" else True
torch.ones(1 << 19)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    torch.ones(1 << 19)
print(int(taken), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(setting: str) -> int:
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, setting], env=environment, capture_output=True, text=True, check=True
    )
    taken, found = map(int, done.stdout.split())
    assert taken
    return found


GLIBC = sys.platform.startswith("linux") and "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or "")


@pytest.mark.slow
@pytest.mark.skipif(not GLIBC, reason="glibc's allocator")
def test_freed_blocks_are_used_again():
    # 512 pages a block of 2 MiB, unless the system gives huge pages: then one fault.
    assert faults("keep") < 0.5 * faults("leave")
