"""Texts as heat maps: words as they are written, in order, with what was measured of each."""

import json

import pytest
from tests.report.conftest import write_records

from wordsens.report.load import load_runs
from wordsens.report.texts import LEVELS, Word, heat_texts
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
    assert first == Word("one", 1.0, 2.0, None, 0.5, "swap0", (("one", 0.3, 0.01, 0.9),), 4)
    assert (last.text, last.attained, last.upper, last.swapped_for, last.level) == (
        "two",
        3.0,
        4.0,
        "swap2",
        6,
    )


def test_one_scale_of_colours_serves_all_texts_from_white_at_zero(tmp_path, given):
    """A fully connected layer that a word moves by .4 is pale beside attention that it moves by 3.25."""
    records = [given("one two", per_word=(0.0, most, most)) for most in (0.4, 3.25)]
    dense, attention = (texts_of(tmp_path / str(at), record).texts[0] for at, record in enumerate(records))
    levels = [[word.level for word in text.words] for text in (dense, attention)]
    assert levels == [[0, int(LEVELS * 0.4 / 1.4)], [0, int(LEVELS * 3.25 / 4.25)]]
    assert dense.ends == attention.ends == ("0", "8 or more")


def test_a_black_box_is_coloured_by_what_taking_a_word_out_does(tmp_path, audit_record):
    nothing = (float("nan"),) * 2
    record = audit_record([("not", 1.0), ("good", 0.5)], sensitivity=nothing, removal=(0.1, 0.4), value=0.4)
    (text,) = texts_of(tmp_path, record).texts
    assert [(word.attained, word.level) for word in text.words] == [(None, LEVELS // 4), (None, LEVELS - 1)]
    assert text.measure == "of the output’s size, when the word is taken out"
