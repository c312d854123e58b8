"""Cells that measure nothing: to try a store, a scheduler or a cluster before the real sweep goes there."""

import hashlib
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from wordsens.errors import WordsensError
from wordsens.experiments.grid.cell import Cell
from wordsens.experiments.grid.cell_keys import CPU, Device
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.store.record import Record


class DryRunCell(Cell):
    """A cell that waits, computes for the sake of it, or fails.

    Attributes:
        draw: 0, 1, ...: its value is a pseudo-random number in [0, 1) that seed, draw and work determine.
        seed: of the whole dry run.
        work: thousands of hashes to compute: about half a millisecond of one core each.
        pause: seconds to wait; changes no value.
        fail: whether it fails.
        device: written into the record; it computes on none, so that it changes no value.
    """

    KIND: ClassVar[str | None] = "dry-run"

    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    work: Annotated[int, Field(ge=0)] = 0
    pause: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    fail: bool = False
    device: Device = CPU

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result."""
        return self.model_dump(mode="json", exclude={"pause", "device"})


@dataclass(frozen=True, kw_only=True)
class DryRunRecord(Record):
    """The result of one cell of a dry run.

    Attributes:
        draw, seed, work: of the cell.
        process: the host and the number of the process that ran it: which workers took part.
    """

    draw: int
    seed: int
    work: int
    process: str


def measure_dry_run(cell: DryRunCell, keep: Callable[[Mapping[str, Any]], None] | None) -> dict[str, Any]:
    """Wait, compute, fail; there is no witness to keep."""
    time.sleep(cell.pause)
    if cell.fail:
        raise WordsensError("this cell of the dry run was told to fail")
    if keep is not None:
        keep({})
    return {"value": _value(cell)}


def describe_dry_run(cell: DryRunCell) -> dict[str, Any]:
    """The columns that the cell and its process decide."""
    process = f"{platform.node()}:{os.getpid()}"
    return {"draw": cell.draw, "seed": cell.seed, "work": cell.work, "process": process}


def _value(cell: DryRunCell) -> float:
    digest = f"{cell.seed}:{cell.draw}".encode()
    for _ in range(1000 * cell.work + 1):
        digest = hashlib.sha256(digest).digest()
    return int.from_bytes(digest[:6]) / 2**48


KIND = CellKind(
    name="dry-run",
    folder="dry-run-records",
    cell_type=DryRunCell,
    record_type=DryRunRecord,
    measure=measure_dry_run,
    described=describe_dry_run,
    witnesses=False,
)
