"""`wordsens flips`: what it prints, its document, and what it refuses."""

import json
import sys
from types import ModuleType

import pytest

from tests.evaluation.test_flips import TEXTS, moderation
from wordsens.evaluation.flips import label_flips


@pytest.fixture
def dataset(monkeypatch, tmp_path):
    """A file of texts, beside a module with a classifier."""
    module = ModuleType("my_models")
    vars(module)["moderation"] = moderation
    monkeypatch.setitem(sys.modules, "my_models", module)
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "\n".join(TEXTS), encoding="utf-8")
    return str(path)


def test_the_answer_in_words_comes_first(wordsens, dataset):
    named = ("--labels", "fine", "--labels", "rude")
    run = wordsens("flips", "--encode", "my_models:moderation", *named, "--dataset", dataset)
    assert run.code == 0
    told = " ".join(run.out.split())
    assert told.startswith("moderation: 48 texts")
    assert "rude: of 36 texts, 67 % [49, 81] change class" in told
    assert "rude -> fine (-0.700)" in told


def test_json_is_one_document_with_the_documented_keys(wordsens, dataset, documented):
    run = wordsens("flips", "--encode", "my_models:moderation", "--dataset", dataset, "--json")
    assert run.code == 0
    document = json.loads(run.out)
    assert list(document) == documented("The document of `flips`")
    assert list(document["words"][0]) == documented("Each of the flips `words`")


def test_the_words_of_long_texts_are_those_that_the_seed_chooses(wordsens, dataset):
    options = ("--dataset", dataset, "--words-per-text", "3", "--seed", "5", "--json")
    run = wordsens("flips", "--encode", "my_models:moderation", *options)
    five, usual = (
        label_flips(moderation, TEXTS, words_per_text=3, seed=seed).to_dict()["words"]
        for seed in (5, 0)
    )
    assert json.loads(run.out)["words"] == json.loads(json.dumps(five)) != usual


def test_wrong_input_is_one_line(wordsens, dataset):
    run = wordsens("flips", "--dataset", dataset)
    assert (run.code, run.out) == (2, "")
    assert "give one model: MODEL, or --encode module:function" in run.err
