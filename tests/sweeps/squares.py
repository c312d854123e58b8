"""An experiment that costs nothing, for tests of the store and the runner."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import ClassVar

import torch

from wordsens.sweeps.experiment import Experiment
from wordsens.sweeps.spec import Cell


class SquareCell(Cell):
    """The square of `draw`, after `pause` seconds; a process dies of `kills`, and of `kills_once` until that file is
    there."""

    experiment: ClassVar[str] = "tests.sweeps.squares:SQUARES"

    draw: int = 0
    pause: float = 0.0
    fails: bool = False
    exits: bool = False
    kills: bool = False
    kills_once: str | None = None
    seed: int = 0

    def spec(self):
        return {name: value for name, value in super().spec().items() if name != "pause"}


def measure(cell):
    time.sleep(cell.pause)
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


SQUARES = Experiment(name=SquareCell.experiment, Cell=SquareCell, measure=measure)


def squares(count, **keys):
    """Cells of the draws 0 to count - 1."""
    return [SquareCell.parse({"draw": draw, **keys}) for draw in range(count)]
