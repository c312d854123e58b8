"""`wordsens guard`: one pair, pairs from stdin, and what it refuses."""

import io
import json

import pytest

from wordsens.text.tables import table_rows

SAME = ("The lift isn't working.", "The lift is not working.")
DIFFERENT = ("How do I enable it?", "How do I disable it?")


@pytest.fixture
def piped(wordsens, monkeypatch):
    """A function that runs `wordsens guard` with a text on stdin."""

    def run(text, *arguments):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return wordsens("guard", *arguments)

    return run


def test_one_pair(wordsens):
    run = wordsens("guard", *DIFFERENT)
    assert (run.code, run.out) == (0, "different\tantonym: enable / disable\n")


def test_what_a_cache_should_do_is_said_beside_the_verdict(wordsens):
    unsure = ("Add a pinch of nutmeg.", "Add a pinch of cinnamon.")
    run = wordsens("guard", *unsure)
    assert (
        run.out.split("\t")[0],
        "cache should miss" in run.err,
        "second opinion" in run.err,
    ) == (
        "unsure",
        True,
        True,
    )
    assert "may reuse the answer" in wordsens("guard", *SAME).err
    assert (
        wordsens("guard", *unsure, "--quiet").err == wordsens("guard", *unsure, "--json").err == ""
    )


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps({"first": a, "second": b, "id": 1}) for a, b in (SAME, DIFFERENT)),
        "\n\n".join(json.dumps(pair) for pair in (SAME, DIFFERENT)),
        "id,second,first\n" + "\n".join(f'1,"{b}","{a}"' for a, b in (SAME, DIFFERENT)),
    ],
)
def test_a_line_for_each_pair_of_stdin(piped, text):
    run = piped(text)
    assert run.code == 0
    assert [line.split("\t")[0] for line in run.out.splitlines()] == ["same", "different"]


def test_a_requirement(piped, wordsens):
    assert wordsens("guard", *SAME, "--require-same").code == 0
    run = piped("\n".join(json.dumps(pair) for pair in (SAME, DIFFERENT)), "--require-same")
    assert run.code == 3
    assert run.out.count("\n") == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no pair"),
        ("a,b\n1,2\n", "first and second"),
        ("first,second\nalone\n", "line 2"),
        ('["a", "b"]\n{"first": "a"}\n', "line 2"),
        ('["a", "b"]\n["a", \n', "line 2"),
        ("first,second,first\na,b,c\n", "'first'"),
        (
            '["a", "b"]\n{"first": "a", "second": "b", "first": "c"}\n',
            "line 2, is not valid JSON: an object has the name 'first' twice",
        ),
    ],
)
def test_a_wrong_line_is_named_in_its_place(piped, text, said):
    run = piped(text)
    assert (run.code, said in run.out + run.err, "Traceback" in run.err) == (2, True, False)
    run = piped('["a", "a"]\n{"first": "a"}\n["b", "b"]\n')
    assert [line.split("\t")[0] for line in run.out.splitlines()] == ["same", "error", "same"]


def test_broken_characters(wordsens):
    assert wordsens("guard", "\udce9 one", "\udce8 one").code == 0
    assert wordsens("guard", "\udce9 one", "\udce8 one", "--json").code == 0


ROWS = [
    {"id": 1, "first": SAME[0], "second": SAME[1]},
    {"id": 2, "first": DIFFERENT[0], "second": DIFFERENT[1]},
    {"id": 3, "first": "mw-3", "second": "mw-2"},
]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_file_of_pairs_gets_verdicts_beside_its_own_columns(wordsens, pairs, tmp_path, extension):
    out = tmp_path / f"out{extension}"
    assert wordsens("guard", "--pairs", str(pairs), "--out", str(out)).code == 0
    rows = [row for _, row in table_rows(out)]
    assert [list(row) for row in rows] == [["id", "first", "second", "verdict", "reason"]] * 3
    assert [str(row["id"]) for row in rows] == ["1", "2", "3"]
    assert [row["verdict"] for row in rows] == ["same", "different", "different"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["pairs.jsonl", out.name])
    assert wordsens("guard", "--pairs", str(out)).code == 2  # it has the columns already


