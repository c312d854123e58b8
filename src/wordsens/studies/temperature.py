"""When softmax attention freezes: S of random attention against n at temperatures in units of the
one at which a few words begin to take all the weight."""

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wordsens.display.numbers import Estimate, number
from wordsens.display.view import Finding
from wordsens.intervals import ends, power_law
from wordsens.sweeps.measurement import SensitivityCell, alike, measure_sensitivities
from wordsens.sweeps.study import (
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    means,
    require_alike,
    tally,
)
from wordsens.sweeps.texts import DatasetText, Embedded


class TemperatureCell(SensitivityCell, frozen=True):
    """A sensitivity cell; its `temperature` is compared with 1 / √(2 log n)."""

    experiment: ClassVar[str] = "temperature"


def measure(cell: TemperatureCell) -> dict[str, Any]:
    """Measure one cell: the columns of a sensitivity, and `norm`, ‖phi(X)‖ / √(n d)."""
    return measure_together([cell])[0]


def measure_together(cells: Sequence[TemperatureCell]) -> list[dict[str, Any]]:
    """`measure` of cells with one search plan."""
    measured = measure_sensitivities(cells, certificate=False)
    for cell, columns in zip(cells, measured, strict=True):
        phi = cell.build()
        features = phi(phi.accept(columns["arrays"]["rows"]))
        columns["norm"] = float(features.norm()) / math.sqrt(cell.n * cell.d)
    return measured


# n, the values of d / n, those of x, draws; and n at d = n alone.
PRESETS: dict[str, tuple[Sequence[int], Sequence[int], Sequence[float], int, Sequence[int]]] = {
    "quick": ((16, 32, 64), (1, 4), (0.5, 1.0, 2.5), 3, ()),
    "laptop": ((16, 32, 64, 128), (1, 2, 4), (0.5, 1.0, 1.5, 2.5, 4.0), 4, (256,)),
    "full": ((16, 32, 64, 128, 256), (1, 2, 4), (0.5, 0.75, 1.0, 1.5, 2.5, 4.0), 10, (512,)),
}


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Preset:
    """S of softmax attention on Gaussian texts at T = x / √(2 log n), d proportional to n."""
    lengths, ratios, places, draws, longer = PRESETS[scale]
    sizes = [(n, n * ratio) for ratio in ratios for n in lengths] + [(n, n) for n in longer]
    grids = [
        {
            "map": "raf",
            "text": {"kind": "gaussian"},
            "n": n,
            "d": d,
            "temperature": [x / math.sqrt(2 * math.log(n)) for x in places],
            "draw": list(range(draws)),
        }
        for n, d in sizes
    ]
    notice = "--texts is not read: this study measures Gaussian texts"
    return grids, [notice] * isinstance(source, DatasetText)


def predicted_exponent(x: float) -> float:
    """The exponent of ‖phi(X)‖ / √(n d) in n at T = x / √(2 log n), by the random energy model
    (heuristic; docs/proofs.md#the-random-energy-model-of-softmax-attention): 0 up to x = 1, then
    -(x - 1/x)² / 8, from x = √3 on -(1 - 2/x²) / 2.

    >>> [predicted_exponent(x) for x in (0.5, 1.0, 2.0, 4.0)]
    [0.0, 0.0, -0.25, -0.4375]
    """
    if x <= 1:
        return 0.0
    return -((x - 1 / x) ** 2) / 8 if x < math.sqrt(3) else -(1 - 2 / x**2) / 2


SERIES = ["map", "text", "d/n", "x"]
_GROWTH, _POINTS = "S ~ n^exponent at T = x / √(2 log n)", "S at every length"


def _placed(records: Any) -> Any:
    """The records with x, d / n, and the change, S times the norm."""
    freezing = 1 / np.sqrt(2 * np.log(records["n"].astype(float)))
    columns = {
        "x": (records["temperature"].astype(float) / freezing).round(6),
        "d/n": (records["d"] / records["n"]).convert_dtypes(),
        "change": records["value"] * records["norm"],
    }
    return records.assign(**columns)


