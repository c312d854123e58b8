"""A study that costs nothing, for tests of the store and the runner."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import ClassVar

import torch

from wordsens.sweeps.spec import Cell
from wordsens.sweeps.study import Study


class SquareCell(Cell):
    """The square of `draw`, after `pause` seconds; a process dies of `kills`, and of `kills_once`
    until that file is there. From the draw 4 on a cell with `waits` notes its draw in that folder
    and never ends."""

    experiment: ClassVar[str] = "tests.sweeps.squares:SQUARES"

    draw: int = 0
    pause: float = 0.0
    fails: bool = False
    exits: bool = False
    kills: bool = False
    kills_once: str | None = None
    waits: str | None = None
    seed: int = 0

    def spec(self):
        return {name: value for name, value in super().spec().items() if name != "pause"}


def measure(cell):
    time.sleep(cell.pause)
    if cell.waits is not None and cell.draw >= 4:
        (Path(cell.waits) / f"{cell.draw}.begun").touch()
        time.sleep(3600)
    if cell.fails:
        raise ValueError("it was\ntold to")
    if cell.exits:
        sys.exit()
    if cell.kills_once is not None and not (died := Path(cell.kills_once)).exists():
        died.touch()
        os._exit(0)
    if cell.kills:
        os.kill(os.getpid(), signal.SIGKILL)
    value = float(cell.draw**2)
    return {"value": value, "process": os.getpid(), "arrays": {"root": torch.tensor([cell.draw])}}


SQUARES = Study(name=SquareCell.experiment, Cell=SquareCell, measure=measure)


class GroupedCell(SquareCell):
    """A cell that is measured together with its neighbours of the same four, three at a time."""

    experiment: ClassVar[str] = "tests.sweeps.squares:GROUPED"


def measure_together(cells):
    assert len({cell.draw // 4 for cell in cells}) == 1
    return [{**measure(cell), "together": len(cells)} for cell in cells]


GROUPED = Study(
    name=GroupedCell.experiment,
    Cell=GroupedCell,
    measure=measure,
    together=lambda cell: cell.draw // 4,
    most_together=3,
    measure_together=measure_together,
)


def squares(count, **keys):
    """Cells of the draws 0 to count - 1."""
    return [SquareCell.parse({"draw": draw, **keys}) for draw in range(count)]
