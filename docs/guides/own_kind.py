"""An experiment in one file: what a cell is, what is measured (docs/guides/own_kind.md)."""

from typing import ClassVar

from wordsens.sweeps.experiment import Experiment
from wordsens.sweeps.spec import Cell
from wordsens.text.synthetic import gaussian_text


class RowNormCell(Cell, frozen=True):
    """The mean row norm of a Gaussian text of n words."""

    experiment: ClassVar[str] = "own_kind:ROW_NORM"

    n: int
    d: int
    draw: int = 0


def measure(cell):
    return {"value": float(gaussian_text(cell.n, cell.d, cell.draw).rows.norm(dim=1).mean())}


ROW_NORM = Experiment(name=RowNormCell.experiment, Cell=RowNormCell, measure=measure)
