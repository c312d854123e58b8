"""S against n at x = T √(2 log n): a cell against plain numpy, the random energy model against
quadrature, and what tables, sentences and figures make of known records."""

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


def mean_of_squared_weights(x, log_n):
    """E Σ p² of the softmax of n iid N(0, 1) scores at T = x / √(2 log n), by quadrature of
    n ∫ λ E[w² e^(-λ w)] E[e^(-λ w)]^(n - 1) dλ, w = e^(s / T), λ = e^(-t / T), for large n."""
    largest = np.sqrt(2 * log_n)
    step = 0.2 * x / largest
    scores = np.arange(-4, 3 * largest, step)
    density = np.exp(log_n - scores**2 / 2) * step / np.sqrt(2 * np.pi)
    u = 0.2 * np.arange(1 - len(scores), len(scores))[::-1]  # (s - t) / T
    with np.errstate(over="ignore"):
        of_one, of_square = -np.expm1(-np.exp(u)), np.exp(2 * u - np.exp(u))
    ones, squares = (np.convolve(density, kernel, "valid") for kernel in (of_one, of_square))
    return 0.2 * (squares * np.exp(-ones)).sum()


@pytest.mark.parametrize("x", [0.5, 1.2, 1.5, 2.6, 4.0])
def test_the_model_is_half_the_exponent_of_the_mean_sum_of_squared_weights(x):
    # log E Σ p² = a log n + b log log n + c: the last two fall out of second differences.
    first, second, third = (np.log(mean_of_squared_weights(x, log_n)) for log_n in (50, 100, 200))
    exponent = (third - 2 * second + first) / 50
    assert predicted_exponent(x) == pytest.approx(exponent / 2, abs=0.003)


def test_the_quadrature_is_the_mean_over_drawn_scores():
    # Seed 0; 40,000 rows: a standard error of 0.4 %; e^-q for (1 - q/n)^n is 1 % more at n = 64.
    scores = np.random.default_rng(0).normal(size=(40_000, 64))
    weights = np.exp(scores * np.sqrt(2 * np.log(64)) / 1.5)
    drawn = ((weights / weights.sum(axis=1, keepdims=True)) ** 2).sum(axis=1).mean()
    assert mean_of_squared_weights(1.5, np.log(64)) == pytest.approx(drawn, rel=0.03)


@pytest.mark.parametrize(
    ("x", "written"), [(0.5, -0.02), (1.0, -0.07), (1.5, -0.15), (2.5, -0.33), (4.0, -0.43)]
)
def test_drawn_scores_have_the_exponents_of_the_page(x, written):
    # Seed 0; 20,000 rows scatter an exponent by about .002; written with two digits.
    random, lengths, norms = np.random.default_rng(0), (16, 32, 64, 128, 256), []
    for n in lengths:
        weights = np.exp(random.normal(size=(20_000, n)) * np.sqrt(2 * np.log(n)) / x)
        shares = weights / weights.sum(axis=1, keepdims=True)
        norms.append(np.sqrt((shares**2).sum(axis=1).mean()))
    assert np.polyfit(np.log(lengths), np.log(norms), 1)[0] == pytest.approx(written, abs=0.012)


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
    sides, model = STUDY.summary(records({0.5: -0.1, 1.0: 0.0, 2.5: 0.34})).findings
    assert "x < 1: it falls in 1 of 1" in sides.sentence
    assert "x = 1: no difference is claimed in 1" in sides.sentence
    assert "x > 1: it grows in 1 of 1" in sides.sentence
    assert "in 2 of 3 settings" in model.sentence
    apart = re.search(r"at most ([\d.]+)\.", model.sentence)
    assert apart and float(apart[1]) == pytest.approx(0.1, abs=0.01)
    assert len(model.rows) == 48
    other, _ = STUDY.summary(records({0.5: 0.1, 2.5: -0.2})).findings
    assert "x < 1: it grows" in other.sentence and "x > 1: it falls" in other.sentence


def test_dashes_have_the_models_slope_whatever_was_measured():
    figure = STUDY.figures(records({1.0: -0.2, 2.0: 0.9}))["temperature"]
    dashed = [line for line in figure.axes[0].lines if line.is_dashed()]
    slopes = [np.polyfit(*np.log([line.get_xdata(), line.get_ydata()]), 1)[0] for line in dashed]
    assert slopes == pytest.approx([0.0, 0.25], abs=1e-9)


def test_a_record_is_kept_whole():
    record = measured(TemperatureCell.parse({**SMALL, "temperature": 0.5}))
    assert record.temperature == 0.5 and record.norm > 0 and record.upper is None
