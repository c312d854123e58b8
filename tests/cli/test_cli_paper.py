"""`wordsens paper`: results, figures and words; resumed after an interrupt."""

import json
import re

import pandas as pd
import pytest

import wordsens as ws
from wordsens.display.view import Finding
from wordsens.report.load import load_runs
from wordsens.report.tables import part_view
from wordsens.studies import (
    correlations,
    depth,
    generalization,
    generalization_words,
    sensitivity,
    several_words,
    similarity,
    symmetry,
    temperature,
)
from wordsens.studies.control import study as control
from wordsens.sweeps import run
from wordsens.sweeps.sweep import load_sweep

FEW = {"starts": 1, "steps": 3}
FIGURES = {
    "sensitivity": ["rf", "drf", "raf", "sensitivity"],
    "generalization": ["generalization-error-gaussian", "generalization-frontier-gaussian"],
    "depth": ["depth", "depth-average", "depth-context", "depth-model"],
    "similarity": ["similarity", "similarity-check", "similarity-sensitivity"],
    "control": [
        f"control-{name}"
        for name in ("accuracy", "along", "layers", "sensitivity", "target", "tradeoff")
    ],
}


@pytest.fixture(autouse=True)
def small_scales(monkeypatch):
    monkeypatch.setitem(
        sensitivity.PRESETS,
        "quick",
        [
            {"map": ["rf"], "n": [4, 6, 8], "d": [8], "draw": 2, **FEW, "words": {"sample": 2}},
            {"map": ["drf"], "n": [4, 6], "d": [8], "draw": 2, **FEW, "depth": [2]},
            {"map": ["raf", "relu-raf"], "n": [4, 8, 12], "d": [16], "draw": 2, **FEW},
        ],
    )
    monkeypatch.setitem(
        generalization.PRESETS,
        "quick",
        {"texts": [8], "d": 6, "sample": 1, "draw": 1, "held_out": 4, **FEW},
    )
    monkeypatch.setattr(generalization, "MAPS_AND_WORDS", (("raf", 4),))
    monkeypatch.setattr(generalization, "available", lambda source, n, *, labelled: 0)
    monkeypatch.setitem(
        correlations.PRESETS, "quick", (1, [{"map": ["rf", "raf"], "n": 8, "d": 12, **FEW}])
    )
    monkeypatch.setitem(
        several_words.PRESETS, "quick", (4, 8, 1, [{"map": "rf", **FEW}, {"map": "raf", **FEW}])
    )
    monkeypatch.setitem(symmetry.PRESETS, "quick", ([3, 4], 1, "quick"))
    monkeypatch.setitem(temperature.PRESETS, "quick", ((4, 6, 8), (1,), (0.5, 2.0), 1, ()))
    monkeypatch.setitem(
        depth.PRESETS,
        "quick",
        {
            "d": 8,
            "n": (4,),
            "layers": (1, 2),
            "draws": 1,
            "context": (0, 3),
            "trained": (4,),
        },
    )
    monkeypatch.setitem(
        similarity.PRESETS,
        "quick",
        {
            "n": (8,),
            "draws": 1,
            "count": 2,
            "lengths": ("question",),
            "of_a_kind": 2,
            "check_draws": 1,
            "every": 6,
            "maps": {"raf": {**FEW, "words": 1}},
            "pooled": {"pool": "mean", "words": 0},
        },
    )
    monkeypatch.setitem(
        control.PRESETS,
        "quick",
        {
            "draws": 1,
            "steps": 2,
            "n": [6, 8],
            "controlled": 6,
            "targets": [0.5, 1.0],
            "depths": ([6], 2),
            "layers": ["softmax"],
            "held": ["softmax"],
            "others": ["none"],
            "stacks": ({},),
            "along": ["softmax"],
        },
    )


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take most of the time of a small run; one test looks at them."""
    monkeypatch.setattr("wordsens.plotting.records.save_figures", lambda *_: [])


@pytest.mark.parametrize(
    "name",
    [
        "sensitivity",
        "several-words",
        "temperature",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("depth", "generalization", "correlations", "symmetry")
        ),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("similarity", "control")),
    ],
)
def test_the_answer_first_one_table_figures_and_the_report_s_sentences(wordsens, tmp_path, name):
    first = wordsens("paper", name, "--out", str(tmp_path), "--quiet")
    assert first.code == 0, first.err
    frame = pd.read_parquet(tmp_path / f"{name}.parquet")
    assert len(frame) == len(load_sweep(tmp_path / f"{name}.yaml").cells())
    assert set(frame["status"]) == {"done"}
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(
        f"{file}.{end}" for file in FIGURES.get(name, [name]) for end in ("pdf", "png", "svg")
    )
    document = json.loads(wordsens("paper", name, "--out", str(tmp_path), "--json", "--quiet").out)
    said = " ".join(first.out.split())
    if document["findings"]:
        assert said.startswith(" ".join(document["findings"][0]["sentence"].split())[:60])
    titles = [table["title"] for table in document["tables"]]
    shown = [
        title
        for title in titles
        if re.search(rf"^{re.escape(title)}(:|$)", first.out, re.MULTILINE)
    ]
    assert shown == titles[:1]
    everything = wordsens("paper", name, "--out", str(tmp_path), "--verbose", "--quiet").out
    assert all(title in everything for title in titles)
    (run,) = load_runs([tmp_path])
    parts = part_view(run.parts[0]).parts
    findings = [part.sentence for part in parts if isinstance(part, Finding)]
    assert findings == [claim["sentence"] for claim in document["findings"]]


def test_control_learns_the_labels_of_a_file_where_the_task_is_sentiment(
    wordsens, tmp_path, monkeypatch
):
    size = {"draws": 2, "n": 12, "training": 60, "targets": [0.5], "steps": {"softmax": 3}}
    monkeypatch.setitem(control.REAL, "quick", size)
    monkeypatch.setattr(control, "LEAST_TEXTS", 50)
    file = tmp_path / "reviews.csv"
    reviews = [(text.text, text.label) for text in ws.shipped_reviews()]
    pd.DataFrame(reviews, columns=["text", "label"]).to_csv(file, index=False)
    arguments = ("paper", "control", "--texts", str(file), "--out", str(tmp_path / "out"))
    run = wordsens(*arguments, "--task", "sentiment", "--quiet")
    assert run.code == 0, run.err
    frame = pd.read_parquet(tmp_path / "out" / "control.parquet")
    assert frame["status"].tolist() == ["done"] * 4
    assert frame["flipped_by_deletion"].between(0, 1).all()
    names = {path.stem for path in (tmp_path / "out" / "figures").iterdir()}
    assert names == {"control-sentiment", "control-target"}
    assert "Share of changed words that flip the label" in " ".join(run.out.split())


def test_overrides_change_the_cells(wordsens, tmp_path, no_figures):
    arguments = (
        "paper",
        "sensitivity",
        "n=[4, 5]",
        "map=raf",
        "d=6",
        "--out",
        str(tmp_path),
        "--json",
        "--quiet",
    )
    document = json.loads(wordsens(*arguments).out)
    assert document["cells"] == 2 * 2 * 2
    frame = pd.read_parquet(document["records"])
    assert (set(frame["map"]), set(frame["n"]), set(frame["d"])) == ({"raf"}, {4, 5}, {6})
    wrong = wordsens("paper", "sensitivity", "nn=4")
    assert (wrong.code, "`override` (='nn') must be one of" in wrong.err) == (2, True)


def test_words_changed_asks_how_many_words_are_noticed(wordsens, tmp_path, monkeypatch, no_figures):
    monkeypatch.setitem(generalization_words.PRESETS, "quick", ([4], 2, "quick"))
    arguments = ("paper", "generalization", "--words-changed", "3", "starts=1", "steps=3")
    document = json.loads(wordsens(*arguments, "--out", str(tmp_path), "--json", "--quiet").out)
    frame = pd.read_parquet(document["records"])
    assert (document["command"], len(frame)) == ("paper generalization", 2 * 2 * 2 * 2)
    assert (set(frame["count"]), set(frame["n"]), set(frame["d"])) == ({1, 2}, {4}, {8})
    assert document["tables"][0]["title"].startswith("k*") and len(document["findings"]) == 2


def test_an_interrupted_run_says_what_it_has_and_is_resumed(
    wordsens, tmp_path, monkeypatch, no_figures
):
    small = ("paper", "n=[4, 6]", "map=[rf, raf]", "--out", str(tmp_path))
    measured, seen = run._measured, []

    def interrupted(*arguments):
        seen.append(arguments)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return measured(*arguments)

    monkeypatch.setattr(run, "_measured", interrupted)
    stopped = wordsens(*small)
    assert stopped.code == 130
    assert "interrupted: 5 of 16 cells are finished in" in stopped.err
    assert "run the same command to continue" in stopped.err
    seen.clear()
    monkeypatch.setattr(
        run, "_measured", lambda *arguments: seen.append(arguments) or measured(*arguments)
    )
    resumed = wordsens(*small)
    assert (resumed.code, len(seen)) == (0, 11)
    assert "5 of 16 cells are in" in resumed.err


def test_a_failed_cell_is_told_after_everything_else(wordsens, tmp_path, monkeypatch, no_figures):
    measured = run._measured

    def failing(experiment, cells, *more):
        for cell, outcome in zip(cells, measured(experiment, cells, *more), strict=True):
            fails = cell.map == "rf" and cell.draw == 0
            yield run.failed(cell, "RuntimeError: out of luck") if fails else outcome

    monkeypatch.setattr(run, "_measured", failing)
    small = ("paper", "n=[4, 6]", "map=[rf, raf]", "--out", str(tmp_path))
    ended = wordsens(*small)
    assert ended.code == 1
    assert "wordsens: 4 of 16 cells failed, the first with RuntimeError: out of luck" in ended.err
    assert "Word sensitivity S" in ended.out
    monkeypatch.setattr(run, "_measured", measured)
    assert wordsens(*small, "--quiet").code == 0


def test_texts_of_ones_own(wordsens, no_figures, tmp_path):
    (tmp_path / "t.csv").write_text(
        "text\n" + "a good film that goes on and on and on until it stops\n" * 3
    )
    arguments = (
        "paper",
        "map=raf",
        "n=[4, 8]",
        "--texts",
        str(tmp_path / "t.csv"),
        "--out",
        str(tmp_path / "out"),
    )
    document = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    assert {row["text"] for row in document["tables"][0]["rows"]} == {"dataset", "gaussian"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--text-column", "review"],
            "--text-column (='review') goes with --texts; add that, or drop it",
        ),
        (
            ["--texts", "t.csv", "--labels", "liner"],
            "--labels (='liner') must be one of sentiment, linear, random",
        ),
        (
            ["depth", "--words-changed", "4"],
            "--words-changed (=4) goes with generalization; add that, or drop it",
        ),
        (
            ["generalization", "--words-changed", "4", "--as-published"],
            "--as-published (=True) goes with sensitivity and generalization",
        ),
        (["generalization", "--words-changed", "0"], "--words-changed (=0) must be"),
        (["--head", "3"], "--head (='3') goes with attention; add that, or drop it"),
        (
            ["attention", "I love her"],
            "attention takes two texts in quotes that differ in a word, or none; got 1: I love her",
        ),
        (
            ["attention", "I love her", "I LOVE her"],
            "reads the same as `first` to minilm; change a word",
        ),
        (
            ["attention", "--prompt", "a b", "--prompt", "a c"],
            "--prompt and --answer need a causal language model",
        ),
        (
            ["--style", "nowhere"],
            "--style (='nowhere') is neither a file nor a style of matplotlib",
        ),
        (["--workers", "2", "--scheduler", "tcp://a:1"], "both say where cells run"),
    ],
)
def test_wrong_options_are_one_line(wordsens, tmp_path, arguments, message):
    ended = wordsens("paper", *arguments, "--out", str(tmp_path / "out"))
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_everything_and_the_report(wordsens, tmp_path, monkeypatch):
    nothing = {"cells": 0, "tables": [], "note": "", "findings": [], "records": "", "figures": []}
    monkeypatch.setattr("wordsens.cli.paper._measured", lambda *_, **__: nothing)
    monkeypatch.setattr(ws, "write_report", lambda folders, path: path)
    ended = wordsens("paper", "all", "--out", str(tmp_path), "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    names = (
        "sensitivity",
        "generalization",
        "attention",
        "correlations",
        "several-words",
        "symmetry",
        "depth",
        "temperature",
    )
    assert [part["command"] for part in document["parts"]] == [
        f"paper {name}" for name in (*names, "similarity")
    ]
    assert document["report"] == str(tmp_path / "report.html")
