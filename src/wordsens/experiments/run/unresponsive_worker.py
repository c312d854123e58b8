"""Preloaded by the worker processes of this machine: Ctrl-C is for the process that started them, which ends them."""

import signal
import threading


def dask_setup(worker: object) -> None:
    """Ignore SIGINT: a terminal sends it to every process of the group, and a worker would die with a traceback."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
