"""Reading and writing pairs of texts."""

import re

import pytest

import wordsens as ws
from wordsens.text.pairs import PACKAGE, Pair
from wordsens.text.tables import TABLES

ROWS = [
    ("switch", "How do I turn it on?", "How do I turn it off, please?", False),
    ("paraphrase", 'Say "hello", she wrote', "Greet, came the answer", True),
]
PAIRS = [Pair(*row, {"id": str(at), "note": "a, b"}) for at, row in enumerate(ROWS)]


@pytest.mark.parametrize("extension", TABLES)
def test_a_file_gives_back_what_was_written(tmp_path, extension):
    ws.write_pairs(PAIRS, tmp_path / f"pairs{extension}")
    assert ws.read_pairs(tmp_path / f"pairs{extension}") == PAIRS


def test_tuples_dicts_and_pairs_are_rows():
    named = [dict(zip(("kind", "first", "second", "same"), row, strict=True)) for row in ROWS]
    assert ws.read_pairs(ROWS) == ws.read_pairs(named) == [Pair(*row) for row in ROWS]
    assert ws.read_pairs(PAIRS) == PAIRS


def test_the_packages_own_are_the_default_and_keep_their_columns():
    own = ws.read_pairs()
    assert own == ws.meaning_pairs() == ws.read_pairs(own)
    assert {pair.where for pair in own} == {pair.where for pair in ws.read_pairs(own)} == {PACKAGE}
    assert set(own[0].columns) == {"id", "domain", "note", "set"}


@pytest.mark.parametrize(
    ("value", "same"), [("yes", True), ("1", True), (1, True), ("False", False), (0, False)]
)
def test_same_may_be_told_in_many_ways(value, same):
    assert ws.read_pairs([("k", "a b", "a c", value)])[0].same is same


@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        ("The cat sees the dog.", "The dog sees the cat.", ("cat ... dog", "dog ... cat")),
        ("It is on.", "It is not on.", ("", "not")),
        ("She won", "She lost", ("won", "lost")),
    ],
)
def test_the_words_that_changed(first, second, changed):
    assert Pair("k", first, second, False).changed == changed


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "`pairs` holds no pair; give rows of kind, first, second, same"),
        (["abcd"], "pair 0 must be a row of kind, first, second, same, not 'abcd'"),
        ([{"kind": "k", "first": "a", "second": "b"}], "pair 0 has no column 'same'"),
        (
            [("k", "a", "b", False), ("k", "a", "a", False)],
            "pair 1: its two texts are equal ('a'); leave it out",
        ),
        (
            [("k", "a", "b", "maybe")],
            "pair 0: `same` (='maybe') must be true (the same meaning) or false (an opposite)",
        ),
        ("nowhere.csv", "`pairs`: there is no file 'nowhere.csv'"),
        ("pairs.xlsx", "`pairs` (='pairs.xlsx') has an unknown extension; use one of .csv"),
    ],
)
def test_a_wrong_row_is_named(rows, message):
    with pytest.raises(ws.InputError, match=re.escape(message)):
        ws.read_pairs(rows)


@pytest.mark.parametrize(
    ("no", "yes"),
    [
        ("FALSE", "TRUE"),
        ("0.0", "1.0"),
        ("falsch", "wahr"),
        ("faux", "vrai"),
        (" No", "Yes "),
        ("", "1"),
    ],
)
def test_spreadsheets_of_other_languages_are_understood(tmp_path, no, yes):
    path = tmp_path / "own.csv"
    path.write_text(f"FIRST, Second ,Same\nturn it on,turn it off,{no}\nit is on,it's on,{yes}\n")
    pairs = ws.read_pairs(path)
    assert [(pair.kind, pair.same) for pair in pairs] == [("yours", False), ("yours", True)]
    assert [pair.where for pair in pairs] == ["own.csv:2", "own.csv:3"]
    # Read again as Pairs, as commands do, a row keeps its place in the file.
    assert [pair.where for pair in ws.read_pairs(pairs)] == ["own.csv:2", "own.csv:3"]


def test_an_empty_label_beside_false_ones_is_a_fault():
    rows = [("k", "a", "b", "no"), ("k", "c", "d", "yes"), ("k", "e", "f", "")]
    with pytest.raises(ws.InputError, match=r"pair 2: `same` \(=''\) must be true"):
        ws.read_pairs(rows)
    with pytest.raises(ws.InputError, match=r"pair 1: `same` \(=None\) must be true"):
        ws.read_pairs([("k", "a", "b", ""), ("k", "c", "d", None)])


def test_names_of_missing_values_are_texts(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("kind,first,second,same,note\nnan,nan,None,no,NA\nNone,null,<NA>,no,\n")
    pairs = ws.read_pairs(path)
    assert [(pair.first, pair.second) for pair in pairs] == [("nan", "None"), ("null", "<NA>")]
    assert [pair.kind for pair in pairs] == ["nan", "None"]
    assert [pair.columns["note"] for pair in pairs] == ["NA", ""]


def test_all_faults_are_named_in_one_run(tmp_path):
    path = tmp_path / "own.csv"
    lines = ["kind,first,second,same", "k,a,b,perhaps", "k,a,c,no", "k,,d,yes", ",,,", "k,e,e,no"]
    path.write_text("\n".join(lines))
    with pytest.raises(ws.InputError) as caught:
        ws.read_pairs(path)
    message = str(caught.value)
    assert all(place in message for place in ("own.csv:2", "own.csv:4", "own.csv:6"))
    assert "own.csv:3" not in message and "own.csv:5" not in message and "\n" not in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("question,second,same\na,b,no\n", r"own\.csv:2 .*'first'.*'question', 'second', 'same'"),
        ("first,second,same\n", r"own\.csv'\) holds no pair"),
    ],
)
def test_a_missing_column_and_a_file_without_rows_are_named(tmp_path, content, message):
    (tmp_path / "own.csv").write_text(content)
    with pytest.raises(ws.InputError, match=message):
        ws.read_pairs(tmp_path / "own.csv")


def test_a_data_frame_holds_pairs():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["kind", "first", "second", "same"])
    assert ws.read_pairs(frame) == [Pair(*row) for row in ROWS]
