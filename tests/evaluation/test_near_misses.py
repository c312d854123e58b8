"""Near misses: what each rule makes, what it leaves alone, and how they are chosen."""

import pytest

import wordsens as ws
from wordsens.evaluation.near_misses import RULES, negate
from wordsens.evaluation.word_lists import NEGATED, PRONOUNS

MADE = [
    ("antonym", "How do I enable two-factor login?", "How do I disable two-factor login?"),
    ("antonym", "Turn on the alarm.", "Turn off the alarm."),
    ("antonym", "Sales increased in May.", "Sales decreased in May."),
    ("antonym", "The request was APPROVED.", "The request was DENIED."),
    ("antonym", "It starts at noon.", "It stops at noon."),
    ("negation", "The refund will arrive.", "The refund will not arrive."),
    ("negation", "The refund will not arrive.", "The refund will arrive."),
    ("negation", "It doesn't start.", "It does start."),
    ("negation", "You can cancel.", "You cannot cancel."),
    ("negation", "Can I pay by card?", "Can I not pay by card?"),
    ("quantity", "Returns within 30 days are free.", "Returns within 90 days are free."),
    ("quantity", "Founded in 1998.", "Founded in 1988."),
    ("quantity", "At least once a day.", "At most once a day."),
    ("time", "Restart before the update.", "Restart after the update."),
    ("role", "Trains from Leeds to York are late.", "Trains from York to Leeds are late."),
    ("role", "How do I convert PDF to Word?", "How do I convert Word to PDF?"),
]
LEFT = [
    ("negation", "Is the office closed?"),
    ("quantity", "Version 3.11 of 12/05/2024."),
    ("antonym", "A reopened case, well-opened."),
    ("role", "From time to time to time."),
    ("role", "I want to copy it to the disk."),
]


@pytest.mark.parametrize(
    ("kind", "sentence", "opposite"), [*MADE, *((*left, None) for left in LEFT)]
)
def test_what_a_rule_makes_and_leaves_alone(kind, sentence, opposite):
    assert RULES[kind](sentence) in (opposite, sentence if opposite is None else opposite)


@pytest.mark.parametrize("comma", [",", ""])
def test_a_tag_at_the_end_is_no_negation(comma):
    """With and without its "not" a tag asks for the same; everywhere else a "not" turns around."""
    for negated, plain in NEGATED.items():
        for pronoun in PRONOUNS:
            assert negate(f"The lift works today{comma} {negated} {pronoun}?") is None
            question = f"Why {negated} {pronoun} there today?"
            assert negate(question) == question.replace(negated, plain)
            turned = negate(f"The lift {negated} run{comma} {plain} {pronoun}?")
            assert turned == f"The lift {plain} run{comma} {plain} {pronoun}?"


def test_pairs_are_made_sentence_by_sentence_with_their_source():
    made = ws.near_misses([ws.Document("Enable sync. It is safe.", source="faq/1"), "Hello."])
    told = [
        (pair.kind, pair.first, pair.second, pair.same, pair.columns["source"]) for pair in made
    ]
    assert told == [
        ("negation", "It is safe.", "It is not safe.", False, "faq/1"),
        ("antonym", "It is safe.", "It is dangerous.", False, "faq/1"),
    ]


def test_of_many_a_random_choice_is_kept_and_none_twice():
    texts = [f"Please open door {number}." for number in range(100, 130)] * 2
    made, again, other = (ws.near_misses(texts, most=10, seed=seed) for seed in (0, 0, 1))
    assert made == again != other
    assert len({pair.first for pair in made if pair.kind == "antonym"}) == 10


def test_texts_without_a_listed_word_are_refused():
    with pytest.raises(ws.InputError, match="no near miss can be made from 2 texts"):
        ws.near_misses(["Hello there, friend.", "Hm."])
