"""`wordsens measure`: the tables, and the JSON document that docs/cli.md describes."""

import json
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import torch

import wordsens as ws
from wordsens.cli.measure import run as measure_run
from wordsens.experiments import sensitivity
from wordsens.experiments.run import measure
from wordsens.experiments.sensitivity import SensitivityCell
from wordsens.experiments.store import Store

FAST = ("--starts", "1", "--steps", "5")


def test_the_example_of_the_readme(wordsens):
    run = wordsens("measure", "I love her much", "--map", "rf,raf,relu-raf")
    assert run.code == 0
    assert run.err == ""
    assert "4 words, d = 384" in run.out
    for name in ("RF", "RAF (softmax)", "ReLU-RAF"):
        assert name in run.out
    words = run.out.split("S of each word (* the largest)")[1].split("S is how far")[0]
    for word in ("i", "love", "her", "much"):
        assert re.search(rf"^ +\d  {word} +(\d\.\d{{4}}\*? +){{2}}\d\.\d{{4}}", words, flags=re.MULTILINE)
    assert words.count("*") == 3
    explanation = " ".join(run.out.split())
    assert "‖Delta‖ <= 19.6" in explanation
    assert "a lower bound of the sup" in explanation


def test_json_is_one_document_with_the_documented_keys(wordsens, documented):
    run = wordsens("measure", "I love her much", "--map", "rf,raf,relu-raf", "--json", *FAST)
    assert run.code == 0
    assert run.err == ""
    assert run.out.count("\n") == 1
    document = json.loads(run.out)
    assert list(document) == documented("The document of `measure`")
    (text,) = document["texts"]
    assert list(text) == documented("Each of `texts`")
    assert [result["map"] for result in text["results"]] == ["rf", "raf", "relu-raf"]
    for result in text["results"]:
        assert list(result) == documented("Each of `results`")


def test_the_numbers_are_those_of_the_library(wordsens):
    run = wordsens("measure", "I love her much", "--map", "raf", "--seed", "3", "--radius", "5", "--json", *FAST)
    (result,) = json.loads(run.out)["texts"][0]["results"]
    X = ws.embed("I love her much")[0]
    expected = ws.word_sensitivity(
        ws.RandomAttentionFeatures(384, seed=3), X, radius=5.0, seed=3, search=ws.SearchPlan(starts=1, steps=5)
    )
    assert result["per_word"] == pytest.approx(expected.per_word.tolist(), rel=1e-12)
    assert result["value"] == pytest.approx(expected.value, rel=1e-12)
    assert result["token"] == X.tokens[expected.word]
    assert result["radius"] == [5.0] * 4


def test_thorough_bounds_are_those_of_the_library_and_lower(wordsens):
    command = ("measure", "I do not love her much and never will", "--map", "raf", "--json", *FAST)
    plain, thorough = (
        json.loads(wordsens(*command, "--bounds", effort).out)["texts"][0]["results"][0]
        for effort in ("normal", "thorough")
    )
    X = ws.embed("I do not love her much and never will")[0]
    assert thorough["upper"] == pytest.approx(
        float(ws.certify(ws.RandomAttentionFeatures(384), X, effort="thorough").max()), rel=1e-9
    )
    assert thorough["value"] == plain["value"]
    assert thorough["value"] <= thorough["upper"] < plain["upper"]
    run = wordsens(*command, "--bounds", "thorough", "--out", "records")
    assert run.code != 0
    assert "--out (='records') keeps records whose bounds are of normal effort" in run.err


def test_the_effort_of_a_search_is_chosen_by_name(wordsens):
    run = wordsens("measure", "I love her", "--map", "raf", "--search", "quick", "--steps", "3", "--json")
    (result,) = json.loads(run.out)["texts"][0]["results"]
    assert result["search"] == "quick, steps=3"
    wrong = wordsens("measure", "I love her", "--search", "quik")
    assert wrong.code == 2
    assert "must be one of quick, normal, thorough; did you mean 'quick'?" in wrong.err