def tables(records: Any) -> Tables:
    """One row per d / n and x: how S grows with n, and the random energy model; then every n."""
    placed = _placed(records)
    require_alike(placed, [*SERIES, "n"])
    series = placed.groupby(SERIES, dropna=False)
    rows = [dict(zip(SERIES, keys, strict=True)) | _growth(part) for keys, part in series]
    columns = {"S": "value", "median word": "median_word", "change": "change", "norm": "norm"}
    return {
        _GROWTH: pd.DataFrame(rows, dtype=object),
        _POINTS: means(placed, [*SERIES, "n"], columns),
    }


def _growth(part: Any) -> dict[str, Any]:
    """The exponents in n of one series, and what the model says of the norm's."""

    def exponent(column: str) -> Estimate | None:
        fit = power_law(part["n"].tolist(), part[column].tolist())
        return None if fit is None else fit[0]

    return {
        "S": exponent("value"),
        "norm": exponent("norm"),
        "model of norm": predicted_exponent(part["x"].iloc[0]),
        "change": exponent("change"),
        "median word": exponent("median_word"),
        "n from": int(part["n"].min()),
        "n to": int(part["n"].max()),
    }


_SIDES = {"x < 1": -1, "x = 1": 0, "x > 1": 1}


def findings(records: Any, tables: Mapping[str, Any]) -> Iterator[Finding]:
    """How S depends on n on both sides of x = 1; how near the random energy model comes."""
    cells = tuple(records["cell"])
    rows = tables[_GROWTH].dropna(subset=["S"])
    sides = rows.groupby(np.sign(rows["x"].astype(float) - 1))["S"]
    tallies = {sign: tally(fits, "it grows", "it falls") for sign, fits in sides}
    if clauses := [f"{name}: {tallies[sign]}" for name, sign in _SIDES.items() if sign in tallies]:
        yield Finding(
            "Sensitivity S of softmax attention when the number of words n grows, d / n is fixed "
            f"and the temperature is x / √(2 log n). {'. '.join(clauses)}.",
            "Measured on Gaussian texts.",
            cells,
        )
        measured, model = rows["norm"], rows["model of norm"]
        apart = [abs(fit.value - exponent) for fit, exponent in zip(measured, model, strict=True)]
        inside = [
            low <= exponent <= high
            for (low, high), exponent in zip(measured.map(ends), model, strict=True)
        ]
        yield Finding(
            "S is the change of the output over its norm. The random energy model, a heuristic, "
            "predicts the exponent of the norm in n: it is in the measured interval in "
            f"{sum(inside)} of {len(inside)} settings and differs by at most {number(max(apart))}.",
            "The change shrinks with n too; the model leaves it out.",
            cells,
        )


def figures(records: Any) -> dict[str, Any]:
    """S against n, a line per x, a panel per d / n; dashed the slope of the random energy model."""
    from wordsens.plotting import lines

    points = tables(records)[_POINTS]
    power = points["n"] ** -points["x"].map(predicted_exponent)
    constant = points["S"].map(attrgetter("value")) / power
    series = [points[name] for name in SERIES]
    figure = lines(
        points.assign(model=power * constant.groupby(series, dropna=False).transform("mean")),
        x="n",
        y="S",
        colour="x",
        panel="d/n",
        log="xy",
        dashes="model",
        labels={"n": "number of words n", "S": "sensitivity S"},
        title="Sensitivity of softmax attention at temperature T = x / √(2 log n)",
        caption=f"{BARS} S is a lower bound. Dashed: the slope of 1 / ‖φ(X)‖ in the random energy "
        "model, a heuristic.",
    )
    return {"temperature": figure}


STUDY = Study(
    name="temperature",
    Cell=TemperatureCell,
    measure=measure,
    together=alike,
    measure_together=measure_together,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note="x = T √(2 log n). Columns are exponents in n, of least squares over draws and n, "
    f"{INTERVALS}: of S, a lower bound, the largest of all words; of the norm, ‖φ(X)‖ / √(nd); of "
    "the change, S times the norm; of S of the median word. Model: the random energy model, a "
    "heuristic.",
    value="word sensitivity S",
)
