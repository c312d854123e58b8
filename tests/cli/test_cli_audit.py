"""`wordsens audit`: its answer, the document of docs/json.md, its files and refusals."""

import json
import sys
from types import ModuleType

import pytest

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from tests.models.server import Late, good, serving

TEXTS = (
    "the film was not good",
    "the film was very long and not unlikely bad",
    "good and bad and short",
    "good",
)


def letters(texts):
    return [[text.count(letter) + 0.5 for letter in "adefghilmnostuy"] for text in texts]


def save_model(folder, kind="bert", auto="AutoModel", **changes):
    model_of(kind, auto, **changes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


@pytest.fixture
def arguments(tmp_path):
    """The arguments of a small audit; the second is the model."""
    save_model(tmp_path / "model")
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    model, texts = str(tmp_path / "model"), str(tmp_path / "t.csv")
    return ["audit", model, "--texts", texts, "--max-words", "20"]


def test_the_first_line_is_the_answer_and_files_hold_it(wordsens, arguments, tmp_path):
    saved, page = tmp_path / "saved.safetensors", tmp_path / "page.html"
    run = wordsens(*arguments, "--out", str(saved), "--html", str(page))
    assert run.code == 0, run.err
    headline = " ".join(run.out.partition("\n\n")[0].split())
    assert "(12 words of 3 texts). 1 text left out (the first, t.csv:5: " in headline
    assert "No advice on length:" in run.out
    loaded = ws.Audit.load(saved)
    assert loaded.headline in headline
    assert "first fifth" in page.read_text(encoding="utf-8")


def test_json_is_one_document_with_the_documented_keys(wordsens, arguments):
    run = wordsens(*arguments, "--json", "--quiet")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert document["command"] == "audit"
    places = [group["count"] for group in document["groups"][-3:]]
    assert len(document["effects"]) == sum(places) == 12
    assert [source for source, _ in document["left_out"]] == ["t.csv:5"]


def test_a_classifier_is_audited_by_its_probabilities(wordsens, arguments, tmp_path):
    save_model(tmp_path / "model", auto="AutoModelForSequenceClassification")
    run = wordsens(*arguments, "--output", "probabilities", "--json", "--quiet")
    document = json.loads(run.out)
    assert document["model"].endswith("probabilities")
    assert (document["advice"], document["no_advice"]) == (None, "it is for embeddings")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pool", "men"), "one of own, mean, cls, last, max; did you mean 'mean'?"),
        (("--words-per-text", "0"), "--words-per-text (=0) must be a whole number, at least 1"),
        (("--max-words", "1"), "--max-words (=1) must be a whole number, at least 2"),
        (("--threshold", "-2"), "--threshold (=-2) must be a cosine, from -1 to 1"),
        (("--removal", "drop"), "--removal (='drop') must be one of delete, mask"),
        (("--output", "odd"), "--output (='odd') must be one of embedding, probabilities"),
        (("--require", "all.loudness <= 0"), "must be one of count, removal"),
        (("--pairs", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_wrong_options_are_refused(wordsens, options, message):
    run = wordsens("audit", "minilm", "--texts", "shipped", *options)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert message in run.err


def test_a_function_has_no_mask_and_no_probabilities(wordsens, arguments, monkeypatch):
    module = ModuleType("my_encoders")
    module.letters = letters
    monkeypatch.setitem(sys.modules, "my_encoders", module)
    function = ["audit", "--encode", "my_encoders:letters", *arguments[2:], "--json", "--quiet"]
    document = json.loads(wordsens(*function).out)
    assert (document["model"], len(document["effects"])) == ("letters", 12)
    for options, reason in (
        (["--removal", "mask"], "needs a mask token, and letters gives vectors alone"),
        (["--output", "probabilities"], "--output probabilities needs the model itself"),
    ):
        run = wordsens(*function, *options)
        assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
        assert reason in run.err


def test_an_endpoint_that_hangs_is_left(wordsens, arguments):
    late = Late()
    with serving(good) as (url, _):
        run = wordsens("audit", "--endpoint", url, *arguments[2:], "--json", "--quiet")
        assert (run.code, len(json.loads(run.out)["sources"])) == (0, 3)
    with serving(late) as (url, _):
        endpoint = ["--endpoint", url, "--endpoint-timeout", "0.5"]
        run = wordsens("audit", *endpoint, *arguments[2:], "--quiet")
        late.given_up.set()
        assert (run.code, len(run.err.splitlines())) == (1, 1)
        assert "timeout (=0.5 s)" in run.err


def test_unreadable_rows_are_left_out_and_labels_play_no_part(wordsens, arguments, tmp_path):
    """An emoji, a zero-width text and words that the vocabulary lacks; stars and names as labels; a
    semicolon file."""
    rows = ["text;label", f"{TEXTS[0]};five stars", "😀;toxic", "\u200b;3", "zyzzy quux;1"]
    rows.append(f"{TEXTS[1]};4")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = wordsens(*arguments, "--json")
    assert run.code == 0, run.err
    assert "the fields of t.csv are separated by ';'" in run.err
    document = json.loads(run.out)
    assert document["sources"] == ["t.csv:2", "t.csv:6"]
    assert {source for source, _ in document["left_out"]} == {"t.csv:3", "t.csv:4", "t.csv:5"}


def test_a_requirement_can_fail(wordsens, arguments):
    run = wordsens(*arguments, "--require", "all.removal <= 0", "--require", "odd.count >= 0")
    assert run.code == 3
    assert "content word.removal is" in run.err
    assert "no measured word is of 'odd'" in run.err