@pytest.mark.slow
def test_theory_stands_beside_the_numbers(wordsens):
    arguments = ["measure", "I love her much", "--map", "raf,relu-raf,sigmoid-raf", *FAST]
    run = wordsens(*arguments, "--small-radius", "--conditions")
    told = " ".join(run.out.split())
    assert "S/radius at 0" in told
    assert "The upper numbers are certified: no perturbation in the ball goes beyond them." in told
    assert "The predicted numbers are theory's, and no bounds: the largest of 4 words for RAF (softmax)." in told
    assert told.count("[yes] rows of length sqrt(d)") == 3
    assert "[no] softmax scores: the scores are relu; Theorem 3 is about softmax" in told
    results = json.loads(wordsens(*arguments, "--small-radius", "--json").out)["texts"][0]["results"]
    X = ws.embed("I love her much")[0]
    phi = ws.RandomAttentionFeatures(384, seed=0)
    assert results[0]["predicted"] == ws.theory.predict(phi, X).value
    assert results[0]["predicted_of"] == "the largest of 4 words"
    assert results[0]["small_radius"] == pytest.approx(ws.jacobian_sensitivity(phi, X).tolist(), rel=1e-9)
    assert [result["predicted"] for result in results[1:]] == [None, None]
    plain = json.loads(wordsens(*arguments, "--radius", "1", "--json").out)["texts"][0]["results"][0]
    assert (plain["predicted"], plain["small_radius"]) == (None, None)


def test_bounds_that_hold_with_a_probability_say_so(wordsens):
    text = "good film and it goes on and on until it stops at last and we all go home"
    run = wordsens("measure", text, "--map", "rf", "--sample", "1", "--small-radius", *FAST)
    told = " ".join(run.out.split())
    assert "(they hold for RF with probability 1 - 1e-09 over the weights, for a text chosen without them)" in told
    assert "a typical word for RF." in told


def test_chosen_words(wordsens):
    run = wordsens("measure", "I love her much", "--map", "raf", "--word", "2", "--word", "-4", "--json", *FAST)
    (result,) = json.loads(run.out)["texts"][0]["results"]
    assert (result["words"], result["tokens"]) == ([2, 0], ["her", "i"])


@pytest.mark.slow
def test_a_sample_of_the_words(wordsens):
    arguments = ["measure", "I love her much and she loves me", "--map", "raf,relu-raf", "--sample", "3", *FAST]
    raf, relu = json.loads(wordsens(*arguments, "--json").out)["texts"][0]["results"]
    assert len(set(raf["words"])) == 3
    assert raf["words"] == relu["words"] == sorted(raf["words"])
    assert (
        json.loads(wordsens(*arguments, "--json", "--seed", "1").out)["texts"][0]["results"][0]["words"] != raf["words"]
    )
    run = wordsens(*arguments)
    assert "RAF (softmax): 3 of 8 words searched." in run.out
    assert len(re.findall(r"^ +\d  \S+ +\d\.\d{4}", run.out, flags=re.MULTILINE)) == 3


@pytest.mark.slow
def test_a_map_that_is_not_built_searches_few_words(wordsens):
    text = "good film and it goes on and on until it stops at last and we all go home"
    run = wordsens("measure", text, "--map", "rf,raf", "--json", *FAST)
    rf, raf = json.loads(run.out)["texts"][0]["results"]
    assert len(raf["words"]) == 18
    assert 1 <= len(rf["words"]) < 18
    table = wordsens("measure", text, "--map", "rf,raf", *FAST)
    assert f"RF: {len(rf['words'])} of 18 words searched." in table.out
    drf = json.loads(wordsens("measure", text, "--map", "drf", "--depth", "8", "--json", *FAST).out)
    assert 1 <= len(drf["texts"][0]["results"][0]["words"]) < 18


@pytest.mark.slow_cases("options0-*")
@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--map", "drf", "--depth", "2", "--width", "30", "--activation", "tanh"], "drf2"),
        (["--map", "sigmoid-raf", "--temperature", "2"], "sigmoid-raf"),
    ],
)
def test_options_of_the_maps(wordsens, options, name):
    changed = json.loads(wordsens("measure", "good film", "--json", *FAST, *options).out)
    usual = json.loads(wordsens("measure", "good film", "--json", *FAST, *options[:2]).out)
    assert changed["texts"][0]["results"][0]["map"] == name
    assert changed["texts"][0]["results"][0]["value"] != usual["texts"][0]["results"][0]["value"]


def test_special_tokens_layers_and_truncation(wordsens):
    run = wordsens(
        "measure",
        "a good film",
        "--map",
        "raf",
        "--keep-special-tokens",
        "--max-words",
        "3",
        "--layer",
        "-1",
        "--json",
        *FAST,
    )
    document = json.loads(run.out)
    assert document["texts"][0]["tokens"] == ["[CLS]", "a", "good"]
    assert document["layer"] == -1


