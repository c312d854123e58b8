"""Texts as heat maps: words as they are written, in order, with what was measured of each."""

import json

import pytest

from tests.report.conftest import write_records
from wordsens.display.view import STRONGEST, ColouredWord, Words
from wordsens.report.load import load_runs
from wordsens.report.texts import texts_section
from wordsens.text.whole_words import reading_words


@pytest.fixture
def given(make_record):
    """A function that gives the record of a given text, a token a word; the last word has two
    tokens."""

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
            "value": float(n),
            "word": n - 1,
            "token": "##s",
        }
        return make_record(**{**values, **changes})

    return made


def parts_of(folder, *records):
    section = texts_section(load_runs([write_records(folder, records)]))
    return section.parts


def words_of(part):
    return [piece for piece in part.pieces if isinstance(piece, ColouredWord)]


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
    text, _ = parts_of(tmp_path, given(content))
    assert (
        "".join(piece.text if isinstance(piece, ColouredWord) else piece for piece in text.pieces)
        == content
    )
    assert [word.text for word in words_of(text)] == reading_words(content)


def test_the_token_that_moves_most_speaks_for_its_word(tmp_path, given):
    text, table = parts_of(tmp_path, given("one two"))
    first, last = words_of(text)
    assert first == ColouredWord("one", 1.0, "S 1, at most 2, best real word swap0 0.5")
    assert last == ColouredWord("two", 3.0, "S 3, at most 4, best real word swap2 2.5")
    assert {name: cells[1] for name, cells in table.columns.items()} == {
        "word": "one",
        "S": 1.0,
        "at most": 2.0,
        "best real word": "swap0 0.5",
    }


def test_one_scale_of_colours_serves_all_texts_from_zero(tmp_path, given):
    """A fully connected layer that a word moves by .4 is pale beside attention that it moves by
    3.25."""
    records = [
        given("one two", per_word=(0.0, most, most), map=name)
        for name, most in (("rf", 0.4), ("raf", 3.25))
    ]
    attention, _, dense, _ = parts_of(tmp_path, *records)
    assert (attention.title[:3], dense.title[:2]) == ("RAF", "RF")
    assert [word.value for word in words_of(dense)] == [0.0, 0.4]
    assert attention.most == dense.most == STRONGEST
    assert "lower bound" in attention.legend


def test_texts_whose_words_were_all_searched_come_first_and_all_are_counted(tmp_path, given):
    sampled = [
        given(f"five words {at}", words=1, searched=(0,), per_word=(9.0,), source=f"text {at}")
        | {"swap": None, "swapped_for": None, "upper_per_word": (10.0,)}
        for at in range(7)
    ]
    whole = given("one two", map="raf", words=3)
    count, *parts = parts_of(tmp_path, *sampled, whole)
    titles = [part.title for part in parts if isinstance(part, Words)]
    assert titles[0] == "RAF (softmax): the command line" and len(titles) == 6
    assert count.startswith("6 of 8 texts")


def test_texts_are_counted_once_the_most_sensitive_first_of_texts_and_of_maps(tmp_path, given):
    most = {1: 3.0, 2: 4.0, 3: 3.0, 4: 9.0, 5: 1.0, 10: 3.0, 11: 5.0}
    records = [
        given(f"one {at}", source=f"text {at}", map=name, per_word=(value, 0.1, 0.1), value=value)
        for at in most
        for name, value in (("rf", 0.2), ("relu-raf", 0.5), ("raf", most[at]))
    ]
    section = texts_section(load_runs([write_records(tmp_path, records)]))
    titles = [part.title for part in section.parts if isinstance(part, Words)]
    assert titles[::3] == [f"RAF (softmax): text {at}" for at in (4, 11, 2, 1, 3, 10)]
    assert [title.partition(":")[0] for title in titles[:3]] == ["RAF (softmax)", "ReLU-RAF", "RF"]
    assert section.parts[0].startswith("6 of 7 texts")


def test_given_texts_come_before_reviews_and_these_before_other_texts(tmp_path, given):
    kinds = ("gaussian", "reviews", "given")
    records = [
        given(f"one {kind}", text=kind, asked={"text": {"kind": kind}}, source=kind, value=value)
        for kind, value in zip(kinds, (3.0, 2.0, 1.0), strict=True)
    ]
    titles = [part.title for part in parts_of(tmp_path, *records) if isinstance(part, Words)]
    assert [title.split(": ")[1] for title in titles] == [*kinds[::-1]]


def test_what_was_cut_off_unread_is_not_printed(tmp_path, given):
    record = given("one two") | {"content": "one two three four"}
    text, _ = parts_of(tmp_path, record)
    assert (
        "".join(piece.text if isinstance(piece, ColouredWord) else piece for piece in text.pieces)
        == "one two …"
    )
