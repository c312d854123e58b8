"""`wordsens explain`: what it prints, its documents, its page, and what it refuses."""

import json
import sys
from types import ModuleType

import pytest

from tests.evaluation.stand_ins import bag_of_words
from tests.evaluation.test_classes import TEXTS as MANY
from tests.evaluation.test_classes import moderation
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.evaluation.classes import explain_classes

TEXTS = ("please enable the sync", "please disable the sync")
BAG = ("explain", "--encode", "my_models:bag")
FLIPS = ("explain", "--classes", "--encode", "my_models:moderation", "--quiet")


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    module = ModuleType("my_models")
    module.bag, module.moderation = bag_of_words, moderation
    monkeypatch.setitem(sys.modules, "my_models", module)


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "\n".join(MANY), encoding="utf-8")
    return str(path)


def test_the_answer_in_words_comes_first(wordsens):
    run = wordsens(*BAG, *TEXTS)
    assert (run.code, run.out.startswith("bag_of_words: cosine 0.75")) == (0, True)
    assert "differ in nothing but" in " ".join(run.out.split())


def test_json_is_one_document_with_the_documented_keys(wordsens):
    run = wordsens(*BAG, *TEXTS, "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert document["command"] == "explain"
    assert document["effects"] and document["pairs"]


def test_both_texts_are_cut_to_the_most_words(wordsens):
    model = (*BAG, "--json", "--quiet")
    longer = [f"{text} for every user" for text in TEXTS]
    cut, short, whole = (
        wordsens(*model, *texts).out for texts in ([*longer, "--max-words", "4"], TEXTS, longer)
    )
    assert cut == short != whole


def test_a_transformer_and_a_page(wordsens, tmp_path):
    model_of("bert").save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    page, model = tmp_path / "page.html", ("explain", str(tmp_path / "model"))
    run = wordsens(*model, "the film was not good", "the film was bad", "--html", str(page))
    assert (run.code, "moved" in run.out, "no vectors" in run.out) == (0, True, False)
    assert page.read_text().startswith("<!doctype html>")
    run = wordsens(*model, "the film was not good", "--no-vectors", "--tries", "0")
    assert (run.code, "moved" in run.out) == (0, False)


def test_a_classifier(wordsens, tmp_path):
    model_of("bert", "AutoModelForSequenceClassification").save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    run = wordsens("explain", str(tmp_path), "the film was not good", "--classes", "--class", "1")
    assert (run.code, "probability of class LABEL_1" in " ".join(run.out.split())) == (0, True)


def test_labels_that_one_word_flips(wordsens, dataset):
    named = ("--labels", "fine", "--labels", "rude", "--texts", dataset)
    run = wordsens(*FLIPS, *named, "--require", "rude.delete <= .1")
    printed = " ".join(run.out.split())
    assert printed.startswith("moderation: deleting one word changes the label of 24 of 48 texts")
    assert "67 % [49, 81]" in printed
    assert "rude -> fine" in printed
    assert run.code == 3
    assert "rude.delete is 0.6667, required <= 0.1" in run.err


def test_the_words_of_long_texts_are_those_that_the_seed_chooses(wordsens, dataset):
    options = ("--texts", dataset, "--words-per-text", "3", "--seed", "5", "--json")
    document = json.loads(wordsens(*FLIPS, *options).out)
    five, usual = (
        explain_classes(moderation, MANY, words_per_text=3, seed=seed).to_dict()["effects"]
        for seed in (5, 0)
    )
    assert document["effects"] == json.loads(json.dumps(five)) != usual


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["minilm"], "give one text or two, in quotes; got 0"),
        (["minilm", "a b", "c d", "e f"], "give one text or two, in quotes; got 3"),
        (["minilm", "a b", "c d", "--classes"], "--classes goes with a classifier, and one text"),
        (["minilm", "--texts", "shipped"], "--texts goes with --classes, and without TEXT"),
        (["minilm", "a b", "--move-texts", "3"], "--move-texts goes with --classes --texts FILE"),
        (["minilm", "a b", "--class", "1"], "--class goes with --classes and TEXT; leave it out"),
        (["--encode", "my_models:bag", "word"], "has 1 word; an explanation compares two or more"),
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