def test_a_file(wordsens, tmp_path):
    (tmp_path / "letter.md").write_bytes("sch\xf6n und gut".encode("latin-1"))
    run = wordsens(
        "measure", "--file", str(tmp_path / "letter.md"), "--encoding", "latin-1", "--map", "raf", "--json", *FAST
    )
    assert json.loads(run.out)["texts"][0]["source"] == "letter.md"


@pytest.mark.slow
def test_a_dataset_gives_a_row_a_text_and_map(wordsens, tmp_path):
    (tmp_path / "t.csv").write_text("review\na good film\nhello\nquite [bold]bad[/bold]\nnot read\n")
    arguments = ["measure", "--dataset", str(tmp_path / "t.csv"), "--text-column", "review", "--limit", "3"]
    run = wordsens(*arguments, "--map", "raf,relu-raf", *FAST)
    assert run.code == 0
    lines = run.out.splitlines()
    rows = [line for line in lines if re.search(r"RAF.* \d\.\d{4} ", line)]
    assert len(rows) == 4
    assert "t.csv:1" in run.out
    assert "t.csv:2" not in run.out
    assert "t.csv:4" not in run.out
    assert "1 of 3 texts have one word only and are left out" in run.err
    document = json.loads(wordsens(*arguments, "--map", "raf", "--json", *FAST).out)
    assert [text["source"] for text in document["texts"]] == ["t.csv:1", "t.csv:3"]
    assert document["skipped"] == ["t.csv:2"]
    assert wordsens(*arguments, "--map", "raf", "--quiet", *FAST).err == ""


