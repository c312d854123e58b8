"""`wordsens flips`: what it prints, its document, and what it refuses."""

import json
import sys
from types import ModuleType

import pytest

from tests.evaluation.test_flips import TEXTS, moderation


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
    assert "rude: 67% (49% to 81%) of 36 texts" in told and "rude -> fine (-0.700)" in told


def test_json_is_one_document_with_the_documented_keys(wordsens, dataset, documented):
    run = wordsens("flips", "--encode", "my_models:moderation", "--dataset", dataset, "--json")
    assert run.code == 0
    document = json.loads(run.out)
    assert list(document) == documented("The document of `flips`")
    assert list(document["words"][0]) == documented("Each of the flips `words`")


def test_wrong_input_is_one_line(wordsens, dataset):
    run = wordsens("flips", "--dataset", dataset)
    assert (run.code, run.out) == (2, "")
    assert "give one model: MODEL, or --encode module:function" in run.err
