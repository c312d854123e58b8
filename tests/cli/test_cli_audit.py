"""`wordsens audit`: the report, the document that docs/cli.md describes, and going on after a stop."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pyarrow.parquet as pq
import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer
from tests.models.server import good, serving, slow

from wordsens.audit import text as audit_text_module
from wordsens.audit.decay import Decay, pair_distances
from wordsens.cli.audit import run as audit_run
from wordsens.cli.audit.tables import advice
from wordsens.experiments import audit as audit_cell
from wordsens.experiments.audit import AuditCell
from wordsens.experiments.run import measure
from wordsens.experiments.store import Store
from wordsens.statistics.power_law import PowerLaw
from wordsens.text.shipped_data import MinimalPair

TEXTS = ("the film was not good", "the film was very long and not unlikely bad", "good and bad and short", "good")
PAIRS = [MinimalPair("n", "negation", "the film was good", "the film not good")]
real_audit_text = audit_cell.audit_text


def save_model(folder, kind="bert", auto="AutoModel", **changes):
    model_of(kind, auto, **changes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The arguments of a small audit; the minimal pairs are made of the tiny model's words."""
    save_model(tmp_path / "model")
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(TEXTS) + "\n")
    monkeypatch.setattr(audit_run, "minimal_pairs", lambda: PAIRS)
    monkeypatch.setattr(audit_run, "pair_distances", partial(pair_distances, filler=" ".join(TEXTS)))
    out = tmp_path / "out"
    arguments = ["audit", str(tmp_path / "model"), "--dataset", str(tmp_path / "t.csv"), "--out", str(out)]
    return [*arguments, "--layer-texts", "0", "--max-words", "20"], out


@pytest.fixture
def measured(monkeypatch):
    """The texts that are measured, in order; `stop` maps the number of a text to what happens in its place."""
    seen, stop = [], {}

    def counted(phi, document, *options):
        seen.append(document.source)
        if len(seen) in stop:
            stop[len(seen)]()
        return real_audit_text(phi, document, *options)

    monkeypatch.setattr(audit_cell, "audit_text", counted)
    return seen, stop


def cells_of(out):
    return set(pq.read_table(out / "audit.parquet").column("cell").to_pylist())


def records(out):
    with Store(out, read_only=True) as store:
        return store.records()


def test_the_report(wordsens, asked):
    arguments, out = asked
    run = wordsens(*arguments, "--layer-texts", "1")
    assert run.code == 0, run.err
    for words in ("kind: negation", "place: middle", "band: common", "By layer", "Length", "negation"):
        assert words in run.out
    told = " ".join(run.out.split())
    assert "12 words of 3 texts" in told
    assert "left out: 1 texts: t.csv:4: it has 1 word, and an audit compares words" in told
    assert "Too few texts: no word was measured in 6 texts or more" in told
    assert "no exponent of sensitivity and removal: its texts have" in told
    assert pq.read_table(out / "audit.parquet").num_rows == 3


def test_a_single_word_of_each_text_is_compared_with_none(wordsens, asked):
    arguments, _ = asked
    run = wordsens(*arguments, "--words-per-text", "1", "--layer-texts", "0")
    assert run.code == 0, run.err
    assert "no text had two words measured (--words-per-text)" in " ".join(run.out.split())


