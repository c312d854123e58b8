"""`wordsens paper attention`: figure 1, its table and document, and what cannot be compared."""

import json
from statistics import fmean

import pytest

import wordsens as ws
from tests.maps.tiny_models import save_tiny
from wordsens.maps.transformer.prompt_pair import prompt_pair
from wordsens.studies.attention import measured_pair


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """The folder of a tiny causal language model."""
    folder = tmp_path_factory.mktemp("decoder")
    save_tiny(folder, "llama", "AutoModelForCausalLM")
    return str(folder)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take most of the time; one test looks at them."""
    monkeypatch.setattr("wordsens.plotting.records.save_figures", lambda *_: [])


def test_the_papers_pair(wordsens, tmp_path, monkeypatch):
    run = wordsens("paper", "attention", "--out", str(tmp_path))
    assert run.code == 0, run.err
    assert "I love her much  |  I love her smile" in run.out
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"attention.{end}" for end in ("pdf", "png", "svg")
    }
    monkeypatch.setattr("wordsens.plotting.records.save_figures", lambda *_: [])
    document = json.loads(
        wordsens("paper", "attention", "--out", str(tmp_path), "--json", "--quiet").out
    )
    phi = ws.TransformerFeatures.from_pretrained("minilm")
    expected = ws.attention_pair(phi, "I love her much", "I love her smile", layer=1)
    moved = (expected.difference.abs().sum(dim=1) / 2).tolist()
    (table,) = document["tables"]
    assert [row["moved"] for row in table["rows"]] == pytest.approx(moved)
    assert [row["from much"] for row in table["rows"]] == expected.weights[0][:, 4].tolist()
    assert pair_in(tmp_path)[0] == expected


def pair_in(folder):
    (record,) = ws.read_records(folder, "attention").to_dict("records")
    pair, prompts = measured_pair(record)
    assert record["value"] == pytest.approx(fmean(pair.columns()["attention that moves"]))
    return pair, prompts


def test_words_of_different_tokens_are_compared_word_by_word(wordsens, tmp_path, no_figures):
    arguments = (
        "paper",
        "attention",
        "I love her much",
        "I love her unbelievably",
        "--layer",
        "-1",
        "--head",
        "3",
    )
    assert wordsens(*arguments, "--out", str(tmp_path), "--quiet").code == 0
    pair, _ = pair_in(tmp_path)
    assert pair.tokens[1] == ("[CLS]", "I", "love", "her", "unbelievably", "[SEP]")
    assert (pair.changed, pair.layer, pair.head) == ((4,), 6, 3)
    for weights in pair.weights:
        assert weights.sum(dim=1).tolist() == pytest.approx([1.0] * 6)
    phi = ws.TransformerFeatures.from_pretrained("minilm")
    whole = ws.attention_pair(phi, *arguments[2:4], layer=-1, head=3).weights[1]
    assert float(pair.weights[1][0, 4]) == pytest.approx(float(whole[0, 4:-1].sum()))
    assert float(pair.weights[1][4, 1]) == pytest.approx(float(whole[4:-1, 1].mean()))


def test_the_answers_of_a_causal_model(wordsens, tmp_path, decoder):
    run = wordsens(
        "paper",
        "attention",
        "the film was good",
        "the film was bad",
        "--model",
        decoder,
        "--out",
        str(tmp_path),
        "--prompt",
        "the film was very",
        "--prompt",
        "the film was not",
        "--answer",
        "good",
        "--answer",
        "bad",
    )
    assert run.code == 0, run.err
    assert (tmp_path / "figures" / "prompts.pdf").exists()
    phi = ws.TransformerFeatures.from_pretrained(decoder, output="probabilities", pool="last")
    expected = prompt_pair(phi, "the film was very", "the film was not", answers=("good", "bad"))
    assert pair_in(tmp_path)[1].probabilities.tolist() == expected.probabilities.tolist()