def test_a_summary_by_verdict_and_reason(wordsens, pairs):
    run = wordsens("guard", "--pairs", str(pairs), "--json", "--quiet")
    document = json.loads(run.out)
    assert [document[key] for key in ("command", "pairs", "same", "different", "unsure")] == [
        "guard",
        3,
        1,
        2,
        0,
    ]
    assert {(row["verdict"], row["reason"], row["pairs"]) for row in document["reasons"][1:]} == {
        ("different", "antonym", 1),
        ("different", "quantity", 1),
    }
    example = next(row["example"] for row in document["reasons"] if row["reason"] == "quantity")
    assert example == {"first": "mw-3", "second": "mw-2", "reason": "quantity: 3 / 2"}
    assert "3 pairs: 1 same, 2 different, 0 unsure." in wordsens("guard", "--pairs", str(pairs)).out
    assert wordsens("guard", "--pairs", str(pairs), "--require-same").code == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"first": "a", "second": "b"}\n{"first": "a"}\n', "pairs.jsonl:2"),
        ('{"first": "a", "second": 3}\n', "pairs.jsonl:1"),
        (
            '{"first": "a", "second": "b"}\n{"first": "a", "second": " "}\n',
            "pairs.jsonl:2: `second`",
        ),
        ("", "no pair"),
    ],
)
def test_a_wrong_row_of_a_file_is_named_and_nothing_is_written(wordsens, tmp_path, text, said):
    path, out = tmp_path / "pairs.jsonl", tmp_path / "out.csv"
    path.write_text(text, encoding="utf-8")
    run = wordsens("guard", "--pairs", str(path), "--out", str(out))
    assert (run.code, said in run.err, out.exists()) == (2, True, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--out", "x.csv"),
        ("--workers", "2"),
        ("a", "b", "--pairs", "x.csv"),
        ("--pairs", "x.csv", "--workers", "0"),
    ],
)
def test_options_that_exclude_each_other(wordsens, arguments):
    assert wordsens("guard", *arguments).code == 2


@pytest.mark.parametrize("out", ["out.txt", "nowhere/out.csv"])
def test_a_wrong_place_is_refused_before_the_pairs_are_judged(wordsens, pairs, out):
    run = wordsens("guard", "--pairs", str(pairs), "--out", str(pairs.parent / out))
    assert (run.code, "`out`" in run.err or "--out" in run.err) == (2, True)


def test_the_file_of_pairs_is_not_overwritten(wordsens, pairs):
    before = pairs.read_bytes()
    run = wordsens(
        "guard",
        "--pairs",
        str(pairs),
        "--out",
        str(pairs.parent / ".." / pairs.parent.name / pairs.name),
    )
    assert (run.code, run.err.count("\n"), pairs.read_bytes()) == (2, 1, before)


@pytest.fixture
def rewritten(tmp_path):
    """The paths of a text and of its rewriting, which lost a condition and a negation."""
    paths = tmp_path / "before.txt", tmp_path / "after.txt"
    for path, text in zip(
        paths,
        ("Refund only if the seal\nis not broken.", "Refund if the seal is broken."),
        strict=True,
    ):
        path.write_text(text, encoding="utf-8")
    return [str(path) for path in paths]


def test_a_line_for_each_loss_of_a_rewriting(wordsens, rewritten):
    run = wordsens("guard", "--rewrite", *rewritten)
    assert run.code == 0
    sentence = "Refund only if the seal is not broken."
    assert run.out.splitlines() == [
        f"only\tonly\t7-11\t{sentence}",
        f"negation\tnot\t27-30\t{sentence}",
    ]


def test_the_losses_as_json_and_as_a_requirement(wordsens, rewritten):
    run = wordsens("guard", "--rewrite", *rewritten, "--json", "--require-same")
    assert run.code == 3
    assert [(loss["kind"], loss["start"]) for loss in json.loads(run.out)["lost"]] == [
        ("only", 7),
        ("negation", 27),
    ]
    run = wordsens("guard", "--rewrite", rewritten[0], rewritten[0], "--require-same")
    assert (run.code, run.out) == (0, "nothing lost\n")


def test_an_empty_original_is_refused(wordsens, rewritten, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n", encoding="utf-8")
    run = wordsens("guard", "--rewrite", str(empty), rewritten[1])
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("arguments", [(), ("alone.txt",), ("none.txt", "neither.txt")])
def test_a_rewriting_needs_two_files(wordsens, arguments):
    run = wordsens("guard", "--rewrite", *arguments)
    assert (run.code, run.err.count("\n")) == (2, 1)


def test_a_table_on_stdin_without_a_pair_is_an_error(piped):
    run = piped("first,second\n")
    assert run.code == 2
    assert "no pair" in run.err


def test_a_table_on_stdin_may_begin_with_a_mark_and_hold_long_texts(piped):
    long = "open " * 50_000
    run = piped(f"\ufefffirst,second\non,off\n{long},{long}\n")
    assert run.code == 0
    assert [line.split("\t")[0] for line in run.out.splitlines()] == ["different", "same"]
