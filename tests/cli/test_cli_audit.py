"""`wordsens audit`: the report, the document that docs/json.md describes, and going on after a
stop."""

import json
import os
import signal
import sys
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from tests.maps.tiny_models import model_of, tokenizer
from tests.models.server import Late, good, serving
from wordsens.evaluation.audit import cell as audit_cell
from wordsens.sweeps.store import Store

TEXTS = (
    "the film was not good",
    "the film was very long and not unlikely bad",
    "good and bad and short",
    "good",
)
real_audit_text = audit_cell.audit_text


def save_model(folder, kind="bert", auto="AutoModel", **changes):
    model_of(kind, auto, **changes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


@pytest.fixture
def asked(tmp_path):
    """The arguments of a small audit."""
    save_model(tmp_path / "model")
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(TEXTS) + "\n")
    out = tmp_path / "out"
    arguments = [
        "audit",
        str(tmp_path / "model"),
        "--dataset",
        str(tmp_path / "t.csv"),
        "--out",
        str(out),
    ]
    return [*arguments, "--layer-texts", "0", "--max-words", "20"], out


@pytest.fixture
def measured(monkeypatch):
    """The texts that are measured, in order; `stop` maps the number of a text to what happens in
    its place."""
    seen, stop = [], {}

    def counted(phi, document, *alternatives, **effort):
        seen.append(document.source)
        if len(seen) in stop:
            stop[len(seen)]()
        return real_audit_text(phi, document, *alternatives, **effort)

    monkeypatch.setattr(audit_cell, "audit_text", counted)
    return seen, stop


def records(out):
    with Store(out, read_only=True) as store:
        return store.rows()


def test_the_report(wordsens, asked):
    arguments, out = asked
    run = wordsens(*arguments, "--layer-texts", "1")
    assert run.code == 0, run.err
    for words in (
        "kind: negation",
        "place: middle",
        "By layer",
        "Length",
        "negation",
    ):
        assert words in run.out
    assert "12 words of 3 texts" in " ".join(run.out.split())
    assert pq.read_table(out / "audit.parquet").num_rows == 3
    assert (out / "report.html").is_file()


def test_json_is_one_document_with_the_documented_keys(wordsens, asked, documented):
    arguments, _ = asked
    run = wordsens(*arguments, "--layer-texts", "1", "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert list(document) == documented("The document of `audit`")
    assert list(document["groups"][0]) == documented("Each of the audit `groups`")
    assert document["removal"] == "delete"
    assert [layer["layer"] for layer in document["layers"]] == [1, 2, 3]
    assert document["left_out"] == [
        {"source": "t.csv:5", "reason": "it has 1 word, and an audit compares words"}
    ]
    assert document["failed"] == []


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_audit_goes_on_and_measures_each_text_once(wordsens, asked, measured, sign, code):
    arguments, out = asked
    seen, stop = measured
    if sign == signal.SIGINT:
        signal.signal(
            sign, signal.default_int_handler
        )  # a run in the background may have inherited that it is ignored
    stop[2] = lambda: os.kill(os.getpid(), sign)
    stopped = wordsens(*arguments)
    assert stopped.code == code
    assert "interrupted: 1 of 3 texts are finished in" in stopped.err
    assert "the same command goes on from there" in stopped.err
    stop.clear()
    again = wordsens(*arguments)
    assert again.code == 0
    assert "1 of 3 texts are in" in again.err
    # The text that was under way is measured again.
    assert seen == ["t.csv:2", "t.csv:3", "t.csv:3", "t.csv:4"]
    first = records(out)
    assert wordsens(*arguments).code == 0
    assert len(seen) == 4
    assert records(out) == first


def test_a_text_that_fails_is_counted_and_ends_in_exit_code_1(wordsens, asked, measured):
    arguments, _ = asked
    _, stop = measured

    def fail():
        raise RuntimeError("out of luck")

    stop[2] = fail
    run = wordsens(*arguments)
    assert run.code == 1
    assert "failed: 1 texts: t.csv:3: RuntimeError: out of luck" in " ".join(run.out.split())
    assert "1 of 3 texts failed, the first with RuntimeError: out of luck" in run.err
    stop[3 + 1] = fail
    document = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    assert document["failed"] == [{"source": "t.csv:3", "error": "RuntimeError: out of luck"}]
    assert document["texts"] == 2


def test_a_classifier_is_audited_by_its_probabilities(wordsens, asked, tmp_path):
    arguments, _ = asked
    save_model(tmp_path / "model", auto="AutoModelForSequenceClassification")
    run = wordsens(*arguments, "--output", "probabilities", "--json", "--quiet", "--limit", "2")
    document = json.loads(run.out)
    assert (document["map"].endswith("probabilities"), document["texts"]) == (True, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--pool", "men"),
            "--pool (='men') must be one of own, mean, cls, last, max; did you mean 'mean'?",
        ),
        (("--words-per-text", "0"), "--words-per-text (=0) must be a whole number, at least 1"),
        (
            ("--threshold", "-1"),
            "--threshold (=-1.0) must be a cosine between -1 and 1, such as 0.95",
        ),
        (("--removal", "drop"), "--removal (='drop') must be one of delete, mask"),
        (("--workers", "0"), "--workers (=0) must be a whole number, at least 1"),
    ],
)
def test_wrong_options_are_refused(wordsens, options, message):
    run = wordsens("audit", "minilm", "--dataset", "shipped", *options)
    assert run.code == 2
    assert run.err == f"wordsens: {message}\n"


