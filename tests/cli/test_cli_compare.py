"""`wordsens compare`: what it prints, its document, its files, its gate, and what it refuses."""

import json
import sys
from types import ModuleType
from xml.etree import ElementTree

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs

MODELS = ("my_models:bag", "my_models:deaf")


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    module = ModuleType("my_models")
    module.bag, module.deaf = bag_of_words, deaf_to_negations
    monkeypatch.setitem(sys.modules, "my_models", module)


def test_the_answer_in_words_comes_first(wordsens):
    run = wordsens("compare", *MODELS, "--dataset", "shipped", "--pairs", "none")
    assert run.code == 0
    told = " ".join(run.out.split())
    assert told.startswith("bag_of_words and deaf_to_negations differ in")
    assert "Mean relative change of a text's vector when one word is deleted" in told
    assert "have a different nearest text" in told
    same = wordsens(
        "compare",
        "my_models:bag",
        "--encode",
        "my_models:bag",
        "--dataset",
        "shipped",
        "--pairs",
        "none",
    )
    assert same.out.startswith("No difference between bag_of_words and bag_of_words (second)")


def test_json_is_one_document_with_the_documented_keys(wordsens):
    run = wordsens(
        "compare", *MODELS, "--dataset", "shipped", "--pairs", "none", "--json", "--quiet"
    )
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert (document["command"], document["threshold"]) == ("compare", None)
    assert document["rows"] and document["changed"]


def test_the_gate_and_the_files(wordsens, tmp_path):
    files = [("--junit", "gate.xml"), ("--out", "found.safetensors"), ("--html", "found.html")]
    run = wordsens(
        "compare",
        *MODELS,
        "--dataset",
        "shipped",
        "--pairs",
        "none",
        "--require",
        "all.differs <= 0",
        *(word for option, name in files for word in (option, str(tmp_path / name))),
    )
    assert run.code == 3
    assert "FAILED: removal.negation.differs is 1, required <= 0" in run.out
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "1"
    assert ws.Comparison.load(tmp_path / "found.safetensors").differs
    assert (tmp_path / "found.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("minilm", "--dataset", "shipped"),
            "give two models, FIRST and SECOND, or --encode for one of them; got 1",
        ),
        (
            (*MODELS, "--dataset", "shipped", "--tolerance", "0"),
            "--tolerance (=0.0) must be a positive finite number",
        ),
        (
            (*MODELS, "--dataset", "shipped", "--out", "/no/such/folder/x"),
            "must be a file in a folder that exists",
        ),
        ((*MODELS, "--dataset", "no-such.csv"), "there is no file or folder 'no-such.csv'"),
        (
            ("my_models:bag", "my_models:nothing", "--dataset", "shipped"),
            "has no attribute 'nothing'",
        ),
    ],
)
def test_wrong_input_is_one_line(wordsens, arguments, message):
    run = wordsens("compare", *arguments)
    assert (run.code, run.out) == (2, "")
    assert message in run.err
    assert len(run.err.splitlines()) == 1


def test_a_threshold_is_carried_over_without_texts(wordsens, tmp_path):
    pairs = few_pairs(opposites=20)
    ws.write_pairs(pairs, tmp_path / "pairs.csv")
    files = ("--out", str(tmp_path / "found.safetensors"), "--html", str(tmp_path / "found.html"))
    carry = ("compare", *MODELS, "--threshold", ".8", "--pairs", str(tmp_path / "pairs.csv"))
    run = wordsens(*carry, "--json", "--seed", "3", *files)
    document = json.loads(run.out)
    assert run.code == 0
    found = ws.carry_threshold(bag_of_words, deaf_to_negations, 0.8, pairs, 3)
    assert document.items() >= {"seed": 3, **found.to_dict()}.items()
    assert ws.CarriedThreshold.load(tmp_path / "found.safetensors") == found
    assert "deaf_to_negations" in (tmp_path / "found.html").read_text(encoding="utf-8")
    assert wordsens(*carry).out.startswith("To keep its recall of ")
    gated = wordsens(*carry, "--require", "all.differs <= 0")
    assert (gated.code, "give your texts" in gated.err) == (2, True)
