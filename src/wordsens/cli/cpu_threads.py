"""The number of CPU threads that torch uses while a command runs."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block, and as many as before after it.

    One is the default of the command line: most products here are small, and a second thread that has to share its
    core with another program makes each of them wait.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
