"""Cells that measure nothing: to try a store, a scheduler or a cluster before the real sweep goes there."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from wordsens import __version__
from wordsens.errors import WordsensError
from wordsens.experiments.grid.device_key import CPU, Device
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.run.provenance import Watch, error_line, libraries, machine, peak_memory_mb
from wordsens.experiments.store.identity import hash_identity
from wordsens.experiments.store.record import Record

DRY_RUN_SCHEMA = 1


class DryRunCell(StrictModel):
    """A cell that waits, computes for the sake of it, or fails.

    Attributes:
        draw: 0, 1, ...: its value is a pseudo-random number in [0, 1) that seed, draw and work determine.
        seed: of the whole dry run.
        work: thousands of hashes to compute: about half a millisecond of one core each.
        pause: seconds to wait; changes no value.
        fail: whether it fails.
        device: written into the record; it computes on none, so that it changes no value.
    """

    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    work: Annotated[int, Field(ge=0)] = 0
    pause: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    fail: bool = False
    device: Device = CPU

    def identity(self) -> str:
        """Canonical JSON of what can change the result."""
        fields = self.model_dump(mode="json", exclude={"pause", "device"})
        kind = {"kind": "dry-run", "schema": DRY_RUN_SCHEMA}
        return json.dumps({**kind, **fields}, sort_keys=True, separators=(",", ":"))

    def content_hash(self) -> str:
        """The cell's name in the store."""
        return hash_identity(self.identity())


@dataclass(frozen=True, kw_only=True)
class DryRunRecord(Record):
    """What one cell of a dry run gave.

    Attributes:
        draw, seed, work: of the cell.
        process: the host and the number of the process that ran it: which workers took part.
        peak_memory_mb, device, started, wordsens_version, machine: as for a sensitivity.
    """

    draw: int
    seed: int
    work: int
    process: str
    peak_memory_mb: float | None = None
    device: str
    started: str
    wordsens_version: str
    machine: str


def attempt_dry_run(cell: DryRunCell, *, keep: Callable[[Mapping[str, Any]], None] | None = None) -> DryRunRecord:
    """Run one cell; it has no witness to keep.

    >>> attempt_dry_run(DryRunCell(draw=3)).value == attempt_dry_run(DryRunCell(draw=3)).value
    True
    """
    watch = Watch()
    try:
        time.sleep(cell.pause)
        if cell.fail:
            raise WordsensError("this cell of the dry run was told to fail")
        if keep is not None:
            keep({})
        return _record(cell, watch, status="done", value=_value(cell))
    except Exception as error:
        return failed_dry_run(cell, error_line(error), watch=watch)


def failed_dry_run(cell: DryRunCell, error: str, *, watch: Watch | None = None) -> DryRunRecord:
    """The record of a cell that could not be run, for the reason that the error gives."""
    return _record(cell, watch or Watch(), status="failed", error=error)


def _value(cell: DryRunCell) -> float:
    digest = f"{cell.seed}:{cell.draw}".encode()
    for _ in range(1000 * cell.work + 1):
        digest = hashlib.sha256(digest).digest()
    return int.from_bytes(digest[:6]) / 2**48


def _record(cell: DryRunCell, watch: Watch, **found: Any) -> DryRunRecord:
    identity = cell.identity()
    return DryRunRecord(
        cell=hash_identity(identity),
        spec=identity,
        seconds=watch.seconds,
        libraries=libraries(),
        draw=cell.draw,
        seed=cell.seed,
        work=cell.work,
        process=f"{platform.node()}:{os.getpid()}",
        peak_memory_mb=peak_memory_mb(),
        device=cell.device,
        started=watch.started,
        wordsens_version=__version__,
        machine=machine(),
        **found,
    )
