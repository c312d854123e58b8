"""The frames, flips and rewordings that training is made of."""

import random
import re

import pytest

import wordsens as ws
from wordsens.training.adapter.examples import from_frames, from_pairs, from_sentences, in_paragraphs
from wordsens.training.adapter.flips import KINDS, flip
from wordsens.training.adapter.frames import draw_meaning
from wordsens.training.adapter.rewordings import reword
from wordsens.training.adapter.word_lists import antonyms, synonyms

SENTENCES = (
    "I like the pilot because the crew is kind.",
    "The driver did not see the guest before lunch.",
    "All of the 12 tickets were cheap, and the show began early.",
)


def test_every_frame_is_filled_whole():
    chance = random.Random(0)
    for _ in range(500):
        meaning = draw_meaning(chance)
        kind = chance.choice(meaning.flips())
        for each in (meaning, meaning.flipped(kind, chance)):
            for wording in range(len(each.wordings)):
                assert not re.search(r"[\[\]<>(){}|#/]", each.text(wording, chance))


def test_a_flip_of_a_frame_changes_its_own_kind_alone():
    chance = random.Random(1)
    for example in from_frames(100, chance):
        assert example.text != example.other
        assert example.same not in (example.text, example.other)
    assert {example.kind for example in from_frames(25, chance)} == set(KINDS)


def test_turning_a_switch_twice_gives_the_meaning_back():
    chance = random.Random(2)
    meaning = draw_meaning(chance)
    while "negation" not in meaning.flips():
        meaning = draw_meaning(chance)
    twice = meaning.flipped("negation", chance).flipped("negation", chance)
    assert twice == meaning


@pytest.mark.parametrize(
    ("sentence", "kind", "words"),
    [
        ("They won the match.", "antonym", {"lost"}),
        ("I want it.", "negation", {"don't", "not", "never"}),
        ("We have 12 cats.", "quantity", {"13", "25", "120", "36", "6"}),
        ("Anna thanked Carla when she saw Rosa.", "role", {"Rosa", "Carla"}),
        ("Call me before lunch.", "time", {"after", "then", "when"}),
    ],
)
def test_a_sentence_is_flipped_by_one_change(sentence, kind, words):
    made = flip(sentence, kind, random.Random(0))
    assert made is not None
    assert set(re.findall(r"[\w']+", made)) & words
    assert flip("Hm.", kind, random.Random(0)) is None


def test_a_rewording_keeps_the_words_that_carry_the_meaning():
    for seed in range(30):
        made = reword(SENTENCES[1], random.Random(seed))
        assert re.search(r"\b(did not|didn't)\b", made, re.IGNORECASE)
        assert re.search(r"\bbefore\b", made, re.IGNORECASE)


def test_no_word_is_a_synonym_and_an_antonym_of_another():
    both = [
        (word, other) for word, others in synonyms().items() for other in others if other in antonyms().get(word, ())
    ]
    assert both == []


def test_a_paragraph_holds_its_sentence_among_others_and_its_flip_differs_there_alone():
    chance = random.Random(3)
    made = from_sentences(SENTENCES, 20, chance)
    for short, long in zip(made, in_paragraphs(made, SENTENCES, 1.0, 4, chance), strict=True):
        assert short.text in long.text
        assert long.other == long.text.replace(short.text, short.other) or long.text.count(short.text) > 1
        assert len(long.text) > len(short.text)


def test_examples_of_pairs_keep_their_texts():
    pairs = [pair for pair in ws.read_pairs() if pair.length == "question"][:40]
    for pair, example in zip(pairs, from_pairs(pairs, random.Random(4)), strict=True):
        assert {pair.first, pair.second} >= {example.text}
        assert example.same != example.text or not pair.same
        assert (example.other in (pair.first, pair.second)) != pair.same
