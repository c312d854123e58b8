"""The column of texts that nobody named."""

import json

import pytest

from wordsens.text.text_column import text_column_of


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        ("id,review,stars", "a1,a long old film,5", "review"),
        ("text,review", "a b,a long old film", "text"),
        ("title,review", "the old film,a long old film", "text"),
        ("id,stars", "a1,5", "text"),
    ],
)
def test_the_only_column_with_texts_is_found(tmp_path, header, row, column):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n{row}\n{row}\n")
    assert text_column_of(path) == column


def test_other_sources(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({"n": at, "body": "one of many", "note": None}) for at in range(3)))
    assert text_column_of(path) == text_column_of(tmp_path) == "body"
    assert text_column_of("shipped") == text_column_of(tmp_path / "none.csv") == "text"
    (tmp_path / "e.csv").write_text("")
    assert text_column_of(tmp_path / "e.csv") == "text"
