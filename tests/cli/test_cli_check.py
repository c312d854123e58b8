"""`wordsens check`: the answer in words, the document that docs/json.md describes, the gate's files
and exit codes."""

import csv
import json
import re
import sys
from types import ModuleType
from xml.etree import ElementTree

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, deaf_to_negations, few_pairs
from tests.models.server import good, serving

PAIRS = few_pairs()
MODELS = {"bag": bag_of_words, "deaf": deaf_to_negations, "oracle": Oracle(PAIRS)}


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    """A module in which the command line finds the models of these tests."""
    module = ModuleType("my_models")
    vars(module).update(MODELS)
    monkeypatch.setitem(sys.modules, "my_models", module)


@pytest.fixture
def pairs(tmp_path):
    """The file of a few short pairs."""
    ws.write_pairs(PAIRS, tmp_path / "pairs.jsonl")
    return str(tmp_path / "pairs.jsonl")


@pytest.fixture
def long_pairs(tmp_path):
    """The file of a few pairs, two of which are as long as a paragraph."""
    paragraphs = [pair for pair in ws.read_pairs() if pair.length == "paragraph"]
    long = [
        next(pair for pair in paragraphs if pair.kind == kind)
        for kind in ("negation", "paraphrase")
    ]
    ws.write_pairs([*PAIRS, *long], tmp_path / "long.csv")
    return str(tmp_path / "long.csv")


def test_the_answer_in_words_comes_first(wordsens, pairs):
    run = wordsens("check", "--encode", "my_models:bag", "--pairs", pairs, "--threshold", ".6")
    assert (run.code, run.out.startswith("At threshold .6, ")) == (0, True)
    interval = r"\[\d+, \d+\]"
    assert re.search(rf"negation +12 +\d+ % {interval} .* 0\.\d+ \[0\.\d+, \d\.\d+\]", run.out)


def test_json_is_one_document_with_the_documented_keys(wordsens, long_pairs):
    run = wordsens("check", "--encode", "my_models:bag", "--pairs", long_pairs, "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert document["kinds"] and document["lengths"]
    assert document["passed"] is True
    assert (
        wordsens(
            "check", "--encode", "my_models:bag", "--pairs", long_pairs, "--json", "--quiet"
        ).out
        == run.out
    )


def test_a_requirement_that_fails_ends_in_exit_code_3_after_every_file_is_written(
    wordsens, pairs, tmp_path
):
    files = {option: tmp_path / option for option in ("junit", "markdown", "save-baseline")}
    options = [word for option, path in files.items() for word in (f"--{option}", str(path))]
    failing = ["--require", "negation.false_hits <= .1", "--require", "antonym.pairs >= 12"]
    run = wordsens("check", "--encode", "my_models:deaf", "--pairs", pairs, *failing, *options)
    assert run.code == 3
    assert (
        "wordsens: a requirement is not met: negation.false_hits is 1" in run.err.splitlines()[-1]
    )
    assert "FAILED: negation.false_hits is 1" in run.out
    suite = ElementTree.parse(files["junit"]).getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "2", "1")
    failed = {case.get("name"): case.find("failure") is not None for case in suite}
    assert failed == {"negation.false_hits <= .1": True, "antonym.pairs >= 12": False}
    message = suite[0].find("failure").get("message")
    written = files["markdown"].read_text()
    assert written.startswith("**wordsens check: FAILED**\n\n- negation.false\\_hits is 1")
    worst = PAIRS[0]
    assert worst.first in message
    assert worst.second in message
    assert worst.first in written
    assert files["save-baseline"].exists()


