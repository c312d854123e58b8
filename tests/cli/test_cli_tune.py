"""`wordsens tune`: its tables, its document, and what it refuses."""

import json
from functools import partial

import pytest
from tests.training.adapter.small import pairs, texts, tiny  # noqa: F401 - fixtures

import wordsens as ws
from wordsens.cli.tune import run as tune_run
from wordsens.training.adapter import tune as tuning
from wordsens.training.adapter.split import split_sentences


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    """A plan of a few sentences: what is told of a tuning is the same."""
    plan = partial(ws.training.TunePlan, made=30, batch=8, real=4, plain=6, kept=40)
    monkeypatch.setattr(tune_run, "TunePlan", plan)
    monkeypatch.setattr(tuning, "split_sentences", partial(split_sentences, apart=60))


@pytest.fixture
def arguments(tiny, pairs, texts, tmp_path):  # noqa: F811
    """The command for a tiny model, and its folder."""
    ws.write_pairs(pairs, tmp_path / "pairs.jsonl")
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "texts.jsonl").write_text(rows, encoding="utf-8")
    files = ["--pairs", str(tmp_path / "pairs.jsonl"), "--texts", str(tmp_path / "texts.jsonl")]
    usual = ["tune", str(tiny), "--out", str(tmp_path / "out"), *files]
    return [*usual, "--adapter", "linear", "--steps", "3", "--hold-out", "finance"]


@pytest.mark.slow
def test_the_tables_have_before_and_after(wordsens, arguments, tmp_path):
    run = wordsens(*arguments)
    assert run.code == 0, run.err
    told = " ".join(run.out.split())
    for words in (
        "Kept apart: finance",
        "Where it was trained",
        "entity (not trained)",
        "Paraphrases found first among",
    ):
        assert words in told
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_the_document_is_the_one_described(wordsens, arguments, documented):
    run = wordsens(*arguments, "--json", "--quiet")
    assert run.code == 0 and run.err == ""
    document = json.loads(run.out)
    assert list(document) == documented("The document of `tune`")
    assert document["held_out_domains"] == ["finance"]
    assert document["untrained_kinds"] == ["entity"]
    assert {row["kind"] for row in document["unseen"]} == {"negation", "antonym", "entity"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rank", "4"), "--rank goes with --adapter low-rank"),
        (("--hold-out-kind", "sea"), "--hold-out-kind (='sea') must be one of antonym"),
        (("--hold-out", "sea"), "--hold-out (='sea') must be one of everyday"),
        (("--pairs", "no.csv"), "there is no file 'no.csv'"),
    ],
)
def test_wrong_options_are_one_line(wordsens, arguments, more, message, tmp_path):
    run = wordsens(*arguments, *more)
    assert run.code == 2 and message in run.err and run.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
