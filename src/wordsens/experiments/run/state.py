"""The state of a run, written down for `status`: how far it is, what runs."""

import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from wordsens.experiments.store.lock import is_locked

STATE = ".run.json"
EVERY_SECONDS = 0.5
STALE_SECONDS = 120.0
"""Without a lock to ask, a run that wrote nothing for so long counts as gone."""


@dataclass
class RunState:
    """The progress of a run.

    Attributes:
        where: where it runs its cells, in words.
        to_do: cells it set out to measure.
        done, failed: of those.
        slots: how many cells it runs at once.
        since, updated: seconds since the epoch.
        pid, host: of the process.
    """

    where: str
    to_do: int
    done: int = 0
    failed: int = 0
    slots: int = 1
    since: float = field(default_factory=time.time)
    updated: float = 0.0
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=platform.node)

    @property
    def running(self) -> int:
        """The number of cells that are being measured now."""
        return min(self.slots, self.to_do - self.done - self.failed)

    @property
    def due(self) -> bool:
        """True when it is time to write it down again."""
        return time.time() - self.updated >= EVERY_SECONDS

    def save(self, folder: Path) -> None:
        """Write it down. It is only news: a disk that is full is not its business."""
        self.updated = time.time()
        aside = folder / f"{STATE}.{os.getpid()}.tmp"
        try:
            aside.write_text(json.dumps(asdict(self)), encoding="utf-8")
            aside.replace(folder / STATE)
        except OSError:
            aside.unlink(missing_ok=True)


def current_run(folder: Path) -> RunState | None:
    """The run that is at work on the store, or None."""
    try:
        found = RunState(**json.loads((folder / STATE).read_text(encoding="utf-8")))
        age = time.time() - found.updated
    except (OSError, ValueError, TypeError):
        return None
    held = is_locked(folder)
    return found if held or (held is None and age < STALE_SECONDS) else None
