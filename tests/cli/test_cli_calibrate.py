"""`wordsens calibrate`: what it prints, its document, its page, and its exit codes."""

import json
import sys
from types import ModuleType

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, few_pairs

PAIRS = few_pairs(opposites=40)


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    """A module in which the command line finds the models of these tests."""
    module = ModuleType("my_models")
    vars(module).update(bag=bag_of_words, oracle=Oracle(PAIRS))
    monkeypatch.setitem(sys.modules, "my_models", module)


@pytest.fixture
def calibrate(wordsens, tmp_path):
    """A function that runs `wordsens calibrate` of a model on a few pairs."""
    ws.write_pairs(PAIRS, tmp_path / "pairs.jsonl")
    return lambda model, *options: wordsens(
        "calibrate",
        "--encode",
        f"my_models:{model}",
        "--pairs",
        str(tmp_path / "pairs.jsonl"),
        *options,
    )


def test_the_answer_in_words_comes_first_and_a_page_has_the_figure(calibrate, tmp_path):
    page = tmp_path / "page.html"
    run = calibrate("oracle", "--budget", ".05", "--distance", "l2", "--html", str(page))
    assert run.code == 0
    assert run.out.startswith("With the threshold ")
    assert "2 - 2c: at most 0" in " ".join(run.out.split())
    assert "<svg" in page.read_text(encoding="utf-8")


def test_json_is_one_document_with_the_documented_keys(calibrate):
    run = calibrate("bag", "--budget", ".5", "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert document["command"] == "calibrate"
    assert document["kinds"] and document["budgets"]


def test_without_a_threshold_the_exit_code_is_3_and_all_is_printed(calibrate):
    run = calibrate("bag", "--budget", ".02")
    assert (run.code, run.out.startswith("No threshold of ")) == (3, True)
    assert "it takes 149 of which none passes" in run.err
    assert "What a budget of false hits costs" in run.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--budget", "2"],
            "--budget (=2.0) must be a share above 0 and below 1, such as .02 for 2 %",
        ),
        (["--distance", "dot"], "--distance (='dot') must be one of l2, cosine"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(calibrate, options, message):
    run = calibrate("bag", *options)
    assert (run.code, run.out) == (2, "")
    assert message in run.err