def test_a_token_that_looks_like_markup_is_shown_as_it_is(wordsens):
    run = wordsens("measure", "a [ / bold ] move", "--map", "raf", *FAST)
    assert run.code == 0
    assert re.search(r"^ +1  \[ ", run.out, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_long_text_shows_its_most_sensitive_words(wordsens):
    text = " ".join(["good film", *["and it goes on"] * 12])
    run = wordsens("measure", text, "--map", "raf", *FAST)
    assert "... and 10 less sensitive words; --all-words shows them." in run.out
    values = [float(value) for value in re.findall(r"^ +\d+  \S+ +(\d\.\d{4})", run.out, flags=re.MULTILINE)]
    assert len(values) == 40
    X = ws.embed(text)[0]
    per_word = ws.word_sensitivity(
        ws.RandomAttentionFeatures(384, seed=0), X, search=ws.SearchPlan(starts=1, steps=5)
    ).per_word
    assert sorted(values) == pytest.approx(per_word.sort().values[10:].tolist(), abs=1e-4)
    everything = wordsens("measure", text, "--map", "raf", "--all-words", *FAST)
    assert "less sensitive words" not in everything.out
    assert len(re.findall(r"^ +\d+  \S+ +\d\.\d{4}", everything.out, flags=re.MULTILINE)) == 50


def test_a_search_cut_short_says_so(wordsens):
    said = " ".join(wordsens("measure", "good film", "--map", "raf", *FAST).out.split())
    assert "words the search did not end at a peak: more steps (--steps) may find more." in said


@pytest.mark.slow_cases("80")
@pytest.mark.parametrize("columns", ["80", "120"])
def test_tables_stay_readable(wordsens, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    names = "rf,drf,raf,relu-raf"
    run = wordsens("measure", "I love her much", "--map", names, *FAST)
    assert max(len(line) for line in run.out.splitlines()) <= int(columns)
    # 4 words, 4 maps, each with the attained value and its upper bound.
    assert len(re.findall(r"\d\.\d{4}", run.out.split("S of each word")[1])) == 32


def test_a_certificate_is_shown_beside_the_value(wordsens, monkeypatch):
    measured = measure_run.word_sensitivity

    def certified(*arguments, **options):
        result = measured(*arguments, **options)
        return replace(result, upper=9.0, upper_per_word=torch.full_like(result.per_word, 8.5))

    monkeypatch.setattr(measure_run, "word_sensitivity", certified)
    run = wordsens("measure", "good film", "--map", "raf", *FAST)
    assert "upper" in run.out
    assert "9.0000" in run.out
    assert run.out.count("8.5000") == 2
    assert "certified: no perturbation in the ball goes beyond them" in run.out


def test_records_are_kept_and_not_measured_again(wordsens, tmp_path, documented, monkeypatch):
    arguments = ("measure", "Not שלום 😀!", "--map", "raf,rf", "--out", str(tmp_path), *FAST)
    first = wordsens(*arguments, "--json")
    document = json.loads(first.out)
    assert document["records"] == str(tmp_path / "measure.parquet")
    assert set(documented("The columns of the records")) <= set(pq.read_schema(document["records"]).names)
    rows = {row["map"]: row for row in pq.read_table(document["records"]).to_pylist()}
    for result in document["texts"][0]["results"]:
        row = rows[result["map"]]
        assert (row["text"], row["content"], row["n"]) == ("given", arguments[1], document["texts"][0]["n"])
        assert json.loads(row["tokens"]) == document["texts"][0]["tokens"]
        for key, column in (("words", "searched"), ("per_word", "per_word"), ("upper_per_word", "upper_per_word")):
            assert row[column] == result[key]
        assert (row["value"], row["word"], row["upper"]) == (result["value"], result["word"], result["upper"])
    words = [word for word, _ in json.loads(rows["raf"]["whole_words"])]
    assert words == ["Not", "שלום", "😀", "!"]
    moved = json.loads(rows["raf"]["moved"])
    assert rows["rf"]["moved"] is None
    for value, most in zip(rows["raf"]["per_word"], moved, strict=True):
        changes = [change for _, change, _, _ in most]
        assert changes == sorted(changes, reverse=True)
        assert sum(change**2 for change in changes) <= value**2 * (1 + 1e-9)

    monkeypatch.setattr(measure_run, "word_sensitivity", None)
    again = json.loads(wordsens(*arguments, "--json").out)
    for one in (document, again):
        for result in one["texts"][0]["results"]:
            del result["seconds"]
    assert again == document
    shown = wordsens(*arguments)
    assert shown.code == 0
    assert f"records  {tmp_path / 'measure.parquet'}" in shown.out


def test_the_kept_cell_gives_the_same_value_in_a_sweep(wordsens, tmp_path):
    wordsens("measure", "I love her much", "--map", "raf", "--search", "quick", "--seed", "3", "--out", str(tmp_path))
    with Store(tmp_path, read_only=True) as store:
        (record,) = store.records()
    text = {"kind": "given", "content": "I love her much"}
    keys = {"map": "raf", "n": 4, "d": 384, "text": text, "search": "quick", "seed": 3}
    again, _ = measure(sensitivity.EXPERIMENT, SensitivityCell.parse(keys))
    assert (again.cell, again.value, again.per_word) == (record.cell, record.value, record.per_word)
    assert again.search == "quick"


@pytest.mark.slow
def test_the_best_real_words(wordsens, tmp_path):
    arguments = ("measure", "I love her", "--map", "raf", "--swaps", *FAST)
    run = wordsens(*arguments)
    assert "real word" in run.out
    (result,) = json.loads(wordsens(*arguments, "--out", str(tmp_path), "--json").out)["texts"][0]["results"]
    X = ws.embed("I love her")[0]
    vocabulary = ws.TransformerFeatures.from_pretrained("minilm").vocabulary(special_tokens=False, rescale=True)
    expected = ws.best_swaps(ws.RandomAttentionFeatures(384, seed=0), X, vocabulary)
    assert result["swapped_for"] == list(expected.swapped_for)
    assert result["swap"] == pytest.approx(expected.per_word.tolist(), rel=1e-12)
    (row,) = pq.read_table(tmp_path / "measure.parquet").to_pylist()
    assert (row["swap"], json.loads(row["swapped_for"])) == (result["swap"], result["swapped_for"])
    wrong = wordsens("measure", "I love her", "--map", "raf", "--swaps", "--layer", "2")
    assert wrong.code == 2
    assert "`--swaps` needs the encoder's layer 0" in wrong.err


def test_what_was_kept_without_real_words_is_completed(wordsens, tmp_path):
    arguments = ("measure", "I love her", "--map", "raf", "--out", str(tmp_path), "--json", *FAST)
    assert json.loads(wordsens(*arguments).out)["texts"][0]["results"][0]["swap"] is None
    assert json.loads(wordsens(*arguments, "--swaps").out)["texts"][0]["results"][0]["swap"] is not None
    assert json.loads(wordsens(*arguments).out)["texts"][0]["results"][0]["swap"] is None


def test_a_transformer_is_kept_by_the_content_of_its_files(wordsens, tmp_path):
    arguments = ("measure", "I love her", "--map", "model", "--pool", "mean", "--out", str(tmp_path), "--json", *FAST)
    document = json.loads(wordsens(*arguments).out)
    (row,) = pq.read_table(tmp_path / "measure.parquet").to_pylist()
    assert row["value"] == document["texts"][0]["results"][0]["value"]
    assert "map_content" in json.loads(row["spec"])
    assert (row["encoder"], row["moved"]) == (None, None)
