"""What a user types in Python: a sweep, its DataFrame, figures of it, a summary."""

import pandas as pd
import pytest
import torch

import wordsens as ws
from tests.made_records import CELLS, measured
from wordsens.sweeps.measurement import SensitivityCell

GRID = {
    "map": ["rf", "raf"],
    "text": "gaussian",
    "n": [4, 6],
    "d": 6,
    "draw": [0, 1],
    "starts": 1,
    "steps": 2,
}


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    measured = ws.run_sweep({"name": "mine", "grids": [GRID]}, folder, ["draw=[0, 1, 2]"])
    pd.testing.assert_frame_equal(measured, ws.read_records(folder))
    return measured


def test_a_sweep_gives_a_frame(frame):
    assert len(frame) == 12
    assert set(frame["map"]) == {"rf", "raf"}
    assert (frame["value"] >= frame["average"]).all() and (frame["average"] > 0).all()
    assert (frame["value"] <= frame["upper"]).all()
    assert frame["code"].nunique() == 1 and len(frame["code"][0]) == 12


def test_figures_take_the_frame_or_a_part_of_it(frame):
    assert ws.plotting.of_experiment(frame)["rf"].axes[0].get_xlabel() == "words n"
    assert ws.plotting.along(frame, "n").axes[0].get_ylabel() == "word sensitivity S"
    figure = ws.plotting.along(frame[frame["map"] == "rf"], "n", "evaluations")
    assert figure.axes[0].get_ylabel() == "evaluations"
    assert "None" not in " ".join(text.get_text() for text in figure.legends[0].get_texts())
    assert list(ws.plotting.of_experiment(frame)) == ["sensitivity", "rf", "raf"]


def test_the_attention_of_a_row_is_drawn(tmp_path):
    frame = ws.run_sweep(
        {"name": "pair", "experiment": "attention", "grids": [CELLS["attention"]]}, tmp_path
    )
    assert ws.plotting.of_experiment(frame)["attention"].axes[2].get_title() == "second minus first"


def test_a_summary_shows_itself(frame):
    summary = ws.summarize(frame)
    assert list(summary.table()["map"]) == ["RF", "RAF (softmax)"]
    assert str(summary).startswith("One word moves attention")
    assert r"\begin{tabular}" in summary.table().to_latex()
    assert "<table" in summary._repr_html_()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda frame: ws.plotting.of_experiment(frame[["map", "n", "value"]]),
            "has no column cell, experiment, spec",
        ),
        (lambda frame: ws.plotting.along(frame, "m"), "`x` (='m') must be one of"),
        (
            lambda frame: ws.summarize(frame[frame["n"] > 9]),
            "must be finished ones of one experiment",
        ),
        (lambda frame: ws.run_sweep({"nam": "a", "grids": [GRID]}), "did you mean 'name'?"),
        (
            lambda frame: ws.run_sweep({"name": "a", "grids": [{**GRID, "n": "4,6"}]}),
            "several values are a list",
        ),
    ],
)
def test_a_mistake_is_one_line(frame, use, message):
    with pytest.raises(ws.InputError) as error:
        use(frame)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_average_case_of_a_linear_layer_is_the_frobenius_norm():
    """E ‖W Delta‖² = radius² ‖W‖_F² / d for Delta uniform on the sphere."""
    cell = SensitivityCell.parse(
        {"map": "rf", "activation": "identity", "n": 8, "d": 16, "text": "gaussian"}
    )
    blocks = cell.build().weights[0].double().reshape(-1, 8, 16).unbind(1)
    average = sum(float(block.norm()) for block in blocks) / 8 / 16**0.5
    largest = max(float(torch.linalg.matrix_norm(block, 2)) for block in blocks)
    record = measured(cell)
    assert record.average / record.value == pytest.approx(average / largest, rel=0.05)
