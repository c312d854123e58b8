"""`wordsens measure`: the tables, and the JSON document that docs/json.md describes."""

import json
import re

import pyarrow.parquet as pq
import pytest

import wordsens as ws

RECORD = {"anyOf": [{"$ref": "#/$defs/Record"}]}
FAST = ("--starts", "1", "--steps", "5")


def test_the_example_of_the_readme(wordsens):
    run = wordsens("measure", "I love her much", "--map", "rf,raf,relu-raf")
    assert run.code == 0
    assert run.err == ""
    answer = " ".join(run.out.split("\n\n")[0].split())
    numbers = re.fullmatch(
        r"With random weights, one word can move attention (\d\.\d) times as far as a fully "
        r"connected layer: "
        r"RF (\d\.\d+), "
        r"RAF \(softmax\) (\d\.\d) and ReLU-RAF (\d\.\d) times its size\.",
        answer,
    )
    ratio, dense, attention, _ = map(float, numbers.groups())
    assert ratio == pytest.approx(attention / dense, rel=0.05)
    for word in ("i", "love", "her", "much"):
        assert re.search(
            rf"^ *\d +{word} +(\d\.\d{{2,3}} +){{2}}\d\.\d{{2}}", run.out, flags=re.MULTILINE
        )
    notes = " ".join(run.out.split())
    assert (
        "at most 19.6, divided by the output's size; a lower bound. At most: a certified upper"
        in notes
    )


def test_json_is_one_document_with_the_documented_keys(wordsens):
    run = wordsens("measure", "I love her much", "--map", "rf,raf,relu-raf", "--json", *FAST)
    assert run.code == 0
    assert run.err == ""
    assert run.out.count("\n") == 1
    document = json.loads(run.out)
    (text,) = document["texts"]
    assert [result["map"] for result in text["results"]] == ["rf", "raf", "relu-raf"]


def test_the_numbers_are_those_of_the_library(wordsens):
    run = wordsens(
        "measure",
        "I love her much",
        "--map",
        "raf",
        "--seed",
        "3",
        "--radius",
        "5",
        "--json",
        *FAST,
    )
    (result,) = json.loads(run.out)["texts"][0]["results"]
    X = ws.embed("I love her much")[0]
    expected = ws.word_sensitivity(
        ws.RandomAttentionFeatures(384, seed=3),
        X,
        radius=5.0,
        seed=3,
        search=ws.SearchPlan(starts=1, steps=5),
    )
    assert result["per_word"] == pytest.approx(expected.per_word.tolist(), rel=1e-12)
    assert result["value"] == pytest.approx(expected.value, rel=1e-12)
    assert result["token"] == X.tokens[expected.word]
    assert result["radius"] == [5.0] * 4


@pytest.mark.slow
def test_theory_stands_beside_the_numbers(wordsens):
    arguments = ["measure", "I love her much", "--map", "raf,relu-raf,sigmoid-raf", *FAST]
    run = wordsens(*arguments, "--small-radius", "--conditions", "--verbose")
    shown = " ".join(run.out.split())
    assert "S/radius at 0" in shown and "At most: a certified upper bound." in shown
    assert "RAF (softmax): predicted is the largest of 4 words." in shown
    assert shown.count("[yes] rows of length sqrt(d)") == 3
    assert "[no] softmax scores: the scores are relu; Theorem 3 is about softmax" in shown
    results = json.loads(wordsens(*arguments, "--small-radius", "--json").out)["texts"][0][
        "results"
    ]
    X = ws.embed("I love her much")[0]
    phi = ws.RandomAttentionFeatures(384, seed=0)
    assert results[0]["predicted"] == ws.theory.predict(phi, X).value
    assert results[0]["predicted_of"] == "the largest of 4 words"
    assert results[0]["small_radius"] == pytest.approx(
        ws.jacobian_sensitivity(phi, X).per_word.tolist(), rel=1e-9
    )
    assert [result["predicted"] for result in results[1:]] == [None, None]
    plain = json.loads(wordsens(*arguments, "--radius", "1", "--json").out)["texts"][0]["results"][
        0
    ]
    assert (plain["predicted"], plain["small_radius"]) == (None, None)


