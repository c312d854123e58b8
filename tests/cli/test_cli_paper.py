"""`wordsens paper`: records, figures and words; resumed after an interrupt."""

import json
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from wordsens.cli.paper import sensitivity as paper_run
from wordsens.experiments.grid.sweep_file import load_sweep
from wordsens.experiments.sensitivity import cell as cell_module
from wordsens.experiments.sensitivity import preset as presets
from wordsens.experiments.sensitivity.preset import Part
from wordsens.experiments.store.store import read_records

_SEARCH = {"starts": 1, "steps": 3, "generations": 0}


@pytest.fixture(autouse=True)
def small_scale(monkeypatch):
    parts = (
        Part(("rf",), (4, 6, 8), (8,), 2, {**_SEARCH, "words": {"sample": 2}}),
        Part(("drf",), (4, 6), (8,), 2, _SEARCH, (2,)),
        Part(("raf", "relu-raf"), (4, 8, 12), (16,), 2, _SEARCH),
    )
    monkeypatch.setitem(presets.SCALES, "quick", parts)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take most of the time of a small run; one test looks at them."""
    monkeypatch.setattr(paper_run, "write_figures", lambda *_: [])


CELLS = 2 * (3 * 2 + 2 * 2 + 2 * 3 * 2)


def test_records_figures_and_a_table_of_exponents(wordsens, tmp_path):
    run = wordsens("paper", "sensitivity", "--scale", "quick", "--out", str(tmp_path))
    assert run.code == 0
    assert f"{CELLS} of {CELLS} cells after" in run.err
    records = read_records(tmp_path / "sensitivity.parquet")
    assert len(records) == len(list((tmp_path / "records").glob("*.parquet"))) == CELLS
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        f"{name}.{kind}" for name in ("drf", "raf", "rf") for kind in ("pdf", "png")
    ]
    assert (tmp_path / "figures" / "rf.pdf").read_bytes().startswith(b"%PDF")
    rows = re.findall(
        r"^(RF|DRF, L = 2|RAF \(softmax\)|ReLU-RAF) +(movie reviews|Gaussian texts) ", run.out, re.MULTILINE
    )
    assert len(rows) == 16
    assert len(set(rows)) == 8
    assert len(re.findall(r"-?\d\.\d{3} ± \d\.\d{3}", run.out)) >= 8
    assert "Against softmax attention, ReLU attention falls" in run.out
    assert "A random sample of each text's words searched: RF." in run.out
    assert str(tmp_path / "sensitivity.parquet") in run.out
    assert len(load_sweep(tmp_path / "sweep.yaml").cells()) == CELLS


def test_json_has_the_documented_keys(wordsens, no_figures, documented, tmp_path):
    run = wordsens("paper", "--scale", "quick", "--out", str(tmp_path), "--json", "--quiet")
    assert run.err == ""
    document = json.loads(run.out)
    assert list(document) == documented("The document of `paper`")
    assert document["cells"] == CELLS
    assert document["failed"] == []
    for series in document["series"]:
        assert list(series) == documented("Each of `series`")
    assert pq.read_schema(document["records"]).names == documented("The columns of the records")


def test_an_interrupted_run_is_resumed_with_the_same_values(wordsens, no_figures, tmp_path, monkeypatch):
    whole = wordsens("paper", "--out", str(tmp_path / "whole"), "--json", "--quiet")
    attempt = cell_module.attempt_cell
    seen = []

    def interrupted(cell, **options):
        seen.append(cell)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return attempt(cell, **options)

    monkeypatch.setattr(cell_module, "attempt_cell", interrupted)
    stopped = wordsens("paper", "--out", str(tmp_path / "halves"))
    assert stopped.code == 130
    assert stopped.out == ""
    assert f"interrupted: 5 of {CELLS} cells are finished in" in stopped.err
    assert "the same command goes on from there" in stopped.err
    assert "Traceback" not in stopped.err
    seen.clear()
    monkeypatch.setattr(
        cell_module, "attempt_cell", lambda cell, **options: seen.append(cell) or attempt(cell, **options)
    )
    resumed = wordsens("paper", "--out", str(tmp_path / "halves"), "--json")
    assert f"5 of {CELLS} cells are in" in resumed.err
    assert len(seen) == CELLS - 5
    assert json.loads(resumed.out)["series"] == json.loads(whole.out)["series"]
    values = [
        [record.value for record in read_records(tmp_path / name / "sensitivity.parquet")]
        for name in ("whole", "halves")
    ]
    assert values[0] == values[1]
    seen.clear()
    again = wordsens("paper", "--out", str(tmp_path / "halves"), "--json", "--quiet")
    assert seen == []
    assert again.out == resumed.out


def test_a_torn_shard_is_reported_and_measured_again(wordsens, no_figures, tmp_path):
    wordsens("paper", "--out", str(tmp_path), "--quiet")
    shard = next((tmp_path / "records").glob("*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    run = wordsens("paper", "--out", str(tmp_path))
    assert run.code == 0
    assert f"set aside: {shard.name} is not a whole Parquet file" in run.err
    assert len(read_records(tmp_path / "sensitivity.parquet")) == CELLS


def test_a_failed_cell_is_told_after_everything_else(wordsens, no_figures, tmp_path, monkeypatch):
    attempt = cell_module.attempt_cell

    def failing(cell, **options):
        record = attempt(cell, **options)
        if cell.map == "rf" and cell.n == 4 and cell.draw == 0:
            return replace(record, status="failed", value=None, error="RuntimeError: out of luck")
        return record

    monkeypatch.setattr(cell_module, "attempt_cell", failing)
    run = wordsens("paper", "--out", str(tmp_path))
    assert run.code == 1
    assert f"wordsens: 2 of {CELLS} cells failed, the first with RuntimeError: out of luck" in run.err
    assert "ReLU-RAF" in run.out
    monkeypatch.setattr(cell_module, "attempt_cell", attempt)
    assert wordsens("paper", "--out", str(tmp_path), "--quiet").code == 0


def test_data_of_ones_own(wordsens, no_figures, tmp_path):
    (tmp_path / "t.csv").write_text("text\n" + "a good film that goes on and on and on until it stops\n" * 3)
    run = wordsens("paper", "--data", str(tmp_path / "t.csv"), "--out", str(tmp_path / "out"), "--json", "--quiet")
    assert run.code == 0
    series = json.loads(run.out)["series"]
    assert {one["text"] for one in series} == {"dataset", "gaussian"}
    assert {one["texts"] for one in series if one["text"] == "dataset"} == {3}


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_stays_readable(wordsens, no_figures, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    run = wordsens("paper", "--out", "out", "--quiet")
    assert max(len(line) for line in run.out.splitlines()) <= int(columns)
    assert len(re.findall(r"^(?:RF|DRF|RAF|ReLU-RAF)\b.* ± \d\.\d{3} ", run.out, re.MULTILINE)) == 8


def test_progress_off_a_terminal_is_sparse(wordsens, no_figures, tmp_path):
    lines = wordsens("paper", "--out", str(tmp_path)).err.splitlines()
    assert 1 <= len(lines) <= 3
