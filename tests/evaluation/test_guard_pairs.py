"""The guard over many pairs: each is judged as by itself, whoever works, and its row stays as it
was."""

import subprocess
import sys

import pytest

import wordsens as ws

PAIRS = [(f"Plan {k} is ready.", f"Plan {k + k % 2} is ready.") for k in range(1300)]


@pytest.mark.parametrize("workers", [None, 2])
def test_each_pair_is_judged_as_by_itself(workers):
    done = []
    guarded = ws.guard_pairs(
        PAIRS, workers=workers, progress=lambda count, total: done.append((count, total))
    )
    assert list(guarded.judgements) == [ws.guard(*pair) for pair in PAIRS]
    assert guarded.counts == {"same": 650, "different": 650, "unsure": 0}
    assert done[-1] == (1300, 1300)
    assert done == sorted(done)


def test_the_most_frequent_reason_comes_first_with_its_first_pair():
    pairs = [("It is on.", "It is off."), ("Buy 2.", "Buy 3."), ("Buy 2.", "Buy 4.")]
    reasons = ws.guard_pairs(pairs).reasons
    assert [(count["reason"], count["pairs"]) for count in reasons] == [
        ("quantity", 2),
        ("antonym", 1),
    ]
    assert reasons[0]["example"]["second"] == "Buy 3."


def test_rows_keep_their_columns():
    rows = [
        {"id": 7, "first": "on", "second": "off", "tags": ["a"]},
        {"second": "The lift", "first": "the lift"},
    ]
    guarded = ws.guard_pairs(rows)
    assert [
        {k: row[k] for k in row if k not in ("verdict", "reason")} for row in guarded.rows()
    ] == rows
    assert [row["verdict"] for row in guarded.rows()] == ["different", "same"]
    assert list(guarded.table()["verdict"]) == ["different", "same"]


def test_pairs_of_the_check_are_taken():
    pairs = ws.read_pairs()[:3]
    assert [row["kind"] for row in ws.guard_pairs(pairs).rows()] == [pair.kind for pair in pairs]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "no pair"),
        ([("a", "b"), ("a",)], "pair 1"),
        ([("a", "b"), ("a", None)], "pair 1: `second`"),
        ([{"first": "a"}], "pair 0 has no column 'second'"),
        ([{"first": "a", "second": "b", "verdict": "same"}], "pair 0 has a column 'verdict'"),
    ],
)
def test_a_wrong_row_is_named(pairs, said):
    with pytest.raises(ws.InputError, match=said):
        ws.guard_pairs(pairs)


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "out.parquet"
    path.write_bytes(b"before")
    guarded = ws.guard_pairs(
        [{"first": "a", "second": "b", "x": 1}, {"first": "a", "second": "b", "x": "one"}]
    )
    with pytest.raises(ws.InputError, match="Parquet"):
        guarded.write(path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"before"]


def test_a_text_that_meets_many_is_read_once(monkeypatch):
    from wordsens.evaluation.guard import lexer

    scanned = []
    scan = lexer._scanned
    monkeypatch.setattr(
        lexer, "_scanned", lambda text, lexicon: scanned.append(text) or scan(text, lexicon)
    )
    ws.guard_pairs(
        [
            ("Which of the plans is read once?", f"Which of the plans is read {k} times?")
            for k in range(50)
        ]
    )
    assert scanned.count("which of the plans is read once?") == 1


def test_a_file_is_judged_without_torch(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("first,second\non,off\n", encoding="utf-8")
    code = (
        f"import sys, wordsens as ws; ws.guard_pairs({str(path)!r}); print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]
