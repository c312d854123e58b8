"""Texts as heat maps: words as they are written, in order, with what was measured of each."""

import json

import pytest
from tests.report.conftest import write_records

from wordsens.report import texts
from wordsens.report.load import load_runs
from wordsens.report.tables import ROWS, run_tables
from wordsens.report.texts import LEVELS, TEXTS, Word, heat_texts
from wordsens.text.whole_words import reading_words


@pytest.fixture
def given(make_record):
    """A function that gives the record of a given text, a token a word; the last word has two tokens."""

    def made(content, **changes):
        words = reading_words(content)
        whole = [[word, [at]] for at, word in enumerate(words)]
        whole[-1][1].append(len(words))
        tokens = [*words, "##s"]
        n = len(tokens)
        values = {
            "text": "given",
            "n": n,
            "source": "the command line",
            "asked": {"text": {"kind": "given", "content": content}},
            "content": content,
            "tokens": json.dumps(tokens),
            "whole_words": json.dumps(whole),
            "searched": tuple(range(n)),
            "per_word": tuple(1.0 + at for at in range(n)),
            "upper_per_word": tuple(2.0 + at for at in range(n)),
            "swap": tuple(0.5 + at for at in range(n)),
            "swapped_for": json.dumps([f"swap{at}" for at in range(n)]),
            "moved": json.dumps([[[0, 0.3, 0.01, 0.9]]] * n),
            "value": float(n),
            "word": n - 1,
            "token": "##s",
        }
        return make_record(**{**values, **changes})

    return made


def texts_of(folder, *records):
    return heat_texts(load_runs([write_records(folder, records)]))


@pytest.mark.parametrize(
    "content",
    [
        "I don't love it, much!",
        "  <script>bad()</script>  & \n\n more",
        "הסרט לא היה טוב",
        "😀 film 😀 film",
        '"onmouseover="x',
    ],
)
def test_a_text_is_written_as_it_was(tmp_path, given, content):
    (text,) = texts_of(tmp_path, given(content)).texts
    assert "".join(piece.text if isinstance(piece, Word) else piece for piece in text.pieces) == content
    assert [word.text for word in text.words] == reading_words(content)


def test_the_token_that_moves_most_speaks_for_its_word(tmp_path, given):
    (text,) = texts_of(tmp_path, given("one two")).texts
    first, last = text.words
    assert first == Word("one", 1.0, 2.0, None, 0.5, "swap0", (("one", 0.3, 0.01, 0.9),), 0)
    assert (last.text, last.attained, last.upper, last.swapped_for, last.level) == (
        "two",
        3.0,
        4.0,
        "swap2",
        LEVELS - 1,
    )


def test_words_that_were_not_searched_have_no_shade(tmp_path, given):
    some = {"searched": (1,), "per_word": (1.0,), "upper_per_word": (2.0,), "swap": None, "swapped_for": None}
    (text,) = texts_of(tmp_path, given("one two three", moved=None, **some)).texts
    assert [word.text for word in text.words] == ["two"]
    assert text.note == "3 of its 4 rows were not searched and have no colour."


def test_words_that_hardly_differ_look_alike(tmp_path, given):
    (text,) = texts_of(tmp_path, given("one two", per_word=(1.000, 1.001, 1.002))).texts
    assert {word.level for word in text.words} == {LEVELS - 1}


def test_records_without_words_have_no_text_and_synthetic_ones_have_numbers(tmp_path, make_record):
    assert texts_of(tmp_path / "old", make_record()).texts == []
    (text,) = texts_of(tmp_path / "new", make_record(n=3, searched=(0, 2), per_word=(1.0, 2.0))).texts
    assert [piece.text if isinstance(piece, Word) else piece for piece in text.pieces] == ["#0", " ", "#1", " ", "#2"]


def test_what_is_cut_is_told(tmp_path, given, monkeypatch):
    monkeypatch.setattr(texts, "WORDS", 100)
    shown = texts_of(tmp_path / "long", given(" ".join(["word"] * 110)))
    assert len(shown.texts[0].words) == 100
    assert shown.texts[0].note == "Its first 100 of 110 words."
    many = texts_of(tmp_path / "many", *(given(f"text {at}") for at in range(TEXTS + 3)))
    assert len(many.texts) == TEXTS
    assert many.note == f"{TEXTS} of {TEXTS + 3} texts are shown, with at most 100 words in all."


def test_an_audits_words_stand_in_their_order_with_gaps(tmp_path, audit_record):
    record = audit_record([("not", 1.0), ("good", 0.5)], words=10, places=(2 / 9, 3 / 9), words_lost=4)
    (text,) = texts_of(tmp_path, record).texts
    assert [piece.text if isinstance(piece, Word) else piece for piece in text.pieces] == [
        "… ",
        "not",
        " ",
        "good",
        " …",
    ]
    assert text.note == "8 of its words were not measured (…). 4 words after these were cut off unread."


def test_a_black_box_is_coloured_by_what_taking_a_word_out_does(tmp_path, audit_record):
    nothing = (float("nan"),) * 2
    record = audit_record([("not", 1.0), ("good", 0.5)], sensitivity=nothing, removal=(0.1, 0.4), value=0.4)
    (text,) = texts_of(tmp_path, record).texts
    assert [(word.attained, word.level) for word in text.words] == [(None, 0), (None, LEVELS - 1)]
    assert text.measure == "of the output’s size, when the word is taken out"


def test_many_records_are_cut_with_a_note(tmp_path, make_record):
    records = [make_record(draw=at, value=1.0 + at % 7, source=f"{at}") for at in range(ROWS + 10)]
    table = next(
        one for one in run_tables(load_runs([write_records(tmp_path, records)])) if one.title == "Records: sensitivity"
    )
    assert len(table.rows) == ROWS
    assert table.note == f"The first {ROWS:,} of {ROWS + 10}; `wordsens sweep export` writes all."
