"""Words in many scripts: none ends at a combining mark, and what is left without one is a valid
text."""

import unicodedata

import pytest

from wordsens.text.whole_words import (
    first_words,
    reading_words,
    takes_apart,
    whole_words,
    without,
    word_spans,
    words_at,
)

SPACED = [
    "यह अच्छा नहीं है",
    "இது நல்லது இல்லை",
    "هٰذا لَيْسَ جَيِّدًا",
    "שָׁלוֹם עוֹלָם זֶה לֹא טוֹב",
    "안녕하세요 세계",
    unicodedata.normalize("NFD", "Le café n'est pas très cher"),
    "नमस्ते 👩‍👩‍👧 👍🏽",
    "a soft\u00adhyphen stays",
    "zero\u200cwidth joiners",
]


@pytest.mark.parametrize("text", SPACED)
def test_words_between_blanks_are_whole(text):
    assert reading_words(text) == text.split()


@pytest.mark.parametrize(
    "text",
    [*SPACED, "ไม่ดี", "ร้าน ABC", "ບໍ່ມັກ", "ខ្ញុំមិនចូល", "မကောင်းဘူး", "我不喜欢", "私はこの", "ང་ཟས་འདི་"],
)
def test_what_is_taken_apart_is_said_and_nothing_else(text):
    """Scripts by the names of their characters, and what their words become."""
    names = [unicodedata.name(sign, "") for sign in text]
    scripts = ("THAI", "LAO", "KHMER", "MYANMAR")
    assert takes_apart(text) == any(name.startswith(scripts) for name in names)
    if takes_apart(text):
        assert len(reading_words(text)) > len(text.split())


@pytest.mark.parametrize(
    "text", [*SPACED, "สวัสดีชาวโลก นี่ไม่ดี", "မြန်မာစာ မကောင်းဘူး", "ភាសាខ្មែរ", "你好，世界！"]
)
def test_no_word_starts_with_a_mark_and_none_is_left_behind_without_it(text):
    spans = word_spans(text)
    assert spans
    covered = "".join(text[slice(*span)] for span in spans)
    assert [sign for sign in covered if sign.isalnum()] == [sign for sign in text if sign.isalnum()]
    for span in spans:
        assert unicodedata.category(text[span[0]])[0] != "M"
        rest = without(text, span)
        for at, sign in enumerate(rest):
            if unicodedata.category(sign)[0] == "M":
                assert at > 0
                assert not rest[at - 1].isspace()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我不喜欢 it", ["我", "不", "喜", "欢", "it"]),
        ("カタカナー", ["カ", "タ", "カ", "ナ", "ー"]),
        ("light-headed -a- 3-5", ["light-headed", "-", "a", "-", "3-5"]),
        ("He didn’t say 3.14!", ["He", "didn’t", "say", "3.14", "!"]),
        ("Well... no??", ["Well", "...", "no", "??"]),
        ("a\u200bb \u200b", ["a", "b"]),
        (" \n\t", []),
    ],
)
def test_what_a_word_is(text, expected):
    assert reading_words(text) == expected


def test_words_are_matched_to_rows_by_their_place():
    """The second of two equal words has its own tokens; a token of two words belongs to both, which
    say so."""
    text = "the lamp the"
    words = whole_words(text, [(0, 3), (4, 6), (6, 8), (9, 12)], 1)
    assert [(word.text, word.start, word.rows) for word in words] == [
        ("the", 0, (1,)),
        ("lamp", 4, (2, 3)),
        ("the", 9, (4,)),
    ]
    assert [None if word is None else word.rows for word in words_at(words, [(9, 12), (5, 8)])] == [
        (4,),
        None,
    ]
    shared = whole_words("不喜欢", [(0, 1), (1, 3)], 0)
    assert [(word.rows, word.shared) for word in shared] == [
        ((0,), False),
        ((1,), True),
        ((1,), True),
    ]


def test_the_first_words_of_a_text():
    assert first_words("One, two; three.", 2) == "One, two"
    assert first_words("One, two", 5) == "One, two"
