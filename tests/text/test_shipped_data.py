"""The texts that ship with the package are what the documentation promises."""

import re
import statistics
from collections import Counter

import pytest

import wordsens as ws
from wordsens.errors import InputError
from wordsens.text import minimal_pairs, read_documents, shipped_reviews


def test_reviews_are_many_balanced_and_of_20_to_400_words():
    reviews = shipped_reviews()
    assert len(reviews) >= 60
    assert Counter(review.label for review in reviews) == dict.fromkeys((1, -1), len(reviews) / 2)
    assert all(20 <= len(review.text.split()) <= 400 for review in reviews)


def test_read_documents_knows_the_shipped_reviews():
    assert read_documents("shipped") == shipped_reviews()
    with pytest.raises(InputError, match=r"`split` \(='test'\) cannot be chosen"):
        read_documents("shipped", split="test")


def test_pairs_differ_in_exactly_one_word():
    pairs = minimal_pairs()
    assert len(pairs) >= 80
    assert len({pair.columns["id"] for pair in pairs}) == len(pairs)
    for pair in pairs:
        words = zip(pair.first.split(), pair.second.split(), strict=True)
        assert sum(one != other for one, other in words) == 1, pair


OPPOSITES = ["negation", "antonym", "role", "quantity", "time", "entity", "modality"]
KINDS = [*OPPOSITES, "synonym", "paraphrase"]

MEANING_PAIRS = ws.meaning_pairs()
BY_KIND = {kind: [pair for pair in MEANING_PAIRS if pair.kind == kind] for kind in KINDS}
one_kind = pytest.mark.parametrize("kind", KINDS)


@one_kind
def test_there_are_enough_of_each_kind_in_many_domains_and_lengths(kind):
    pairs = BY_KIND[kind]
    assert len(pairs) >= (120 if kind == "paraphrase" else 60)
    assert len({pair.columns["domain"] for pair in pairs}) >= 4
    lengths = Counter(pair.length for pair in pairs)
    assert 0.2 <= lengths["paragraph"] / (len(pairs) - lengths["page"]) <= 0.3
    assert sum(pair.length == "question" and pair.first.endswith("?") for pair in pairs) >= 5
    assert lengths["page"] >= 10


def test_one_change_turns_the_first_text_into_the_second():
    for pair in MEANING_PAIRS:
        if pair.kind not in {"role", "paraphrase"}:
            before, after = pair.changed
            places = re.finditer(re.escape(before), pair.first)
            turned = {
                pair.first[: place.start()] + after + pair.first[place.end() :] for place in places
            }
            words = {"".join(text.split()) for text in turned}
            assert "".join(pair.second.split()) in words, pair
            assert len(before.split()) <= 4, pair
            assert len(after.split()) <= 4, pair


NEAR_DUPLICATES = ws.near_duplicates()
NEAR_KINDS = {
    "contraction": 24,
    "number": 24,
    "date": 24,
    "voice": 24,
    "order": 24,
    "spelling": 24,
    "typo": 24,
    "abbreviation": 24,
    "filler": 24,
    "reminder": 24,
    "double negation": 24,
    "wording": 24,
    "case": 12,
    "paragraph": 6,
}
DOMAINS = ("support", "documentation", "health", "finance", "law", "everyday")


def word_set(text):
    return set(re.findall(r"[^\W_]+", text.lower()))


def shared_words(pair):
    first, second = word_set(pair.first), word_set(pair.second)
    return len(first & second) / len(first | second)


def test_statistics_are_those_of_the_file_as_it_was_read_last():
    """A change of the file changes these, and every figure that was measured with it."""
    assert len(NEAR_DUPLICATES) == 306
    assert Counter(pair.kind for pair in NEAR_DUPLICATES) == NEAR_KINDS
    assert Counter(pair.columns["domain"] for pair in NEAR_DUPLICATES) == dict.fromkeys(DOMAINS, 51)
    assert Counter(pair.length for pair in NEAR_DUPLICATES) == {
        "question": 300,
        "paragraph": 6,
    }
    short = [pair for pair in NEAR_DUPLICATES if pair.length == "question"]
    assert sum(pair.first.endswith("?") for pair in short) == 20
    texts = [text for pair in NEAR_DUPLICATES for text in (pair.first, pair.second)]
    assert round(statistics.mean(len(text.split()) for text in texts), 2) == 9.39
    assert round(statistics.mean(map(shared_words, NEAR_DUPLICATES)), 3) == 0.678


def test_every_pair_is_a_near_duplicate_of_its_own():
    texts = [text for pair in NEAR_DUPLICATES for text in (pair.first, pair.second)]
    assert len(set(texts)) == len(texts)
    assert not set(texts) & {
        text for pair in ws.meaning_pairs() for text in (pair.first, pair.second)
    }
    assert all(pair.same and pair.first != pair.second for pair in NEAR_DUPLICATES)
    assert min(map(shared_words, NEAR_DUPLICATES)) >= 0.25
    assert len({pair.columns["id"] for pair in NEAR_DUPLICATES}) == len(NEAR_DUPLICATES)