def test_a_model_passes_against_its_own_baseline_and_a_worse_one_fails(wordsens, pairs, tmp_path):
    kept = str(tmp_path / "baseline.json")
    assert (
        wordsens(
            "check", "--encode", "my_models:oracle", "--pairs", pairs, "--save-baseline", kept
        ).code
        == 0
    )
    same = wordsens(
        "check", "--encode", "my_models:oracle", "--pairs", pairs, "--baseline", kept, "--seed", "1"
    )
    assert (same.code, "since the baseline" in same.out) == (0, True)
    junit = tmp_path / "junit.xml"
    worse = wordsens(
        "check",
        "--encode",
        "my_models:bag",
        "--pairs",
        pairs,
        "--baseline",
        kept,
        "--junit",
        str(junit),
    )
    assert worse.code == 3
    assert "negation.auc has dropped from 1.0000 to 0.3" in worse.err
    assert [case.get("name") for case in ElementTree.parse(junit).getroot()] == [
        "negation.auc has not dropped since the baseline",
        "antonym.auc has not dropped since the baseline",
        "all together.auc has not dropped since the baseline",
    ]


def test_near_misses_are_made_shown_and_written(wordsens, tmp_path):
    (tmp_path / "faq.csv").write_text(
        "question,answer\nHow do I enable sync?,x\nIs it open?,x\nThe shop opens at 9.,x\n"
    )
    made = tmp_path / "made.csv"
    options = ["--from", str(tmp_path / "faq.csv"), "--text-column", "question"]
    run = wordsens("check", "--encode", "my_models:bag", *options, "--write-pairs", str(made))
    assert run.code == 0
    assert "enable / disable: How do I disable sync?" in run.out
    assert f"4 pairs are in {made}" in " ".join(run.err.split())
    again = wordsens(
        "check",
        "--encode",
        "my_models:bag",
        "--pairs",
        str(made),
        "--require",
        "antonym.false_hits <= .5",
    )
    assert again.code == 3
    assert "'enable' / 'disable' in 'How do I enable sync?'" in " ".join(again.out.split())


