"""`wordsens sweep`: run, stopped, resumed, watched, merged, exported."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from wordsens.experiments.dry_run.cell import DryRunRecord
from wordsens.experiments.store.store import RecordStore

SPEC = """\
name: small
kind: dry-run
grids:
  - draw: {range: [0, 5]}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SPEC)
    return tmp_path


def records(folder):
    return RecordStore(f"{folder}/dry-run-records", DryRunRecord, read_only=True).read()


def test_a_sweep_is_run_and_run_again(wordsens, here):
    run = wordsens("sweep", "run", "small.yaml")
    assert run.code == 0
    assert run.out.startswith("small: 6 cells done, 0 failed\n")
    assert "wordsens: 6 of 6 cells after" in run.err
    assert len(records("small")) == 6
    again = wordsens("sweep", "run", "small.yaml", "work=0", "--json")
    assert "6 of 6 cells are in small/dry-run-records already" in again.err
    document = json.loads(again.out)
    assert (document["cells"], document["done"], document["failed"]) == (6, 6, [])


def test_overrides_and_resume_go_on_with_what_the_folder_says(wordsens):
    wordsens("sweep", "run", "small.yaml", "draw=[7, 8]", "--out", "other", "--quiet")
    (torn,) = (
        RecordStore("other/dry-run-records", DryRunRecord).folder / f"{one.cell}.parquet"
        for one in records("other")[:1]
    )
    torn.write_bytes(torn.read_bytes()[:99])
    run = wordsens("sweep", "resume", "other", "--json")
    assert f"set aside: {torn.name} is not a whole Parquet file" in run.err
    assert json.loads(run.out)["cells"] == 2
    assert sorted(one.draw for one in records("other")) == [7, 8]


def test_the_folder_remembers_the_device_and_keeps_the_values_of_others(wordsens, here):
    # Torch knows the device "meta" everywhere, and can measure nothing on it.
    common = "common: {map: raf, n: 3, d: 4, text: gaussian, steps: 2}"
    (here / "a.yaml").write_text(f"name: a\n{common}\ngrids: [{{draw: [0, 1]}}]\n")
    assert wordsens("sweep", "run", "a.yaml", "--quiet").code == 0
    elsewhere = wordsens("sweep", "run", "a.yaml", "--device", "meta", "--quiet")
    assert elsewhere.code == 1
    assert "2 of 2 cells failed" in elsewhere.err
    status = json.loads(wordsens("sweep", "status", "a", "--json").out)
    assert (status["cells"], status["done"], len(status["failed"])) == (2, 0, 2)
    assert wordsens("sweep", "resume", "a", "--quiet").code == 1
    back = wordsens("sweep", "resume", "a", "--device", "cpu")
    assert back.code == 0
    assert "2 of 2 cells are in a/records already" in back.err
    assert json.loads(wordsens("sweep", "status", "a", "--json").out)["done"] == 2


def test_status_before_and_after(wordsens, here):
    before = wordsens("sweep", "status", "small.yaml")
    assert before.code == 0
    assert "small: 0 of 6 cells done (0%)" in before.out
    assert "go on with: wordsens sweep resume small" in before.out
    assert [path.name for path in here.iterdir()] == ["small.yaml"]
    wordsens("sweep", "run", "small.yaml", "draw=[0, 1]", "--quiet")
    document = json.loads(wordsens("sweep", "status", "small.yaml", "--json").out)
    assert {key: document[key] for key in ("cells", "done", "failed", "running", "to_come")} == {
        "cells": 6,
        "done": 2,
        "failed": [],
        "running": 0,
        "to_come": 4,
    }


def test_status_tells_torn_shards_and_leaves_them(wordsens, here):
    wordsens("sweep", "run", "small.yaml", "--quiet")
    shard = next((here / "small" / "dry-run-records").glob("*.parquet"))
    shard.write_bytes(b"garbage")
    run = wordsens("sweep", "status", "small")
    assert "5 of 6 cells done" in run.out
    assert f"set aside: {shard.name} is not a whole Parquet file" in run.err
    assert "left where it is" in run.err
    assert shard.read_bytes() == b"garbage"


def test_documents_have_the_documented_keys(wordsens, documented):
    for command, *more in (("run",), ("status",), ("fit", "--x", "draw")):
        document = json.loads(wordsens("sweep", command, "small.yaml", *more, "--json").out)
        assert list(document) == documented(f"The document of `sweep {command}`")


def test_a_failed_cell_is_told_and_tried_again(wordsens):
    run = wordsens("sweep", "run", "small.yaml", "fail=[true, false]", "draw=3", "--out", "f")
    assert run.code == 1
    assert "small: 1 cells done, 1 failed" in run.out
    assert "1 of 2 cells failed, the first with WordsensError: this cell of the dry run was told to fail" in run.err
    told = wordsens("sweep", "status", "f")
    assert "WordsensError: this cell of the dry run was told to fail" in told.out
    again = wordsens("sweep", "resume", "f")
    assert again.code == 1
    assert "1 of 2 cells are in" in again.err


