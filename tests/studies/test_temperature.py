"""S against n at x = T √(2 log n): a cell against plain numpy, the random energy model against its
saddle points, and what tables, sentences and figures make of known records."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.made_records import measured
from wordsens.studies.temperature import STUDY, TemperatureCell, predicted_exponent, preset
from wordsens.sweeps.texts import ShippedText

SMALL = {"map": "raf", "n": 6, "d": 8, "text": "gaussian", "search": "quick"}


def attention(rows, weight, temperature):
    """softmax(X W X^T / (T √d)) X."""
    scores = rows @ weight @ rows.T / (temperature * np.sqrt(rows.shape[1]))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ rows


@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_s_and_the_norm_are_those_of_plain_attention_at_that_temperature(temperature):
    cells = [
        TemperatureCell.parse({**SMALL, "temperature": temperature, "draw": k}) for k in (0, 1)
    ]
    for cell, columns in zip(cells, STUDY.measure_together(cells), strict=True):
        rows, weight = columns["arrays"]["rows"].numpy(), cell.build().weight.numpy()
        before = attention(rows, weight, temperature)
        assert columns["norm"] == pytest.approx(np.linalg.norm(before) / np.sqrt(48), rel=1e-12)
        moved = rows.copy()
        moved[columns["word"]] += columns["arrays"]["perturbations"][columns["word"]].numpy()
        change = np.linalg.norm(attention(moved, weight, temperature) - before)
        assert columns["value"] == pytest.approx(change / np.linalg.norm(before), rel=1e-9)
        alone = STUDY.measure(cell)
        assert (alone["norm"], alone["value"]) == pytest.approx((columns["norm"], columns["value"]))


@pytest.mark.parametrize("x", [0.3, 1.0, 1.2, 1.7, 2.0, 2.6, 4.0, 9.0])
def test_the_model_is_half_the_exponent_of_the_sum_of_squared_weights(x):
    # Of n N(0, 1) energies n^(1 - e²) lie at e √(2 log n), e <= 1. Their weights at the inverse
    # temperature b √(2 log n) sum to n^f(b), f the largest 1 - e² + 2 b e; the sum of the squared
    # shares is Z(2b) / Z(b)².
    energies = np.linspace(0, 1, 100_001)

    def exponent(inverse):
        return (1 - energies**2 + 2 * inverse * energies).max()

    shares = exponent(2 / x) - 2 * exponent(1 / x)
    assert predicted_exponent(x) == pytest.approx(shares / 2, abs=1e-6)


@pytest.mark.parametrize("scale", ["quick", "laptop", "full"])
def test_presets_have_every_x_and_ratio_at_every_length(scale):
    grids, notices = preset(scale, ShippedText(), 0, None)
    places = [
        {round(T * np.sqrt(2 * np.log(grid["n"])), 9) for T in grid["temperature"]}
        for grid in grids
    ]
    assert not notices and all(of_grid == places[0] for of_grid in places)
    assert {grid["d"] % grid["n"] for grid in grids} == {0}


def records(slopes, scatter=0.01):
    """Made up: S = n^slope and the norm n^-slope / 10 for each x, at d = 2 n."""
    random = np.random.default_rng(0)
    rows = []
    for x, slope in slopes.items():
        for n in (16, 32, 64, 128):
            for draw in range(4):
                size = n**slope * np.exp(scatter * random.normal())
                rows.append(
                    {"cell": f"{x} {n} {draw}", "map": "raf", "text": "gaussian", "n": n}
                    | {"d": 2 * n, "temperature": x / np.sqrt(2 * np.log(n)), "draw": draw}
                    | {"value": size, "median_word": size / 2, "norm": 0.1 / size, "spec": "{}"}
                )
    return pd.DataFrame(rows)


def test_tables_recover_x_the_ratio_and_the_exponents_and_lose_no_draw():
    summary = STUDY.summary(records({0.5: -0.1, 1.0: 0.0, 2.5: 0.34}))
    growth, points = summary.table(), summary.table(1)
    assert growth["x"].tolist() == [0.5, 1.0, 2.5] and set(growth["d/n"]) == {2}
    assert growth["S"].tolist() == pytest.approx([-0.1, 0.0, 0.34], abs=0.01)
    assert growth["norm"].tolist() == pytest.approx([0.1, 0.0, -0.34], abs=0.01)
    assert growth["change"].tolist() == pytest.approx([0.0] * 3, abs=1e-9)
    assert growth["model of norm"].tolist() == pytest.approx([0.0, 0.0, -0.34])
    assert points["draws"].sum() == 48 and len(points) == 12


def test_sentences_follow_the_intervals():
    sides, model, largest = STUDY.summary(records({0.5: -0.1, 1.0: 0.0, 2.5: 0.34})).findings
    assert "x < 1: it falls in 1 of 1" in sides.sentence
    assert "x = 1: no difference is claimed in 1" in sides.sentence
    assert "x > 1: it grows in 1 of 1" in sides.sentence
    assert "in 2 of 3 settings" in model.sentence
    apart = re.search(r"at most ([\d.]+)\.", model.sentence)
    assert apart and float(apart[1]) == pytest.approx(0.1, abs=0.01)
    assert "x = 2.5 in 4 of 4 sizes" in largest.sentence and len(largest.rows) == 48
    other, _, _ = STUDY.summary(records({0.5: 0.1, 2.5: -0.2})).findings
    assert "x < 1: it grows" in other.sentence and "x > 1: it falls" in other.sentence


def test_dashes_have_the_models_slope_whatever_was_measured():
    figure = STUDY.figures(records({1.0: -0.2, 2.0: 0.9}))["temperature"]
    dashed = [line for line in figure.axes[0].lines if line.is_dashed()]
    slopes = [np.polyfit(*np.log([line.get_xdata(), line.get_ydata()]), 1)[0] for line in dashed]
    assert slopes == pytest.approx([0.0, 0.25], abs=1e-9)


def test_a_record_is_kept_whole():
    record = measured(TemperatureCell.parse({**SMALL, "temperature": 0.5}))
    assert record.temperature == 0.5 and record.norm > 0 and record.upper is None
