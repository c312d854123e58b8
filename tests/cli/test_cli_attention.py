"""`wordsens paper attention`: figure 1, its table and document, and what cannot be compared."""

import json

import pyarrow.parquet as pq
import pytest
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.cli.paper import attention as paper_attention
from wordsens.experiments.attention.record import AttentionRecord
from wordsens.experiments.store.store import RecordStore


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """The folder of a tiny causal language model."""
    folder = tmp_path_factory.mktemp("decoder")
    model_of("llama", "AutoModelForCausalLM").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take most of the time; one test looks at them."""
    monkeypatch.setattr(paper_attention, "write_attention_figures", lambda *_: [])


def test_the_papers_pair(wordsens, tmp_path, documented, monkeypatch):
    run = wordsens("paper", "attention", "--out", str(tmp_path))
    assert run.code == 0, run.err
    assert "I love her much  |  I love her smile" in run.out
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"attention.{end}" for end in ("pdf", "png", "svg")
    }
    monkeypatch.setattr(paper_attention, "write_attention_figures", lambda *_: [])
    document = json.loads(wordsens("paper", "attention", "--out", str(tmp_path), "--json", "--quiet").out)
    assert list(document) == documented("The document of `paper`")
    (pair,) = document["series"]
    assert list(pair) == documented("Each of the attention `series`")
    phi = ws.TransformerFeatures.from_pretrained("minilm")
    expected = ws.attention_pair(phi, "I love her much", "I love her smile", layer=1)
    assert pair["changed"] == [4]
    assert pair["weights"] == [weights.tolist() for weights in expected.weights]
    moved = (expected.difference.abs().sum(dim=1) / 2).tolist()
    assert pair["moved"] == pytest.approx(moved)
    assert pair["share"] == pytest.approx(sum(moved) / 6)
    (record,) = RecordStore(tmp_path / "attention-records", AttentionRecord).read()
    assert record.value == pair["share"]
    assert record.pair() == expected
    assert pq.read_schema(document["records"]).names == documented("The columns of the attention records")


def test_words_of_different_tokens_are_compared_word_by_word(wordsens, tmp_path, no_figures):
    arguments = ("paper", "attention", "I love her much", "I love her unbelievably", "--layer", "-1", "--head", "3")
    (pair,) = json.loads(wordsens(*arguments, "--out", str(tmp_path), "--json", "--quiet").out)["series"]
    assert pair["tokens"][1] == ["[CLS]", "I", "love", "her", "unbelievably", "[SEP]"]
    assert (pair["changed"], pair["layer"], pair["head"]) == ([4], 6, 3)
    for weights in pair["weights"]:
        assert [sum(row) for row in weights] == pytest.approx([1.0] * 6)
    phi = ws.TransformerFeatures.from_pretrained("minilm")
    whole = ws.attention_pair(phi, *arguments[2:4], layer=-1, head=3).weights[1]
    assert pair["weights"][1][0][4] == pytest.approx(float(whole[0, 4:-1].sum()))
    assert pair["weights"][1][4][1] == pytest.approx(float(whole[4:-1, 1].mean()))


def test_the_answers_of_a_causal_model(wordsens, tmp_path, decoder):
    run = wordsens(
        "paper", "attention", "the film was good", "the film was bad", "--model", decoder, "--out", str(tmp_path),
        "--prompt", "the film was very", "--prompt", "the film was not", "--answer", "good", "--answer", "bad",
    )  # fmt: skip
    assert run.code == 0, run.err
    assert "The answer 'good' has probability" in run.out
    assert (tmp_path / "figures" / "prompts.pdf").exists()
    (record,) = RecordStore(tmp_path / "attention-records", AttentionRecord).read()
    phi = ws.TransformerFeatures.from_pretrained(decoder, output="probabilities", pool="last")
    expected = ws.prompt_pair(phi, "the film was very", "the film was not", answers=("good", "bad"))
    assert record.prompt_pair().probabilities.tolist() == expected.probabilities.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layer", "7"], "--layer (=7) has no attention; choose 1 to 6, or -1 for the last"),
        (["--head", "12"], "--head (=12) does not exist; choose 0 to 11, or None for their mean"),
        (["--head", "first"], "--head (='first') must be 0, 1, ..., or mean"),
        (["I love her"], "`attention` is followed by 1 text (I love her); give two texts in quotes"),
        (["good", "bad"], "`first` (='good') has one word; give two or more"),
        (["I love her", "I LOVE her"], "`second` (='I LOVE her') reads the same as `first` to minilm; change a word"),
        (["I love her", "I love her so"], "`first` has 3 words and `second` has 4, so that their attention cannot"),
        (["--prompt", "one"], "--prompt is given 1 times; give two prompts that differ in a word"),
        (
            ["--prompt", "a b", "--prompt", "a c"],
            "--prompt and --answer need a causal language model, and minilm reads both ways",
        ),
        (["--model", "no/such"], "no model 'no/such'"),
        (["--style", "nowhere"], "--style (='nowhere') is neither a file nor a style of matplotlib"),
    ],
)
def test_what_cannot_be_compared_is_one_line(wordsens, tmp_path, arguments, message):
    run = wordsens("paper", "attention", *arguments, "--out", str(tmp_path / "out"))
    assert run.code == 2
    assert message in run.err
    assert run.err.count("\n") == 1
    assert run.out == ""
    assert not (tmp_path / "out").exists()


def test_options_of_attention_belong_to_it(wordsens):
    run = wordsens("paper", "sensitivity", "--head", "3")
    assert run.code == 2
    assert "--head (='3') is an option of attention; draw that, or drop it" in run.err


def test_everything_and_the_report(wordsens, tmp_path, monkeypatch):
    from wordsens.cli.paper import run as paper_run

    monkeypatch.setattr(paper_run, "run_experiment", lambda one, options: {"command": f"paper {one.name}"})
    monkeypatch.setattr(paper_run, "_report", lambda options: tmp_path / "report.html")
    document = json.loads(wordsens("paper", "all", "--out", str(tmp_path), "--json").out)
    names = ("sensitivity", "generalization", "attention", "departures", "correlations", "several-words", "similarity")
    assert [part["command"] for part in document["parts"]] == [f"paper {name}" for name in names]
    assert document["report"] == str(tmp_path / "report.html")
    assert "report   " in wordsens("paper", "all", "--out", str(tmp_path)).out
    one = json.loads(wordsens("paper", "attention", "--out", str(tmp_path), "--json").out)
    assert one == {"command": "paper attention"}
