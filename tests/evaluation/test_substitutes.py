"""The words that a writer could put in the place of another."""

import re

import pytest

from wordsens.evaluation.substitutes import substitutes
from wordsens.evaluation.word_lists import antonyms, lines_of, synonyms
from wordsens.text.english import FUNCTION_WORDS, kind_of
from wordsens.text.whole_words import lettered_spans

SENTENCE = "The nurse gave him ibuprofen, but no doctor is working on Monday."


def offered(text, word):
    start = text.index(word)
    return substitutes(text, (start, start + len(word)))


def test_words_of_the_same_field_and_form_are_offered():
    assert {"paracetamol", "aspirin"} <= set(offered(SENTENCE, "ibuprofen"))
    assert "dentist" in offered(SENTENCE, "doctor")
    assert offered(SENTENCE, "is") == ("was",)
    assert "Friday" in offered(SENTENCE, "Monday")
    assert "lost" in offered("They won the match.", "won")
    assert "Disable" in offered("Enable the sound.", "Enable")
    assert set(offered("Her children sleep.", "children")) > {"adults", "babies"}


def test_participles_stand_for_participles():
    assert offered("Prices have risen again.", "risen") == ("fallen",)
    assert offered("Prices have fallen again.", "fallen") == ("risen",)
    # "read" and "cooked" are both.
    assert "read" in offered("He has written it.", "written")
    assert "cooked" in offered("It was eaten.", "eaten")
    assert "written" not in offered("He read it.", "read")


@pytest.mark.parametrize("word", ["The", "of", "xylophonist", "Überraschung"])
def test_words_without_a_meaning_or_a_list_have_none(word):
    assert offered(f"{word} stands here.", word) == ()


def test_the_word_before_tells_nouns_from_verbs():
    assert "film" in offered("I read the book.", "book")
    assert offered("I book the room.", "book") == ()
    assert "novel" in offered("I like this film.", "film")
    assert "refused" in offered("She promised it.", "promised")
    assert offered("The love of art", "love") == ()
    assert offered("We love art", "love") == ("hate",)


def test_an_article_agrees_with_what_is_offered():
    for article, word, initials in (
        ("an", "orange", "aeiou"),
        ("a", "lemon", "bcdfghjklmnpqrstvwxyz"),
    ):
        others = offered(f"Eat {article} {word} now", word)
        assert others
        assert {other[0] for other in others} <= set(initials)


def test_no_word_is_offered_for_itself_or_for_a_synonym():
    listed = {
        word.strip(",:>") for line in lines_of("substitutes.txt") for word in line.split()
    } - {""}
    alike = synonyms()
    for word in listed:
        others = offered(f"So {word} ends", word) if word not in ("So", "ends") else ()
        assert word not in others
        assert not set(others) & set(alike.get(word, ())), word
        assert len(others) == len(set(others))


def test_antonyms_of_phrases_are_phrases():
    table = antonyms()
    assert table["in favour of"] == ("against",)
    assert "go down" in table["go up"]
    assert all(re.fullmatch(r"[\w' -]+", word) for word in table)


def test_negations_and_words_of_grammar_stay_of_their_kind_or_turn_it():
    """No content word comes in the place of a word of grammar, nor one of these in the place of a
    content word."""
    for text in (SENTENCE, "He never saw her before, and they will not come if it rains."):
        for span in lettered_spans(text):
            of_grammar = text[slice(*span)].lower() in FUNCTION_WORDS
            for other in substitutes(text, span):
                if kind_of(other) != "negation" and kind_of(text[slice(*span)]) != "negation":
                    assert (other.lower() in FUNCTION_WORDS) == of_grammar, (
                        text[slice(*span)],
                        other,
                    )
