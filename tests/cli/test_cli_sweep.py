"""`wordsens sweep`: run, watched, exported, drawn."""

import json

import pandas as pd
import pytest

from tests.sweeps.squares import SquareCell

SPEC = f"name: small\nexperiment: {SquareCell.experiment}\ngrids: [{{draw: [0, 1, 2, 3, 4, 5]}}]\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SPEC)
    return tmp_path


def test_a_sweep_is_run_and_run_again(wordsens):
    run = wordsens("sweep", "run", "small.yaml")
    assert run.code == 0
    assert run.out.startswith("small: 6 cells done, 0 failed\n")
    assert "wordsens: 6 of 6 cells after" in run.err
    again = wordsens("sweep", "run", "small", "--json")
    assert "6 of 6 cells are in small already" in again.err
    document = json.loads(again.out)
    assert (document["cells"], document["done"], document["failed"]) == (6, 6, [])
    more = wordsens("sweep", "run", "small", "draw=[5, 6]")
    assert "1 of 2 cells are in small already" in more.err


def test_status_says_how_far_a_run_is(wordsens):
    wordsens("sweep", "run", "small.yaml", "draw=[0, 1]", "--quiet")
    assert (
        "small: 2 of 6 cells done (33%)\n0 failed, 4 to come"
        in wordsens("sweep", "status", "small.yaml").out
    )
    document = json.loads(wordsens("sweep", "status", "small.yaml", "--json").out)
    assert {key: document[key] for key in ("cells", "done", "failed", "to_come")} == {
        "cells": 6,
        "done": 2,
        "failed": [],
        "to_come": 4,
    }


def test_a_failed_cell_is_told_and_tried_again(wordsens):
    run = wordsens("sweep", "run", "small.yaml", "fails=[true, false]", "draw=3", "--out", "f")
    assert run.code == 1
    assert "small: 1 cells done, 1 failed" in run.out
    assert "1 of 2 cells failed, the first with ValueError: it was told to" in run.err
    assert "ValueError: it was told to" in wordsens("sweep", "status", "f").out
    assert "1 of 2 cells are in f already" in wordsens("sweep", "run", "f").err


def test_every_cell_is_done_failed_or_to_come(wordsens):
    wordsens("sweep", "run", "small.yaml", "fails=[true, false]", "draw=3", "--out", "f", "--quiet")
    grid = ("small.yaml", "fails=[true, false]", "draw=[3, 4, 5]", "--out", "f", "--json")
    document = json.loads(wordsens("sweep", "status", *grid).out)
    counts = (document["done"], len(document["failed"]), document["to_come"])
    assert (document["cells"], counts) == (6, (1, 1, 4))


def test_export_writes_both_tables(wordsens, here):
    wordsens("sweep", "run", "small.yaml", "--quiet")
    (here / "tables").mkdir()
    document = json.loads(wordsens("sweep", "export", "small", "--out", "tables", "--json").out)
    (file,) = document["files"]
    assert pd.read_parquet(file)["value"].sum() == 55
    assert pd.read_csv(file.replace(".parquet", ".csv"))["draw"].tolist() == list(range(6))


def test_plot_prints_the_exponents(wordsens, here):
    wordsens("sweep", "run", "small.yaml", "draw=[1, 2, 4]", "--quiet")
    run = wordsens("sweep", "plot", "small", "--x", "draw")
    assert "2.00 [2.00, 2.00]" in run.out
    assert (
        (here / "small" / "figures" / "value-against-draw.png").read_bytes().startswith(b"\x89PNG")
    )


def test_documents_have_the_documented_keys(wordsens):
    for command, *more in (("run",), ("status",), ("plot", "--x", "draw")):
        document = json.loads(wordsens("sweep", command, "small.yaml", *more, "--json").out)
        assert document["command"] == f"sweep {command}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.yaml"], "`spec` (='none.yaml') cannot be read as a text file"),
        (["run", "small.yaml", "drow=3"], "`override` (='drow') must be one of"),
        (["run", "small.yaml", "--scheduler", "tcp://127.0.0.1:9"], "does not answer"),
        (["status", "small.yaml"], "holds no results.sqlite"),
        (["export", "small.yaml"], "is no folder"),
    ],
)
def test_mistakes_are_one_line(wordsens, here, monkeypatch, arguments, message):
    monkeypatch.setattr("wordsens.sweeps.run._CONNECT_SECONDS", 0.5)
    (here / "other.yaml").write_text(SPEC)
    run = wordsens("sweep", *arguments)
    assert (run.code, run.out) == (2, "")
    assert message in run.err
    assert run.err.count("\n") == 1