def test_json_is_one_document_with_the_documented_keys(wordsens, asked, documented):
    arguments, _ = asked
    run = wordsens(*arguments, "--layer-texts", "1", "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert list(document) == documented("The document of `audit`")
    assert list(document["groups"][0]) == documented("Each of the audit `groups`")
    assert list(document["decay"][0]) == documented("Each of the audit `decay`")
    assert document["removal"] == "delete"
    assert [layer["layer"] for layer in document["layers"]] == [1, 2, 3]
    assert document["left_out"] == [{"source": "t.csv:4", "reason": "it has 1 word, and an audit compares words"}]
    assert document["failed"] == []


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_audit_goes_on_and_measures_each_text_once(wordsens, asked, measured, sign, code):
    arguments, out = asked
    seen, stop = measured
    if sign == signal.SIGINT:
        signal.signal(sign, signal.default_int_handler)  # a run in the background may have inherited that it is ignored
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
    assert seen == ["t.csv:1", "t.csv:2", "t.csv:2", "t.csv:3"]
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
    told = " ".join(run.out.split())
    assert "words of 2 texts" in told
    assert "failed: 1 texts: t.csv:2: RuntimeError: out of luck" in told
    assert "1 of 3 texts failed, the first with RuntimeError: out of luck" in run.err
    stop[3 + 1] = fail
    document = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    assert document["failed"] == [{"source": "t.csv:2", "error": "RuntimeError: out of luck"}]
    assert document["texts"] == 2


def test_empty_texts_copies_and_a_dataset_without_a_text(wordsens, asked, tmp_path):
    arguments, _ = asked
    (tmp_path / "t.csv").write_text('text,label\n"",1\nthe film,1\n" ",0\nthe film,1\n')
    document = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    assert [one["source"] for one in document["left_out"]] == ["t.csv:1", "t.csv:3"]
    assert {one["reason"] for one in document["left_out"]} == {"it is empty"}
    assert (document["texts"], document["copies"]) == (1, 1)
    (tmp_path / "t.csv").write_text("text\ngood\n")
    run = wordsens(*arguments)
    assert run.code == 2
    assert "can be measured: 1 are empty or have one word; give texts of two words or more" in run.err


def test_texts_that_were_cut_are_named_with_the_words_they_lost(wordsens, asked):
    arguments, _ = asked
    run = wordsens(*arguments[:-1], "4")
    told = "cut: 3 of 3 texts are longer than what is read; 7 words were lost, 1 negations among them: t.csv:2"
    assert told in " ".join(run.out.split())
    document = json.loads(wordsens(*arguments[:-1], "4", "--json", "--quiet").out)
    assert document["cut"][0] == {"source": "t.csv:2", "words": 4, "words_lost": 5, "negations_lost": 1}


def test_weights_that_were_edited_share_no_record(wordsens, asked, tmp_path, measured):
    arguments, out = asked
    seen, _ = measured
    first = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    before = cells_of(out)
    model = model_of("bert")
    with torch.no_grad():
        model.encoder.layer[0].output.dense.weight[0, 0] += 1.0
    model.save_pretrained(tmp_path / "model")
    second = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    assert len(seen) == 6
    # Both audits are kept in the folder's table.
    assert len(cells_of(out)) == 6
    assert before < cells_of(out)
    assert first["audit"] != second["audit"]
    assert first["groups"] != second["groups"]
    audits = pq.read_table(out / "audit.parquet").column("audit").to_pylist()
    assert Counter(audits) == {first["audit"]: 3, second["audit"]: 3}


@pytest.mark.parametrize("file", ["tokenizer.json", "config.json"])
def test_a_tokenizer_or_configuration_that_was_edited_shares_no_record(asked, tmp_path, file):
    cell = {"model": str(tmp_path / "model"), "text": {"content": "the film"}}
    before = AuditCell.parse(cell).key()
    path = tmp_path / "model" / file
    path.write_text(path.read_text() + " ")
    assert AuditCell.parse(cell).key() != before


def test_weights_that_change_during_an_audit_fail_its_texts(wordsens, asked, tmp_path, measured):
    arguments, _ = asked
    _, stop = measured

    def edit():
        model_of("bert", initializer_range=0.5).save_pretrained(tmp_path / "model")
        audit_cell._loaded.cache_clear()

    stop[1] = edit
    run = wordsens(*arguments)
    assert run.code == 1
    assert "2 of 3 texts failed, the first with InputError: the files of the model" in run.err
    assert "are not those that the audit began with" in run.err


def test_workers_give_the_same_records(wordsens, asked, tmp_path):
    arguments, out = asked
    here = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    other = tmp_path / "workers"
    run = wordsens(*arguments, "--out", str(other), "--workers", "1", "--json", "--quiet")
    assert run.code == 0, run.err
    document = json.loads(run.out)
    assert cells_of(other) == cells_of(out)
    assert document["groups"] == here["groups"]


def test_starts_that_all_texts_share_are_measured_once_an_audit(wordsens, asked, monkeypatch):
    arguments, out = asked
    hidden, measured = 8, []

    def directions(phi):
        measured.append(phi.name)
        return torch.eye(hidden)[:2]

    monkeypatch.setattr(audit_cell, "common_directions", directions)
    given = []
    monkeypatch.setattr(
        audit_cell,
        "audit_text",
        lambda phi, document, plan, offered, starts: (
            given.append(starts) or real_audit_text(phi, document, plan, offered)
        ),
    )
    assert wordsens(*arguments, "--quiet", "--limit", "2").code == 0
    audit_cell._directions_of.cache_clear()  # as in another process
    assert wordsens(*arguments, "--quiet").code == 0
    assert len(measured) == 1 and len(given) == len(TEXTS) - 1
    assert all(torch.equal(starts, torch.eye(hidden)[:2]) for starts in given)
    # A folder that a worker does not see.
    cell = AuditCell.parse({"model": arguments[1], "text": {"content": TEXTS[0]}, "kept_in": str(out)})
    phi = audit_cell.audited_model(cell)
    audit_cell._directions(phi, cell.model_copy(update={"kept_in": str(out / "elsewhere")}))
    assert len(measured) == 2
    assert cell.key() == cell.model_copy(update={"kept_in": None}).key()


# One text is audited, the others get its numbers: what counts is which texts are asked for, across the kills.
DRIVER = """
import os, signal, sys
from dataclasses import replace
from wordsens.cli.audit import run as audit_run
from wordsens.cli import main
from wordsens.experiments import audit as audit_cell
real, log, stop = audit_cell.audit_text, open(sys.argv[1], "a"), int(sys.argv[2])
seen, found = [], []
def counted(phi, document, *options):
    seen.append(1)
    if len(seen) == stop:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(seen) == 1:
        found.append(real(phi, document, *options))
    log.write(document.source + "\\n")
    log.flush()
    return replace(found[0], source=document.source)
audit_cell.audit_text = counted
audit_run.minimal_pairs = lambda: []
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.slow
def test_1200_texts_killed_twice_are_each_measured_once(asked, tmp_path):
    arguments, _ = asked
    save_model(tmp_path / "model", num_hidden_layers=1)
    words = ("the", "film", "was", "good", "bad", "very", "long", "short", "and", "not", "un")
    texts = [f"{first} {second} {third} {fourth}" for first in words for second in words for third in words
             for fourth in words][:1200]  # fmt: skip
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(texts) + "\n")
    log = tmp_path / "log"
    options = ["--words-per-text", "1", "--json", "--workers", "1"]
    for stop, code, kept in ((501, -9, None), (601, -9, 500), (0, 0, 1100)):
        run = subprocess.run(
            [sys.executable, "-c", DRIVER, str(log), str(stop), *arguments, *options],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert run.returncode == code, run.stderr
        assert kept is None or f"{kept} of 1200 texts are in" in run.stderr
    assert json.loads(run.stdout)["texts"] == 1200
    counts = Counter(log.read_text().split())
    assert len(counts) == 1200
    assert set(counts.values()) == {1}


def test_a_system_without_the_module_resource(asked, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    # Every module of the audit can be loaded without it, and a record says nothing of memory.
    for module in (audit_text_module, audit_cell):
        fresh = spec_from_file_location(f"fresh.{module.__name__}", module.__file__)
        monkeypatch.setitem(sys.modules, fresh.name, module_from_spec(fresh))
        fresh.loader.exec_module(sys.modules[fresh.name])
    cell = AuditCell.parse({"model": str(tmp_path / "model"), "text": {"content": TEXTS[0]}})
    record, _ = measure(audit_cell.EXPERIMENT, cell)
    assert record.peak_memory_mb is None


def test_a_classifier_and_other_options(wordsens, asked, tmp_path):
    arguments, _ = asked
    save_model(tmp_path / "model", auto="AutoModelForSequenceClassification")
    run = wordsens(*arguments, "--output", "probabilities", "--json", "--quiet", "--limit", "2")
    document = json.loads(run.out)
    assert document["map"].endswith("probabilities")
    assert document["layers"] == []
    assert document["texts"] == 2


def test_a_language_model_is_watched_at_its_next_token(wordsens, asked, tmp_path):
    arguments, _ = asked
    save_model(tmp_path / "model", "gpt2", "AutoModelForCausalLM")
    run = wordsens(*arguments, "--output", "probabilities", "--json", "--quiet", "--limit", "1")
    assert run.code == 0, run.err
    assert json.loads(run.out)["map"].endswith("probabilities last")


def test_masking_needs_a_mask_token(wordsens, asked, tmp_path):
    arguments, _ = asked
    path = tmp_path / "model" / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mask_token": None}))
    run = wordsens(*arguments, "--removal", "mask")
    assert run.code == 2
    assert re.search(r"--removal \(='mask'\) needs a mask token, but .* has none; use delete", run.err)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pool", "men"), "--pool (='men') must be one of own, mean, cls, last, max; did you mean 'mean'?"),
        (("--words-per-text", "0"), "--words-per-text (=0) must be a whole number, at least 1"),
        (("--threshold", "-1"), "--threshold (=-1.0) must be a positive finite number"),
        (("--removal", "drop"), "--removal (='drop') must be one of delete, mask"),
        (("--workers", "0"), "--workers (=0) must be a whole number, at least 1"),
    ],
)
def test_wrong_options_are_refused(wordsens, options, message):
    run = wordsens("audit", "minilm", "--dataset", "shipped", *options)
    assert run.code == 2
    assert run.err == f"wordsens: {message}\n"


def test_a_function_is_audited_with_removals_swaps_and_lengths(wordsens, asked, monkeypatch, documented):
    arguments, out = asked

    def letters(texts):
        return [[text.count(letter) + 0.5 for letter in "adefghilmnostuy"] for text in texts]

    module = ModuleType("my_encoders")
    module.letters = letters
    monkeypatch.setitem(sys.modules, "my_encoders", module)
    given = ["audit", "--encode", "my_encoders:letters", *arguments[2:], "--swaps", "--substitutions", "3"]
    run = wordsens(*given)
    assert run.code == 0, run.err
    told = " ".join(run.out.split())
    assert "No S, no layers and no bound: they take gradients, and this model gives one vector a text." in told
    assert "words count removal swap" in told
    assert "average sensitivity" in told
    document = json.loads(wordsens(*given, "--json", "--quiet").out)
    assert (document["model"], document["layers"]) == ("letters", [])
    assert list(document["substitution"]) == documented("The audit `substitution`")
    assert {group["sensitivity"] for group in document["groups"]} == {None}
    assert pq.read_table(out / "audit.parquet").column("sensitivity").to_pylist() == [[], [], []]
    module.letters = lambda texts: [[float(len(text)), 1.0] for text in texts]
    assert json.loads(wordsens(*given, "--json", "--quiet").out)["audit"] != document["audit"]


def test_an_endpoint_is_audited_and_one_that_hangs_is_left(wordsens, asked):
    arguments, _ = asked
    with serving(good) as (url, _):
        run = wordsens("audit", "--endpoint", url, *arguments[2:], "--json", "--quiet")
        assert (run.code, json.loads(run.out)["texts"]) == (0, 3)
    with serving(slow(30)) as (url, _):
        begin = time.monotonic()
        run = wordsens("audit", "--endpoint", url, "--endpoint-timeout", "0.5", *arguments[2:], "--quiet")
        assert (run.code, len(run.err.splitlines()), time.monotonic() - begin < 5) == (1, 1, True)
        assert "did not answer within 0.5 s" in run.err


@pytest.mark.parametrize("options", [("--output", "probabilities"), ("--removal", "mask")])
def test_a_function_has_neither_classes_nor_masks(wordsens, asked, options):
    run = wordsens("audit", "--encode", "my_encoders:letters", *asked[0][2:], *options)
    assert run.code == 2
    assert (
        f"{' '.join(options)} needs the model itself; a function or an endpoint gives vectors, and no more" in run.err
    )


def made(means, length, interval=(80, 100), reason=None):
    fit = None if reason else PowerLaw(-1.0, 0.1, 1.0)
    return Decay("a", 12, means, fit, reason, 0.05, length, interval, 95)


@pytest.mark.parametrize(
    ("decay", "sentence"),
    [
        (made({1: 0.01}, None), "a: a change moves the output by less than 0.05 even in a sentence alone."),
        (made({1: 0.5}, None, reason="why"), "a: no advice on length: why."),
        (made({1: 0.5}, None), "a: no fall with length was measured."),
        (made({1: 0.5}, 90, None), "a: 12 pairs are too few to say how long a passage may be."),
        (
            made({1: 0.5}, 900, (700, None)),
            "a: stays over 0.05 up to the model's context of 512 tokens (95 % interval over 12 pairs: 700 to no limit "
            "tokens).",
        ),
        (
            made({1: 0.5}, 11, (5, 14)),
            "a: the change falls under 0.05 at about 11 tokens, too uncertain to act on (95 % interval over 12 pairs: "
            "5 to 14 tokens); measure more pairs.",
        ),
        (
            made({1: 0.5}, 90),
            "a: keep passages under 90 tokens; past that the change falls under 0.05 (95 % interval over 12 pairs: 80 "
            "to 100 tokens).",
        ),
        (
            made({1: 0.5}, 99),
            "a: keep passages under 99 tokens; past that the change falls under 0.05 (95 % interval over 12 pairs: 80 "
            "to 100 tokens; extrapolated, passages had up to 95 tokens).",
        ),
    ],
)  # fmt: skip
def test_advice(decay, sentence):
    assert advice(decay, 512) == sentence


def test_what_belongs_to_the_model_is_measured_once(wordsens, asked, monkeypatch):
    arguments, out = asked
    told = [json.loads(wordsens(*arguments, "--layer-texts", "1", "--json", "--quiet").out)]
    files = sorted((out / "kept").iterdir())
    assert len(files) == 3  # starts, distances of pairs, layers

    def never(*given, **options):
        raise AssertionError

    monkeypatch.setattr(audit_run, "pair_distances", never)
    monkeypatch.setattr(audit_run, "layer_sensitivities", never)
    told.append(json.loads(wordsens(*arguments, "--layer-texts", "1", "--json", "--quiet").out))
    assert told[0] == told[1]
    assert "of its 7 tokens are unknown to" in told[0]["no_advice"]


def test_a_kept_file_that_is_damaged_is_measured_again(wordsens, asked):
    arguments, out = asked
    first = json.loads(wordsens(*arguments, "--json", "--quiet").out)
    for path in (out / "kept").iterdir():
        path.write_bytes(b"no")
    assert json.loads(wordsens(*arguments, "--json", "--quiet").out) == first


def test_pairs_of_ones_own_or_none(wordsens, asked, tmp_path):
    arguments, _ = asked
    none = json.loads(wordsens(*arguments, "--pairs", "none", "--json", "--quiet").out)
    assert (none["decay"], none["no_decay"]) == ([], "--pairs none")
    (tmp_path / "p.csv").write_text("kind,first,second,same\nswitch,the film was good,the film was bad,false\n")
    own = json.loads(wordsens(*arguments, "--pairs", str(tmp_path / "p.csv"), "--json", "--quiet").out)
    assert [one["kind"] for one in own["decay"]] == ["switch"]
    wrong = wordsens(*arguments, "--pairs", str(tmp_path / "q.csv"))
    assert wrong.code == 2
    assert "there is no file" in wrong.err


def test_an_earlier_audit_is_compared(wordsens, asked, tmp_path):
    arguments, out = asked
    wordsens(*arguments)
    again = [*arguments, "--removal", "mask", "--out", str(tmp_path / "other"), "--compare", str(out)]
    document = json.loads(wordsens(*again, "--json", "--quiet").out)
    assert {change["texts"] for change in document["changes"]} <= {1, 2, 3}
    assert "Since the earlier audit no kind of word changed beyond chance (3 texts in both)." in document["findings"]
    same = wordsens(*arguments, "--compare", str(out))
    assert same.code == 2
    assert "holds no other audit of any of these texts" in same.err
    nothing = wordsens(*arguments, "--compare", str(tmp_path / "nothing"))
    assert (nothing.code, "holds no results.sqlite" in nothing.err) == (2, True)


def test_the_only_column_with_texts_is_read_and_every_word_is_in_the_records(wordsens, asked, tmp_path):
    arguments, out = asked
    (tmp_path / "t.csv").write_text("number,review\n" + "".join(f"{at},{text}\n" for at, text in enumerate(TEXTS)))
    assert json.loads(wordsens(*arguments, "--json", "--quiet").out)["texts"] == 3
    rows = pq.read_table(out / "audit.parquet").column("read").to_pylist()
    assert sorted(map(json.loads, rows)) == sorted(text.split() for text in TEXTS[:3])


@pytest.mark.slow
def test_two_workers_give_the_same_numbers(wordsens, asked, tmp_path):
    arguments, out = asked
    wordsens(*arguments, "--workers", "1", "--swaps")
    other = tmp_path / "two"
    assert wordsens(*arguments, "--out", str(other), "--workers", "2", "--swaps").code == 0
    ours, theirs = (
        {record.cell: (record.sensitivity, record.removal, record.swapped_for, record.value)
         for record in records(folder)}
        for folder in (out, other)
    )  # fmt: skip
    assert len(ours) == 3
    assert ours == theirs
