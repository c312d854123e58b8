"""A study in one file: does the mean of n words shrink? (docs/guides/own_kind.md)"""

from typing import ClassVar

from wordsens.display.view import Finding
from wordsens.intervals import behaviour, power_law
from wordsens.plotting import lines
from wordsens.sweeps.spec import Cell
from wordsens.sweeps.study import Study, means
from wordsens.text.synthetic import gaussian_text


class MeanNormCell(Cell, frozen=True):
    """The mean row of a Gaussian text of n words."""

    experiment: ClassVar[str] = "own_kind:MEAN_NORM"

    n: int
    d: int
    draw: int = 0


def measure(cell):
    """The columns of one record, `value` among them."""
    rows = gaussian_text(cell.n, cell.d, cell.draw).rows
    return {"value": float(rows.mean(dim=0).norm())}


def tables(records):
    """One row per length: the mean over draws with its interval."""
    return {"Norm of the mean word": means(records, ["d", "n"], {"norm": "value"})}


def findings(records, tables):
    """One sentence for each d, about all of its records."""
    for d, part in records.groupby("d"):
        fit = power_law(list(part["n"]), list(part["value"]))
        if fit is not None:
            sentence = f"At d = {d} the norm {behaviour(fit[0])}: exponent {fit[0]}."
            yield Finding(sentence, rows=tuple(part["cell"]))


def figures(records):
    """The norm against the length, on logarithmic axes."""
    (table,) = tables(records).values()
    drawn = lines(table, x="n", y="norm", colour="d", log="xy", caption="Means over draws.")
    return {"mean-norm": drawn}


MEAN_NORM = Study(
    name=MeanNormCell.experiment,
    Cell=MeanNormCell,
    measure=measure,
    tables=tables,
    findings=findings,
    figures=figures,
    note="Norm: of the mean of a text's rows, 95 % confidence interval over draws.",
)
