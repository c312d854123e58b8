"""The texts that ship with the package are what the documentation promises."""

from collections import Counter

import pytest

from wordsens.errors import InputError
from wordsens.text import Document, load_encoder, minimal_pairs, read_documents, shipped_reviews

KINDS = {"sentiment", "negation", "quantity", "role", "intensity", "synonym"}


def test_reviews_are_many_balanced_and_of_20_to_400_words():
    reviews = shipped_reviews()
    assert len(reviews) >= 60
    labels = Counter(review.label for review in reviews)
    assert set(labels) == {1, -1}
    assert labels[1] == labels[-1]
    lengths = [len(review.text.split()) for review in reviews]
    assert min(lengths) >= 20
    assert max(lengths) <= 400


def test_reviews_have_distinct_sources_and_texts():
    reviews = shipped_reviews()
    assert reviews[0].source == "shipped/review-001"
    assert len({review.source for review in reviews}) == len(reviews)
    assert len({review.text for review in reviews}) == len(reviews)


def test_at_least_24_reviews_have_over_260_tokens():
    encoder = load_encoder("minilm")
    assert sum(encoder.tokenize(review.text).words > 260 for review in shipped_reviews()) >= 24


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


def test_pairs_have_every_kind_several_times():
    kinds = Counter(pair.kind for pair in minimal_pairs())
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 10


@pytest.mark.parametrize("label", [0, 2, True])
def test_a_document_refuses_other_labels(label):
    with pytest.raises(InputError, match=rf"`label` \(={label!r}\) must be \+1, -1 or None"):
        Document("good", label)
