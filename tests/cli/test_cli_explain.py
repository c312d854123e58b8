"""`wordsens explain`: what it prints, its document, its page, and what it refuses."""

import json
import sys
from types import ModuleType

import pytest

from tests.evaluation.stand_ins import bag_of_words
from tests.maps.tiny_models import model_of, tokenizer

TEXTS = ("please enable the sync", "please disable the sync")


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    module = ModuleType("my_models")
    module.bag = bag_of_words
    monkeypatch.setitem(sys.modules, "my_models", module)


def test_the_answer_in_words_comes_first(wordsens):
    run = wordsens("explain", "--encode", "my_models:bag", *TEXTS)
    assert (run.code, run.out.startswith("bag_of_words: cosine 0.75")) == (0, True)
    assert "differ in nothing but" in " ".join(run.out.split())


def test_json_is_one_document_with_the_documented_keys(wordsens, documented):
    run = wordsens("explain", "--encode", "my_models:bag", *TEXTS, "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert list(document) == documented("The document of `explain`")
    assert list(document["words"][0]) == documented("Each of the explain `words`")
    assert list(document["pairs"][0]) == documented("Each of the explain `pairs`")


def test_both_texts_are_cut_to_the_most_words(wordsens):
    model = ("explain", "--encode", "my_models:bag", "--json", "--quiet")
    longer = [f"{text} for every user" for text in TEXTS]
    assert (
        wordsens(*model, *longer, "--max-words", "4").out
        == wordsens(*model, *TEXTS).out
        != wordsens(*model, *longer).out
    )


def test_a_transformer_and_a_page(wordsens, tmp_path):
    model_of("bert").save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    page = tmp_path / "page.html"
    run = wordsens(
        "explain",
        str(tmp_path / "model"),
        "the film was not good",
        "the film was bad",
        "--html",
        str(page),
    )
    assert (run.code, "down" in run.out, "No vectors" in run.out) == (0, True, False)
    assert page.read_text().startswith("<!doctype html>")
    run = wordsens(
        "explain", str(tmp_path / "model"), "the film was not good", "--no-vectors", "--tries", "0"
    )
    assert (run.code, "down" in run.out) == (0, False)


def test_a_classifier(wordsens, tmp_path):
    model_of("bert", "AutoModelForSequenceClassification").save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    run = wordsens("explain", str(tmp_path), "the film was not good", "--classes", "--class", "1")
    assert (run.code, "probability of class LABEL_1" in " ".join(run.out.split())) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["minilm"], "give one text or two, in quotes; got 0"),
        (["minilm", "a b", "c d", "e f"], "give one text or two, in quotes; got 3"),
        (
            ["--encode", "my_models:bag", "a b", "--classes"],
            "--classes goes with the name or folder of a classifier",
        ),
        (["minilm", "a b", "--class", "1"], "--class goes with --classes; leave it out"),
        (["--encode", "my_models:bag", "word"], "has 1 words; an explanation compares two or more"),
        (
            ["--encode", "my_models:bag", "a b", "--html", "/no/where.html"],
            "--html (='/no/where.html') must be a file",
        ),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(wordsens, arguments, message):
    run = wordsens("explain", *arguments)
    assert (run.code, run.out, len(run.err.splitlines())) == (2, "", 1)
    assert message in run.err
