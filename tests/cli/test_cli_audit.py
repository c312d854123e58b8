"""`wordsens audit`: the report, the document that docs/cli.md describes, and going on after an interruption."""

import json

import pyarrow.parquet as pq
import pytest
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.fading import Fading

from wordsens.audit.text import attempt_text
from wordsens.cli import audit_run
from wordsens.cli.audit_tables import advice
from wordsens.text.shipped_data import MinimalPair

TEXTS = ("the film was not good", "the film was very long and not unlikely bad", "good and bad and short", "good")
PAIRS = [MinimalPair("n", "negation", "the film was good", "the film not good")]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The arguments of a small audit; the minimal pairs are made of the tiny model's words."""
    folder = tmp_path / "model"
    model_of("bert").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(TEXTS) + "\n")
    monkeypatch.setattr(audit_run, "minimal_pairs", lambda: PAIRS)
    out = tmp_path / "out"
    return ["audit", str(folder), "--dataset", str(tmp_path / "t.csv"), "--out", str(out), "--max-words", "20"], out


def test_the_report(wordsens, asked):
    arguments, out = asked
    run = wordsens(*arguments)
    assert run.code == 0
    for words in ("kind: negation", "place: middle", "band: common", "By layer", "Length", "negation"):
        assert words in run.out
    assert "words of 3 texts" in run.out
    assert "left out: t.csv:4: t.csv:4 has 1 words" in run.out
    assert "words in" in run.err
    assert pq.read_table(out / "audit.parquet").num_rows == 4


def test_json_is_one_document_with_the_documented_keys(wordsens, asked, documented):
    arguments, _ = asked
    run = wordsens(*arguments, "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert list(document) == documented("The document of `audit`")
    assert list(document["groups"][0]) == documented("Each of the audit `groups`")
    assert [layer["layer"] for layer in document["layers"]] == [1, 2, 3]
    assert document["failed"] == [
        {"source": "t.csv:4", "error": "t.csv:4 has 1 words; an audit compares words, so it is left out"}
    ]


def test_an_interrupted_audit_goes_on_and_gives_the_same_table(wordsens, asked, monkeypatch):
    arguments, out = asked
    whole = wordsens(*arguments[:5], str(out) + "-whole", *arguments[6:], "--json", "--quiet")
    calls = []

    def stopping(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return attempt_text(*given)

    monkeypatch.setattr(audit_run, "attempt_text", stopping)
    stopped = wordsens(*arguments)
    assert stopped.code == 130
    assert "interrupted: 2 of 4 texts are finished" in stopped.err
    assert "the same command goes on from there" in stopped.err
    monkeypatch.setattr(audit_run, "attempt_text", lambda *given: calls.append(1) or attempt_text(*given))
    again = wordsens(*arguments, "--json")
    assert "2 of 4 texts are in" in again.err
    assert len(calls) == 5
    first, second = (json.loads(run.out) for run in (whole, again))
    assert first["groups"] == second["groups"]
    # What failed is tried again, what is done is not.
    wordsens(*arguments)
    assert len(calls) == 6


def test_a_classifier_and_other_options(wordsens, asked, tmp_path):
    arguments, _ = asked
    model_of("bert", "AutoModelForSequenceClassification").save_pretrained(tmp_path / "model")
    run = wordsens(*arguments, "--output", "probabilities", "--layer-texts", "0", "--json", "--quiet", "--limit", "2")
    document = json.loads(run.out)
    assert document["map"].endswith("probabilities")
    assert document["layers"] == []
    assert document["texts"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pool", "men"), "--pool (='men') must be one of own, mean, cls, last, max; did you mean 'mean'?"),
        (("--words-per-text", "0"), "--words-per-text (=0) must be a whole number, at least 1"),
        (("--threshold", "-1"), "--threshold (=-1.0) must be a positive finite number"),
        (("--removal", "drop"), "--removal (='drop') must be one of mask, delete"),
    ],
)
def test_wrong_options_are_refused(wordsens, options, message):
    run = wordsens("audit", "minilm", "--dataset", "shipped", *options)
    assert run.code == 2
    assert run.err == f"wordsens: {message}\n"


def made(means, length):
    return Fading("a", means, -1.0, 1.0, 0.05, length)


@pytest.mark.parametrize(
    ("fit", "sentence"),
    [
        (made({1: 0.01}, None), "a: a change moves the output by less than 0.05 even in a sentence alone."),
        (made({1: 0.5}, None), "a: no fall with length was measured."),
        (made({1: 0.5}, 900), "a: stays over 0.05 up to the model's context of 512 tokens."),
        (made({1: 0.5}, 90), "a: keep passages under 90 tokens; past that the change falls under 0.05."),
    ],
)  # fmt: skip
def test_advice(fit, sentence):
    assert advice(fit, 512) == sentence
