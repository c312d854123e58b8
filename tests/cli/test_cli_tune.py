"""`wordsens tune`: the table, the document that docs/json.md describes, and what is refused."""

import json

import pytest

import wordsens as ws
from tests.training.animals import PAIRS, TEXTS, tiny_model

QUICK = ["--steps", "2", "--batch", "4", "--rate", "1e-6", "--threads", "1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny_model(tmp_path_factory.mktemp("tiny") / "model"))


@pytest.fixture
def files(tmp_path):
    ws.write_pairs(ws.read_pairs(PAIRS), tmp_path / "pairs.csv")
    (tmp_path / "texts.csv").write_text("\n".join(["text", *TEXTS]), encoding="utf-8")
    return ["--pairs", str(tmp_path / "pairs.csv"), "--texts", str(tmp_path / "texts.csv")]


def test_the_last_line_says_what_was_reached_and_the_remedy(wordsens, model, files, tmp_path):
    run = wordsens("tune", model, str(tmp_path / "out"), *files, *QUICK, "--quiet")
    assert (run.code, run.err) == (0, "")
    assert "negation" in run.out
    last = " ".join(run.out[run.out.rindex("Mean AUC") :].split())
    assert last.startswith("Mean AUC on held-out pairs: 0.")
    assert "Tuning reaches little for negation: there use the guard (wordsens guard" in last


def test_the_document_has_the_keys_of_the_documentation(wordsens, model, files, tmp_path):
    run = wordsens("tune", model, str(tmp_path / "out"), *files, *QUICK, "--json")
    document = json.loads(run.out)
    assert document["scores"]["kind"] == ["negation", "recall@1"]


def test_a_folder_that_is_something_else_is_refused(wordsens, model, tmp_path):
    (tmp_path / "notes.txt").touch()
    run = wordsens("tune", model, str(tmp_path), *QUICK)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "is not an empty folder" in run.err


def test_an_interrupted_run_says_how_to_go_on(wordsens, model, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("wordsens.training.tuning.tune", interrupted)
    run = wordsens("tune", model, str(tmp_path / "out"), "--quiet")
    assert (run.code, run.out) == (130, "")
    assert f"the same command continues from {tmp_path / 'out'}.checkpoints" in run.err
