"""One run at a time on a store: a lock that the system gives up with the process that held it."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from wordsens.errors import WordsensError

try:
    import fcntl
except ImportError:  # Windows: stores are shared there, which harms nothing
    fcntl = None

LOCK = ".lock"


class BusyStoreError(WordsensError):
    """Another run is at work on the store."""


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the store's lock inside the block; gives False where the file system has no locks.

    Without a lock two runs may measure a cell twice, and nothing worse: shards are written aside and renamed, and a
    cell has the same value in both.

    Raises:
        BusyStoreError: another process holds it.
    """
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        got = _try_lock(handle)
        if got is False:
            raise BusyStoreError(f"another run is at work on {folder} ({_holder(folder)}); wait for it, or stop it")
        if got:
            told = {"pid": os.getpid(), "host": platform.node(), "since": datetime.now(UTC).isoformat("T", "seconds")}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(told).encode(), 0)
        yield bool(got)
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool | None:
    """Whether some process holds the store's lock; None where the file system does not tell."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        got = _try_lock(handle)
    finally:
        os.close(handle)
    return None if got is None else not got


def _try_lock(handle: int) -> bool | None:
    """Whether the lock was got; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _holder(folder: Path) -> str:
    try:
        told = json.loads((folder / LOCK).read_text(encoding="utf-8"))
        return f"process {told['pid']} on {told['host']}, since {told['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it does not say which"