def test_a_function_is_audited_with_removals_swaps_and_lengths(
    wordsens, asked, monkeypatch, documented
):
    arguments, out = asked

    def letters(texts):
        return [[text.count(letter) + 0.5 for letter in "adefghilmnostuy"] for text in texts]

    module = ModuleType("my_encoders")
    module.letters = letters
    monkeypatch.setitem(sys.modules, "my_encoders", module)
    given = [
        "audit",
        "--encode",
        "my_encoders:letters",
        *arguments[2:],
        "--swaps",
    ]
    run = wordsens(*given)
    assert run.code == 0, run.err
    told = " ".join(run.out.split())
    assert "words count removal swap" in told
    unsure = wordsens(*given, "--json", "--quiet")
    assert (unsure.code, unsure.out) == (2, "")
    assert (
        "nothing tells whether it is still the same; pass --resume if it is, or another --out"
        in unsure.err
    )
    document = json.loads(wordsens(*given, "--json", "--quiet", "--resume").out)
    assert (document["model"], document["layers"]) == ("letters", [])
    assert {group["sensitivity"] for group in document["groups"]} == {None}
    assert pq.read_table(out / "audit.parquet").column("sensitivity").to_pylist() == [[], [], []]
    module.letters = lambda texts: [[float(len(text)), 1.0] for text in texts]
    assert json.loads(wordsens(*given, "--json", "--quiet").out)["audit"] != document["audit"]


def test_an_endpoint_is_audited_and_one_that_hangs_is_left(wordsens, asked):
    arguments, _ = asked
    with serving(good) as (url, _):
        run = wordsens("audit", "--endpoint", url, *arguments[2:], "--json", "--quiet")
        assert (run.code, json.loads(run.out)["texts"]) == (0, 3)
    late = Late()
    with serving(late) as (url, _):
        run = wordsens(
            "audit", "--endpoint", url, "--endpoint-timeout", "0.5", *arguments[2:], "--quiet"
        )
        late.given_up.set()
        assert (run.code, len(run.err.splitlines())) == (1, 1)
        assert "timeout (=0.5 s)" in run.err


def test_an_endpoint_that_fails_late_leaves_what_was_finished(wordsens, asked):
    arguments, out = asked
    audit = [*arguments[2:], "--quiet"]

    class Late:
        """Well for so many requests, then broken."""

        def __init__(self, well):
            self.well = well

        def __call__(self, texts):
            self.well -= 1
            return good(texts) if self.well >= 0 else {"data": good(texts)["data"][1:]}

    with serving(good) as (url, script):
        wordsens("audit", "--endpoint", url, *audit, "--out", str(out.parent / "whole"), "--json")
        whole = len(script.asked)
    late = Late(whole - 1)
    with serving(late) as (url, script):
        run = wordsens("audit", "--endpoint", url, *audit)
        assert (run.code, len(run.err.splitlines())) == (1, 1)
        assert "gave no embeddings" in run.err
        late.well, before = whole, len(script.asked)
        run = wordsens("audit", "--endpoint", url, *audit, "--resume", "--json")
        assert (run.code, json.loads(run.out)["texts"]) == (0, 3)
        assert len(script.asked) - before < whole


def test_an_earlier_audit_is_compared(wordsens, asked, tmp_path):
    arguments, out = asked
    wordsens(*arguments)
    again = [
        *arguments,
        "--removal",
        "mask",
        "--out",
        str(tmp_path / "other"),
        "--compare",
        str(out),
    ]
    document = json.loads(wordsens(*again, "--json", "--quiet").out)
    assert {change["texts"] for change in document["changes"]} <= {1, 2, 3}
    assert (
        "Since the earlier audit no kind of word changed beyond chance (3 texts in both)."
        in document["findings"]
    )
    same = wordsens(*arguments, "--compare", str(out))
    assert same.code == 2
    assert "holds no other audit of any of these texts" in same.err
    nothing = wordsens(*arguments, "--compare", str(tmp_path / "nothing"))
    assert (nothing.code, "holds no results.sqlite" in nothing.err) == (2, True)


def test_unreadable_rows_are_left_out_and_labels_play_no_part(wordsens, asked, tmp_path):
    """An emoji, a zero-width text and words that the vocabulary lacks; stars and names as labels; a
    semicolon file."""
    arguments, _ = asked
    rows = [
        "text;label",
        f"{TEXTS[0]};five stars",
        "😀;toxic",
        "\u200b;3",
        "zyzzy quux;1",
        f"{TEXTS[1]};4",
    ]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = wordsens(*arguments, "--json")
    assert run.code == 0, run.err
    assert "the fields of t.csv are separated by ';'" in run.err
    document = json.loads(run.out)
    assert document["texts"] == 2
    assert {one["source"] for one in document["left_out"]} == {"t.csv:3", "t.csv:4", "t.csv:5"}


def test_a_few_short_texts_end_in_a_report_and_a_requirement_can_fail(wordsens, asked, tmp_path):
    arguments, _ = asked
    (tmp_path / "t.csv").write_text("text\nthe film\nvery good film\n", encoding="utf-8")
    run = wordsens(
        *arguments, "--require", "all.removal <= 0", "--require", "negation.removal >= 0"
    )
    assert run.code == 3
    assert "content word.removal is" in run.err
    assert "no measured word is of 'negation'" in run.err
    assert "No advice on length:" in run.out
    refused = wordsens(*arguments, "--require", "all.loudness <= 0")
    assert (refused.code, "must be one of count, sensitivity, removal, swap" in refused.err) == (
        2,
        True,
    )
