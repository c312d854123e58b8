"""The texts that ship with the package are what the documentation promises."""

from collections import Counter

import pytest

from wordsens.errors import InputError
from wordsens.text import minimal_pairs, read_documents, shipped_reviews


def test_reviews_are_many_balanced_and_of_20_to_400_words():
    reviews = shipped_reviews()
    assert len(reviews) >= 60
    labels = Counter(review.label for review in reviews)
    assert set(labels) == {1, -1}
    assert labels[1] == labels[-1]
    lengths = [len(review.text.split()) for review in reviews]
    assert min(lengths) >= 20
    assert max(lengths) <= 400


def test_read_documents_knows_the_shipped_reviews():
    assert read_documents("shipped") == shipped_reviews()
    with pytest.raises(InputError, match=r"`split` \(='test'\) cannot be chosen"):
        read_documents("shipped", split="test")


def test_pairs_differ_in_exactly_one_word():
    pairs = minimal_pairs()
    assert len(pairs) >= 80
    assert len({pair.id for pair in pairs}) == len(pairs)
    for pair in pairs:
        first, second = pair.first.split(), pair.second.split()
        assert len(first) == len(second), pair.id
        assert sum(one != other for one, other in zip(first, second, strict=True)) == 1, pair.id