def test_an_endpoint_is_asked_and_its_refusal_is_one_line(wordsens, pairs, monkeypatch):
    monkeypatch.delenv("WORDSENS_API_KEY", raising=False)
    with serving(good) as (url, _):
        run = wordsens("check", "--endpoint", url, "--pairs", pairs, "--json", "--quiet")
        assert (run.code, run.err) == (0, "")
        assert [row["kind"] for row in json.loads(run.out)["kinds"]] == ["negation", "antonym"]
    with serving((400, {"error": "no such model"}, {})) as (url, _):
        run = wordsens(
            "check", "--endpoint", url, "--endpoint-model", "x", "--pairs", pairs, "--quiet"
        )
        assert (run.code, run.out, len(run.err.splitlines())) == (1, "", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--require", "negation.auc => 1"], "--require (='negation.auc => 1') cannot be read"),
        (
            ["--require", "all.hits > 0"],
            "`the field of 'all.hits > 0'` (='hits') must be one of pairs, auc",
        ),
        (["--kind", "rolle"], "--kind (='rolle') must be one of negation, antonym"),
        (["--keep", "2"], "--keep (=2.0) must be a share from 0 to 1"),
        (
            ["--csv", "/nowhere/at/all.csv"],
            "--csv (='/nowhere/at/all.csv') must be a file in a folder that exists",
        ),
        (["--baseline", "nowhere.json"], "--baseline (='nowhere.json') cannot be read"),
        (["--from", "faq.csv"], "--pairs and --texts exclude each other"),
        (["--threads", "0"], "--threads (=0) must be a whole number"),
        (["--threshold", "95"], "--threshold (=95) must be a cosine, from -1 to 1, such as 0.92"),
        (["--pairs", "b.csv"], "--pairs is given twice, and takes one file"),
        (["--require", "negation.auc >= 50"], "bounds a share, which is from 0 to 1"),
        (["--prompt-name", "query"], "has no prompts"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(wordsens, pairs, options, message):
    run = wordsens("check", "--encode", "my_models:bag", "--pairs", pairs, *options)
    assert (run.code, run.out) == (2, "")
    assert message in run.err
    assert len(run.err.splitlines()) == 1


def test_every_pair_in_csv_html_and_on_the_screen(wordsens, pairs, tmp_path):
    table, page = tmp_path / "pairs.csv", tmp_path / "page.html"
    markdown = tmp_path / "check.md"
    options = ["--csv", str(table), "--html", str(page), "--markdown", str(markdown), "--all-pairs"]
    run = wordsens("check", "--encode", "my_models:bag", "--pairs", pairs, *options)
    assert run.code == 0
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(PAIRS)
    assert list(rows[0]) == [
        "kind",
        "same",
        "similarity",
        "hit",
        "first",
        "second",
        "near",
        "where",
        "changed_first",
        "changed_second",
    ]
    assert "<mark>" in page.read_text(encoding="utf-8")
    assert "Every pair" in run.out
    assert markdown.read_text(encoding="utf-8").startswith("At threshold .")


def test_the_guard_behind_the_threshold(wordsens, pairs):
    run = wordsens(
        "check", "--encode", "my_models:deaf", "--pairs", pairs, "--guard", "--json", "--quiet"
    )
    document = json.loads(run.out)
    assert list(document["guarded"]) == ["recall", "all_false_hits", "false_hits"]
    assert document["guarded"]["recall"] <= document["recall"]
    before = {row["kind"]: row["false_hits"] for row in document["kinds"]}
    assert document["guarded"]["false_hits"]["negation"] < before["negation"] / 2


def test_a_reader_that_has_gone_does_not_turn_a_failed_gate_green(wordsens, pairs, monkeypatch):
    """As `wordsens check ... | head -1` in a pipeline: the exit code is that of the gate."""

    def gone(*_, **__):
        raise BrokenPipeError

    arguments = (
        "check",
        "--encode",
        "my_models:bag",
        "--pairs",
        pairs,
        "--require",
        "negation.auc >= .99",
    )
    assert wordsens(*arguments).code == 3
    monkeypatch.setattr("wordsens.cli.command.print_view", gone)
    monkeypatch.setattr("wordsens.cli.terminal.abandon_stdout", lambda: None)
    assert wordsens(*arguments).code == 3


def test_the_guards_verdict_is_beside_every_pair_where_it_is_asked_for(wordsens, pairs, tmp_path):
    command = ["check", "--encode", "my_models:deaf", "--pairs", pairs, "--all-pairs"]
    place = tmp_path / "all.csv"
    run = wordsens(*command, "--guard", "--csv", str(place), "--json", "--quiet")
    with place.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    listed = json.loads(run.out)["pairs"]
    verdicts = [ws.guard(row["first"], row["second"]).verdict for row in rows]
    assert len(rows) == len(PAIRS)
    assert [row["guard"] for row in rows] == [row["guard"] for row in listed] == verdicts
    assert "guard" in wordsens(*command, "--guard", "--quiet").out
    assert "guard" not in json.loads(wordsens(*command, "--json", "--quiet").out)["pairs"][0]


def test_the_packages_pairs_meet_no_requirement_unless_they_are_allowed(wordsens, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("first,second,same\nTurn it on.,Turn it off.,no\nIt is on.,It is off.,no\n")
    command = ["check", "--encode", "my_models:bag", "--pairs", str(path), "--require"]
    refused = wordsens(*command, "recall >= .1", "--quiet")
    assert (refused.code, "--allow-package-pairs" in refused.err) == (3, True)
    assert "the package's" in refused.out.splitlines()[0]
    allowed = wordsens(*command, "recall >= .1", "--allow-package-pairs", "--quiet")
    assert (allowed.code, "stand in" in " ".join(allowed.out.split())) == (0, True)
    assert wordsens(*command, "false_hits <= 1", "--quiet").code == 3
    assert wordsens(*command, "false_hits <= 1", "--threshold", ".9", "--quiet").code == 0


def test_drafts_promise_nothing(wordsens, tmp_path):
    (tmp_path / "questions.txt").write_text("How do I enable sync?\nCan I open the gate?\n")
    texts, drafts = str(tmp_path / "questions.txt"), str(tmp_path / "drafts.csv")
    command = ["check", "--encode", "my_models:bag", "--texts", texts, "--quiet"]
    assert wordsens(*command, "--write-pairs", drafts).code == 0
    run = wordsens("calibrate", "--encode", "my_models:bag", "--pairs", drafts, "--budget", ".5")
    assert (run.code, run.out) == (2, "")
    assert "drafted by rule" in run.err and "must not share an answer" in run.err
