"""A kind of experiment in one file: what it asks, what it measures, what its record holds (docs/guides/own_kind.md)."""

from dataclasses import dataclass

from wordsens.experiments.grid.cell import Cell
from wordsens.experiments.grid.cell_keys import CPU, Device
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.store.record import Record
from wordsens.text.synthetic import gaussian_text


class RowNormCell(Cell):
    """The mean row norm of a Gaussian text of n words."""

    KIND, SCHEMA = "row-norm", 1

    n: int
    d: int
    draw: int = 0
    device: Device = CPU


@dataclass(frozen=True, kw_only=True)
class RowNormRecord(Record):
    """`value` is the mean norm; the other columns are the cell's, and those of every run."""

    n: int
    d: int
    draw: int


def measure(cell, keep):
    if keep is not None:
        keep({})
    return {"value": float(gaussian_text(cell.n, cell.d, cell.draw).rows.norm(dim=1).mean())}


KIND = CellKind(
    name="row-norm",
    folder="row-norm-records",
    cell_type=RowNormCell,
    record_type=RowNormRecord,
    measure=measure,
    described=lambda cell: {"n": cell.n, "d": cell.d, "draw": cell.draw},
    witnesses=False,
)
