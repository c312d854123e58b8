"""`wordsens calibrate`: what it prints, its document, its page, and its exit codes."""

import json
import sys
from types import ModuleType

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, few_pairs
from wordsens.text.tables import table_rows

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


THINGS = ("door", "lift", "light", "alarm", "fan", "heater", "fridge", "camera", "lamp", "pump")
QUESTIONS = [
    f"{how} the {thing}?" for thing in THINGS for how in ("Where is", "Who made", "Why use", "Sell")
]


@pytest.fixture
def calibrate_texts(wordsens, tmp_path):
    """A function that runs `wordsens calibrate` of a bag of words on questions, one per line."""
    (tmp_path / "questions.txt").write_text("\n".join(QUESTIONS), encoding="utf-8")
    options = ("--encode", "my_models:bag", "--texts", str(tmp_path / "questions.txt"))
    return lambda *more: wordsens("calibrate", *options, *more)


def test_questions_give_a_threshold_and_pairs_to_label(calibrate_texts, tmp_path):
    label, page = tmp_path / "label.csv", tmp_path / "page.html"
    files = ("--write-pairs", str(label), "--html", str(page))
    run = calibrate_texts("--budget", ".3", "--json", "--seed", "4", *files)
    document = json.loads(run.out)
    assert run.code == 0
    found = ws.collisions(bag_of_words, QUESTIONS, 0.3, seed=4)
    assert (document["threshold"], document["asked"]) == (found.threshold, 20)
    assert page.read_text(encoding="utf-8").count("<svg") == 1
    written = [row for _, row in table_rows(label)]
    assert [row["first"] for row in written] == [row["first"] for row in found.to_label()]
    assert {row["same"] for row in written} == {""}
    labelled = label.read_text(encoding="utf-8").splitlines()
    labelled[1] = f"true{labelled[1]}"
    label.write_text("\n".join(labelled), encoding="utf-8")
    before, more = label.read_bytes(), tmp_path / "more.csv"
    repeat = ("--budget", ".3", "--json", "--seed", "4", "--pairs", str(label))
    refused = calibrate_texts(*repeat, "--write-pairs", str(label))
    assert (refused.code, label.read_bytes()) == (2, before)
    assert "has labels, which would be lost" in refused.err
    again = json.loads(calibrate_texts(*repeat, "--write-pairs", str(more)).out)
    assert (document["labelled"]["same"], again["labelled"]["same"]) == (0, 1)
    first, *others = [row for _, row in table_rows(more)]
    assert (first["same"], first["first"]) == ("True", written[0]["first"])
    assert {row["same"] for row in others} == {""}


def test_a_limit_counts_the_lines_of_a_text_file(calibrate_texts):
    document = json.loads(calibrate_texts("--budget", ".3", "--json", "--limit", "30").out)
    assert (document["asked"], document["cached"]) == (15, [15, 3])


def test_too_few_questions_have_exit_code_3(calibrate_texts):
    run = calibrate_texts()
    assert (run.code, run.out.startswith("No threshold of ")) == (3, True)
    assert "149" in run.err


def test_write_pairs_goes_with_texts(calibrate):
    run = calibrate("bag", "--write-pairs", "p.csv")
    assert (run.code, "--write-pairs goes with --texts" in run.err) == (2, True)
