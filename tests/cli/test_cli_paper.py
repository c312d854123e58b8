"""`wordsens paper`: records, figures and words; resumed after an interrupt."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from wordsens.cli.paper import sensitivity as paper_sensitivity
from wordsens.experiments.grid.sweep_file import load_sweep
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.sensitivity import preset as presets
from wordsens.experiments.sensitivity.preset import Part
from wordsens.experiments.sensitivity.record import SensitivityRecord
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
    monkeypatch.setattr(paper_sensitivity, "write_figures", lambda *_: [])


_FINISHED = []


@pytest.fixture
def finished(wordsens, no_figures, tmp_path, tmp_path_factory):
    """The folder of a finished run: measured once, a copy for every test."""
    if not _FINISHED:
        folder = tmp_path_factory.mktemp("finished") / "out"
        assert wordsens("paper", "--out", str(folder), "--quiet").code == 0
        _FINISHED.append(folder)
    return Path(shutil.copytree(_FINISHED[0], tmp_path / "finished"))


CELLS = 2 * (3 * 2 + 2 * 2 + 2 * 3 * 2)


@pytest.mark.slow
def test_records_figures_and_a_table_of_exponents(wordsens, tmp_path):
    run = wordsens("paper", "sensitivity", "--scale", "quick", "--out", str(tmp_path))
    assert run.code == 0
    assert f"{CELLS} of {CELLS} cells after" in run.err
    records = read_records(tmp_path / "sensitivity.parquet", SensitivityRecord)
    assert len(records) == len(list((tmp_path / "records").glob("*.parquet"))) == CELLS
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        f"{name}.{kind}" for name in ("drf", "raf", "rf", "sensitivity") for kind in ("pdf", "png", "svg")
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


def test_json_has_the_documented_keys(wordsens, finished, documented):
    run = wordsens("paper", "--scale", "quick", "--out", str(finished), "--json", "--quiet")
    assert run.err == ""
    document = json.loads(run.out)
    assert list(document) == documented("The document of `paper`")
    assert document["cells"] == CELLS
    assert document["failed"] == []
    for series in document["series"]:
        assert list(series) == documented("Each of `series`")
    assert pq.read_schema(document["records"]).names == documented("The columns of the records")


@pytest.mark.slow
def test_an_interrupted_run_is_resumed_with_the_same_values(wordsens, finished, tmp_path, monkeypatch):
    whole = wordsens("paper", "--out", str(finished), "--json", "--quiet")
    attempt = CellKind.attempt
    seen = []

    def interrupted(kind, cell, **options):
        seen.append(cell)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return attempt(kind, cell, **options)

    monkeypatch.setattr(CellKind, "attempt", interrupted)
    stopped = wordsens("paper", "--out", str(tmp_path / "halves"))
    assert stopped.code == 130
    assert stopped.out.startswith(f"5 of {CELLS} cells are finished; of these:")
    assert len(read_records(tmp_path / "halves" / "sensitivity.parquet", SensitivityRecord)) == 5
    assert f"interrupted: 5 of {CELLS} cells are finished in" in stopped.err
    assert "the same command goes on from there" in stopped.err
    assert "Traceback" not in stopped.err
    seen.clear()
    monkeypatch.setattr(
        CellKind, "attempt", lambda kind, cell, **options: seen.append(cell) or attempt(kind, cell, **options)
    )
    resumed = wordsens("paper", "--out", str(tmp_path / "halves"), "--json")
    assert f"5 of {CELLS} cells are in" in resumed.err
    assert len(seen) == CELLS - 5
    assert json.loads(resumed.out)["series"] == json.loads(whole.out)["series"]
    values = [
        [record.value for record in read_records(folder / "sensitivity.parquet", SensitivityRecord)]
        for folder in (finished, tmp_path / "halves")
    ]
    assert values[0] == values[1]
    seen.clear()
    again = wordsens("paper", "--out", str(tmp_path / "halves"), "--json", "--quiet")
    assert seen == []
    assert again.out == resumed.out


def test_a_torn_shard_is_reported_and_measured_again(wordsens, finished):
    shard = next((finished / "records").glob("*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    run = wordsens("paper", "--out", str(finished))
    assert run.code == 0
    assert f"set aside: {shard.name} is not a whole Parquet file" in run.err
    assert len(read_records(finished / "sensitivity.parquet", SensitivityRecord)) == CELLS


def test_a_failed_cell_is_told_after_everything_else(wordsens, finished, monkeypatch):
    for record in read_records(finished / "sensitivity.parquet", SensitivityRecord):
        if record.map == "rf" and record.n == 4:
            (finished / "records" / f"{record.cell}.parquet").unlink()
    attempt = CellKind.attempt

    def failing(kind, cell, **options):
        record = attempt(kind, cell, **options)
        if cell.map == "rf" and cell.n == 4 and cell.draw == 0:
            return replace(record, status="failed", value=None, error="RuntimeError: out of luck")
        return record

    monkeypatch.setattr(CellKind, "attempt", failing)
    run = wordsens("paper", "--out", str(finished))
    assert run.code == 1
    assert f"wordsens: 2 of {CELLS} cells failed, the first with RuntimeError: out of luck" in run.err
    assert "ReLU-RAF" in run.out
    monkeypatch.setattr(CellKind, "attempt", attempt)
    assert wordsens("paper", "--out", str(finished), "--quiet").code == 0


@pytest.mark.slow
def test_data_of_ones_own(wordsens, no_figures, tmp_path):
    (tmp_path / "t.csv").write_text("text\n" + "a good film that goes on and on and on until it stops\n" * 3)
    run = wordsens("paper", "--data", str(tmp_path / "t.csv"), "--out", str(tmp_path / "out"), "--json", "--quiet")
    assert run.code == 0
    series = json.loads(run.out)["series"]
    assert {one["text"] for one in series} == {"dataset", "gaussian"}
    assert {one["texts"] for one in series if one["text"] == "dataset"} == {3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text-column", "review"], "--text-column (='review') is for the texts of --data; name them, or drop it"),
        (["--data", "t.csv", "--labels", "liner"], "--labels (='liner') must be one of sentiment, linear, random"),
        (["--limit", "0"], "--limit (=0) must be a whole number, at least 1"),
    ],
)
def test_wrong_options_of_the_data(wordsens, arguments, message):
    run = wordsens("paper", *arguments)
    assert run.code == 2
    assert message in run.err


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_stays_readable(wordsens, finished, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(finished.parent)
    run = wordsens("paper", "--out", finished.name, "--quiet")
    assert max(len(line) for line in run.out.splitlines()) <= int(columns)
    assert len(re.findall(r"^(?:RF|DRF|RAF|ReLU-RAF)\b.* ± \d\.\d{3} ", run.out, re.MULTILINE)) == 8


@pytest.mark.slow
def test_progress_off_a_terminal_is_sparse(wordsens, no_figures, tmp_path):
    lines = wordsens("paper", "--out", str(tmp_path)).err.splitlines()
    assert 1 <= len(lines) <= 3