def test_show(wordsens):
    run = wordsens("sweep", "show", "small.yaml", "seed=[1,2]")
    assert "small: 12 cells of kind dry-run" in run.out
    assert "0, 1, 2, 3, 4, 5" in run.out
    document = json.loads(wordsens("sweep", "show", "small.yaml", "--json").out)
    assert document["axes"] == {"draw": [0, 1, 2, 3, 4, 5]}
    assert len({cell["cell"] for cell in document["cells"]}) == 6
    names = wordsens("sweep", "show").out
    assert "paper-sensitivity-quick" in names
    assert "dry-run" in names
    assert "{kind: text, KEY: ...}" in names
    listed = json.loads(wordsens("sweep", "show", "--json").out)
    assert "dry-run" in listed["examples"]
    assert listed["texts"]["correlated"] == ["mean_cosine"]
    assert {"path", "text_column", "label_column", "split", "limit"} <= set(listed["texts"]["dataset"])
    assert listed["maps"]["drf"] == ["depth", "width", "activation", "gaussian"]


def test_export_and_merge(wordsens, here):
    wordsens("sweep", "run", "small.yaml", "draw=[0,1]", "--out", "a", "--quiet")
    wordsens("sweep", "run", "small.yaml", "draw=[1,2]", "--out", "b", "--quiet")
    merged = wordsens("sweep", "merge", "a", "b", "--out", "c")
    assert merged.out == "a: 2 dry-run records added, 0 known\nb: 1 dry-run records added, 1 known\n"
    assert "3 of 3 cells done" in wordsens("sweep", "status", "c").out
    for name in ("r.csv", "r.jsonl", "r.parquet"):
        assert wordsens("sweep", "export", "c", name).code == 0
    rows = list(csv.DictReader((here / "r.csv").read_text(encoding="utf-8").splitlines()))
    lines = [json.loads(line) for line in (here / "r.jsonl").read_text().splitlines()]
    expected = {one.cell: one.value for one in records("c")}
    assert {row["cell"]: float(row["value"]) for row in rows} == expected
    assert {line["cell"]: line["value"] for line in lines} == expected
    document = json.loads(wordsens("sweep", "export", "a", "all.csv", "--all", "--json").out)
    assert (document["records"], document["missing"]) == (2, 0)
    again = json.loads(wordsens("sweep", "merge", "a", "--out", "c", "--json").out)
    assert again["merged"] == [{"kind": "dry-run", "folder": "a", "added": 0, "known": 2, "different": []}]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "small.yaml", "darw=3"], "override darw=3: `key` (='darw') must be one of draw, seed, work,"),
        (["run", "smal"], "`spec` (='smal') must be one of paper-sensitivity-quick,"),
        (["run", "none.yaml"], "`path` (='none.yaml') cannot be read as a text file"),
        (["run", "."], "is a folder without sweep.yaml; name one that a sweep was run in"),
        (["run", "small.yaml", "--workers", "0"], "--workers (=0) must be a whole number, at least 1"),
        (
            ["run", "small.yaml", "--workers", "2", "--scheduler", "x"],
            "--workers and --scheduler both say where cells run",
        ),
        (["run", "small.yaml", "--threads", "0"], "--threads (=0) must be"),
        (["resume", "small.yaml"], "has nothing to go on with in small; start with: sweep run"),
        (["export", "small.yaml", "x.xls"], "`file` (='x.xls') must end with .parquet, .csv, .jsonl"),
        (["export", "small.yaml", "none/x.csv"], "lies in a folder that does not exist"),
        (["merge", "none", "--out", "c"], "`folder` (='none') has no records of a sweep"),
        (["rnu", "small.yaml"], "No such command 'rnu'"),
    ],
)
def test_wrong_input_is_one_line_and_code_2(wordsens, arguments, line):
    run = wordsens("sweep", *arguments)
    assert run.code == 2
    assert run.out == ""
    assert line in run.err
    assert run.err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "resume", "status", "show", "export", "merge", "plot", "fit"])
def test_help_has_an_example(wordsens, command):
    run = wordsens("sweep", command, "--help")
    assert run.code == 0
    assert f"wordsens sweep {command}" in run.out
    assert "--json" in run.out or command == "plot"


@pytest.mark.slow_cases("15-143")
@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_stop_a_run_and_its_workers_cleanly(here, sign, code):
    workers = ["--workers", "2"] if sign == signal.SIGINT else []
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "wordsens",
            "sweep",
            "run",
            "small.yaml",
            "pause=0.2",
            "draw={range: [0, 999]}",
            *workers,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell without job control has its background commands, this test among them, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    store = here / "small" / "dry-run-records"
    begin = time.monotonic()
    while len(list(store.glob("*.parquet"))) < 2 and time.monotonic() - begin < 60:
        time.sleep(0.02)
    status = subprocess.run(
        [sys.executable, "-m", "wordsens", "sweep", "status", "small"], capture_output=True, text=True, check=True
    )
    assert "a run is at work" in status.stdout
    # As a terminal does for Ctrl-C: to the workers too.
    os.killpg(process.pid, sign)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == ""
    finished = len(records("small"))
    assert f"interrupted: {finished} of 1000 cells are finished in small/dry-run-records" in err
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert [path.name for path in store.iterdir() if path.suffix == ".tmp"] == []
