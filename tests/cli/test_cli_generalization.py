"""`wordsens paper generalization`: records, figures and words; resumed after an interrupt."""

import json

import pyarrow.parquet as pq
import pytest

from wordsens.cli.paper import generalization as paper_generalization
from wordsens.experiments.generalization import preset as generalization_preset
from wordsens.experiments.generalization.preset import Scale
from wordsens.experiments.kinds import CellKind

CELLS = 1 * 1 * 2 * 5
SMALL = Scale((8,), 6, 1, 1, 4, {"starts": 2, "steps": 3, "generations": 0})


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """One small map on Gaussian texts, and no shipped reviews."""
    monkeypatch.setitem(generalization_preset.SCALES, "quick", SMALL)
    monkeypatch.setattr(generalization_preset, "MAPS_AND_WORDS", (("raf", 4),))
    monkeypatch.setattr(generalization_preset, "available", lambda source, n, *, labelled: 0)


@pytest.mark.slow
def test_records_figures_and_a_table_are_written(wordsens, tmp_path):
    run = wordsens("paper", "generalization", "--out", str(tmp_path))
    assert run.code == 0, run.err
    said = " ".join(run.out.split())
    assert "raf gaussian 4 8 fine-tuned" in said
    assert "RAF (softmax), n = 4, N = 8, Gaussian texts: with gamma below 0.5" in said
    assert "None lies below its finite-sample bound." in said
    assert len(list((tmp_path / "generalization-records").glob("*.parquet"))) == CELLS
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == [
        f"generalization-{kind}-gaussian.{suffix}" for kind in ("error", "frontier") for suffix in ("pdf", "png", "svg")
    ]
    assert "too few to learn from" in run.err
    again = wordsens("paper", "generalization", "--out", str(tmp_path))
    assert f"{CELLS} of {CELLS} cells are in" in again.err


def test_json_has_the_documented_keys(wordsens, documented, monkeypatch, tmp_path):
    monkeypatch.setattr(paper_generalization, "write_generalization_figures", lambda *_: [])
    run = wordsens("paper", "generalization", "--out", str(tmp_path), "--json", "--quiet")
    assert run.err == ""
    document = json.loads(run.out)
    assert list(document) == documented("The document of `paper`")
    assert document["command"] == "paper generalization" and document["cells"] == CELLS
    for series in document["series"]:
        assert list(series) == documented("Each of the generalization `series`")
    assert pq.read_schema(document["records"]).names == documented("The columns of the generalization records")


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_and_resumes(wordsens, monkeypatch, tmp_path):
    attempt, seen = CellKind.attempt, []

    def interrupted(kind, cell, **options):
        seen.append(cell)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return attempt(kind, cell, **options)

    monkeypatch.setattr(CellKind, "attempt", interrupted)
    stopped = wordsens("paper", "generalization", "--out", str(tmp_path))
    assert stopped.code == 130
    assert f"interrupted: 3 of {CELLS} cells are finished" in stopped.err
    monkeypatch.setattr(CellKind, "attempt", attempt)
    resumed = wordsens("paper", "generalization", "--out", str(tmp_path), "--json", "--quiet")
    assert json.loads(resumed.out)["cells"] == CELLS


@pytest.mark.slow
def test_data_with_labels_in_another_column_or_none_at_all(wordsens, monkeypatch, tmp_path):
    monkeypatch.setattr(generalization_preset, "available", lambda source, n, *, labelled: 40)
    monkeypatch.setattr(paper_generalization, "write_generalization_figures", lambda *_: [])
    path = tmp_path / "t.csv"
    rows = "".join(f"{word} film number {at} goes on,{at % 2},{word}\n" for at, word in enumerate(("good", "bad") * 8))
    path.write_text(f"review,sign,label\n{rows}")
    usual = ("paper", "generalization", "--data", str(path), "--text-column", "review", "--json", "--quiet")
    unread = wordsens(*usual, "--out", str(tmp_path / "a"))
    assert unread.code == 2
    assert "the label 'good' is not understood" in unread.err
    assert "--labels 'linear' or 'random'" in unread.err
    for number, options in enumerate((("--label-column", "sign"), ("--labels", "random"))):
        document = json.loads(wordsens(*usual, *options, "--out", str(tmp_path / str(number))).out)
        assert document["failed"] == []
        assert {one["text"] for one in document["series"]} == {"dataset"}
