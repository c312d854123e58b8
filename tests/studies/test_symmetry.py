"""The symmetry study: cells by definition, the grids, and what its records say."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from wordsens.studies.symmetry import PRESETS, STUDY, SymmetryCell
from wordsens.sweeps.sweep import paper_sweep

SMALL = {"map": "transformer", "depth": 1, "norm": None, "values": False, "n": 6, "d": 6}
SMALL |= {"text": "gaussian", "search": "quick"}


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("attention", ["l2", "normalized-dot", "dot"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_value_and_the_column_are_those_of_the_kept_witness(residual, attention, tied):
    """In NumPy: queries, keys and weights from their formulas."""
    keys = {"residual": residual, "attention": attention, "tied": tied, "temperature": 0.8}
    cell = SymmetryCell.parse(SMALL | keys)
    columns = STUDY.measure(cell)
    kept, layer = columns["arrays"], cell.build().layers[0]
    before = kept["rows"].numpy()
    after = before.copy()
    after[columns["moved"]] += kept["perturbations"][0].numpy()

    def weights(rows):
        if attention == "dot":
            scores = rows @ layer.scores[0].numpy() @ rows.T / math.sqrt(6)
        else:
            queries, keys = (rows @ part[0].numpy() for part in (layer.queries, layer.keys))
            if attention == "normalized-dot":
                queries, keys = (
                    6**0.25 * part / np.linalg.norm(part, axis=1, keepdims=True)
                    for part in (queries, keys)
                )
                scores = queries @ keys.T
            else:
                scores = -((queries[:, None] - keys) ** 2).sum(axis=2) / (2 * math.sqrt(6))
        exps = np.exp(scores / 0.8)
        return exps / exps.sum(axis=1, keepdims=True)

    old, new = (residual * rows + weights(rows) @ rows for rows in (before, after))
    assert columns["value"] == pytest.approx(np.linalg.norm(new - old) / np.linalg.norm(old))
    assert columns["column"] == pytest.approx((weights(after)[:, columns["moved"]] ** 2).sum())
    assert (columns["upper"] is not None) == (tied and attention != "dot")
    if columns["upper"] is not None:
        assert columns["value"] <= columns["upper"] and columns["column"] <= 1


def test_the_grid_is_d_equal_to_n_with_every_option_at_three_temperatures():
    sweep, notices = paper_sweep("symmetry", "laptop")
    cells, (lengths, draws, _) = sweep.cells(), PRESETS["laptop"]
    assert notices == [] and len(set(cells)) == len(cells) == 36 * draws * len(lengths)
    assert all(cell.d == cell.n and cell.values is False and cell.depth == 1 for cell in cells)
    options = {(cell.attention, cell.tied, cell.residual) for cell in cells}
    assert len(options) == 12
    at_forty = sorted({cell.temperature for cell in cells if cell.n == 40})
    assert at_forty == pytest.approx([1.0, math.sqrt(40) / math.log(40), math.sqrt(40)])


def made(slope, scale=1.0, draws=5, sizes=(10, 40, 160), **keys):
    """Records with S = scale n^slope, a tenth up or down by draw."""
    cell = {"tied": True, "attention": "l2", "residual": True, "temperature": 1.0, "column": 0.5}
    cell |= {"seed": 0, "spec": "{}"} | keys
    certified = cell["tied"] and cell["attention"] != "dot"
    return [
        {**cell, "n": n, "d": n, "draw": draw, "upper": 5 * n**-0.5 if certified else None}
        | {"value": scale * n**slope * (0.9 + 0.05 * draw)}
        | {"cell": json.dumps([list(map(str, cell.values())), n, draw])}
        for n in sizes
        for draw in range(draws)
    ]


RECORDS = [
    *made(-0.5),
    *made(-0.1, tied=False, column=3.0),
    *made(-0.5, tied=True, temperature=2.0, residual=False),
    *made(-0.5, scale=0.5, tied=False, temperature=2.0, residual=False),
]


def test_exponents_rows_and_findings():
    summary = STUDY.summary(pd.DataFrame(RECORDS))
    rows = summary.table().set_index(["attention", "temperature", "residual"])
    assert [name for name, _, _ in rows.index] == 2 * ["tied l2", "untied l2"]
    assert [temperature for _, temperature, _ in rows.index] == ["1", "1", "2", "2"]
    assert rows["exponent"]["tied l2", "1", "yes"] == pytest.approx(-0.5)
    assert rows["exponent"]["untied l2", "1", "yes"] == pytest.approx(-0.1)
    assert rows["S, n = 160"]["tied l2", "1", "yes"] == pytest.approx(160**-0.5)
    assert summary.table(1)["draws"].sum() == len(RECORDS)  # every record is in one row
    exponents, compared, columns = summary.findings
    assert "tied l2 −0.5" in exponents.sentence and "untied l2 −0.1" in exponents.sentence
    assert len(exponents.rows) == 30
    assert "temperature 1 larger in 1 of 1" in compared.sentence
    assert "temperature 2 smaller in 1 of 1" in compared.sentence and len(compared.rows) == 20
    assert "at most 0.5" in columns.sentence and "up to 3" in columns.sentence


def test_temperatures_that_follow_d_are_one_series_and_others_are_their_numbers():
    warm = [
        record
        for n in (10, 40, 160)
        for record in made(-0.5, sizes=(n,), temperature=math.sqrt(n) / math.log(n))
    ]
    rows = STUDY.summary(pd.DataFrame(warm)).table()
    assert rows["temperature"].tolist() == ["√d / log n"]
    assert rows["exponent"].tolist() == pytest.approx([-0.5])
    fixed = STUDY.summary(pd.DataFrame(made(-0.5, temperature=3.0))).table()
    assert fixed["temperature"].tolist() == ["3"]


def test_the_figure_shows_the_mean_of_every_setting_at_its_temperatures():
    records = pd.DataFrame(RECORDS)
    (axes,) = STUDY.figures(records)["symmetry"].axes
    assert axes.get_title() == "l2, T = 1"
    curves = {bars.get_label(): bars.lines[0].get_ydata() for bars in axes.containers}
    assert set(curves) == {"tied", "untied"}
    means = records[(records["temperature"] == 1) & ~records["tied"]].groupby("n")["value"].mean()
    assert curves["untied"] == pytest.approx(means.to_numpy())