def test_all_measures_stand_below_the_words(wordsens):
    arguments = ["measure", "I love her", "--map", "raf", "--radius", "4", "--profile", *FAST]
    shown = wordsens(*arguments).out.split("S of each word")[1]
    (result,) = json.loads(wordsens(*arguments, "--json").out)["texts"][0]["results"]
    plan = ws.SearchPlan(starts=1, steps=5)
    phi = ws.RandomAttentionFeatures(384, seed=0)
    expected = ws.sensitivity_profile(phi, ws.embed("I love her")[0], radius=4, search=plan)
    assert result["profile"] == json.loads(json.dumps(expected.to_dict()))
    for row in expected.measures:
        pattern = rf"^{re.escape(row.name)} +[\d.e−]+ +{row.kind}"
        assert re.search(pattern, shown, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_dataset_gives_a_row_a_text_and_map(wordsens, tmp_path):
    (tmp_path / "t.csv").write_text(
        "review\na good film\nhello\nquite [bold]bad[/bold]\nnot read\n"
    )
    arguments = [
        "measure",
        "--texts",
        str(tmp_path / "t.csv"),
        "--text-column",
        "review",
        "--limit",
        "3",
    ]
    run = wordsens(*arguments, "--map", "raf,relu-raf", *FAST)
    assert run.code == 0
    lines = run.out.splitlines()
    rows = [line for line in lines if re.search(r"RAF.* \d\.\d{2,3} ", line)]
    assert len(rows) == 4
    assert "t.csv:2" in run.out
    assert "t.csv:3" not in run.out
    assert "t.csv:5" not in run.out
    assert "1 of 3 texts have one word only and are left out" in run.err
    document = json.loads(wordsens(*arguments, "--map", "raf", "--json", *FAST).out)
    assert [text["source"] for text in document["texts"]] == ["t.csv:2", "t.csv:4"]
    assert document["skipped"] == ["t.csv:3"]
    assert wordsens(*arguments, "--map", "raf", "--quiet", *FAST).err == ""


def test_records_are_kept_and_not_measured_again(wordsens, tmp_path, validator, monkeypatch):
    arguments = ("measure", "Not שלום 😀!", "--map", "raf,rf", "--out", str(tmp_path), *FAST)
    first = wordsens(*arguments, "--json")
    document = json.loads(first.out)
    assert document["records"] == str(tmp_path / "measure.parquet")
    rows = {row["map"]: row for row in pq.read_table(document["records"]).to_pylist()}
    columns = validator.schema["$defs"]["Record"]["properties"]
    for row in rows.values():
        record = {name: row[name] for name in columns}
        validator.evolve(schema=validator.schema | RECORD).validate(record)
    for result in document["texts"][0]["results"]:
        row = rows[result["map"]]
        assert (row["text"], row["content"], row["n"]) == (
            "given",
            arguments[1],
            document["texts"][0]["n"],
        )
        assert json.loads(row["tokens"]) == document["texts"][0]["tokens"]
        for key, column in (
            ("words", "searched"),
            ("per_word", "per_word"),
            ("upper_per_word", "upper_per_word"),
        ):
            assert row[column] == result[key]
        assert (row["value"], row["word"], row["upper"]) == (
            result["value"],
            result["word"],
            result["upper"],
        )
    words = [word for word, _ in json.loads(rows["raf"]["whole_words"])]
    assert words == ["Not", "שלום", "😀", "!"]

    monkeypatch.setattr(ws, "word_sensitivity", None)
    again = json.loads(wordsens(*arguments, "--json").out)
    for one in (document, again):
        for result in one["texts"][0]["results"]:
            del result["seconds"]
    assert again == document
    shown = wordsens(*arguments)
    assert shown.code == 0
    assert f"records  {tmp_path / 'measure.parquet'}" in shown.out


@pytest.mark.slow
def test_the_best_real_words(wordsens, tmp_path):
    arguments = ("measure", "I love her", "--map", "raf", "--swaps", *FAST)
    run = wordsens(*arguments)
    assert "real word" in run.out
    (result,) = json.loads(wordsens(*arguments, "--out", str(tmp_path), "--json").out)["texts"][0][
        "results"
    ]
    X = ws.embed("I love her")[0]
    vocabulary = ws.TransformerFeatures.from_pretrained("minilm").vocabulary(
        special_tokens=False, rescale=True
    )
    expected = ws.best_swaps(ws.RandomAttentionFeatures(384, seed=0), X, vocabulary=vocabulary)
    assert result["swapped_for"] == list(expected.swapped_for)
    assert result["swap"] == pytest.approx(expected.per_word.tolist(), rel=1e-12)
    (row,) = pq.read_table(tmp_path / "measure.parquet").to_pylist()
    assert (row["swap"], json.loads(row["swapped_for"])) == (result["swap"], result["swapped_for"])
    wrong = wordsens("measure", "I love her", "--map", "raf", "--swaps", "--layer", "2")
    assert wrong.code == 2
    assert "--swaps needs the encoder's layer 0" in wrong.err


def test_a_text_of_one_word_is_refused_alike_with_and_without_records(wordsens, tmp_path):
    runs = [wordsens("measure", "hello", *more) for more in ((), ("--out", str(tmp_path / "out")))]
    assert [run.code for run in runs] == [2, 2]
    assert runs[0].err == runs[1].err and "the text has one word" in runs[0].err
