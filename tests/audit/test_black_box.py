"""An audit by a model that gives vectors and nothing else, against plain encoding."""

import math
from collections import Counter

import pytest
import torch

import wordsens as ws
from wordsens.audit.black_box import audit_black_box
from wordsens.audit.decay import pair_distances
from wordsens.audit.summary import summarise_audit
from wordsens.audit.text import AuditPlan
from wordsens.evaluation.near_misses.replacements import MOST, Replacements
from wordsens.models.choice import as_model
from wordsens.text.shipped_data import MinimalPair
from wordsens.text.whole_words import without

TEXT = ws.Document("The film was not good, and nobody liked its end.", label=-1, source="reviews:1")
OFFERED = Replacements([TEXT.text, "nor ever a dull book of the old kind without end"])


def letters(texts):
    return [[text.lower().count(letter) + 0.5 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def test_removals_and_swaps_are_those_of_plain_encoding():
    model = as_model(letters)
    found = audit_black_box(model, TEXT, AuditPlan(max_words=9, words_per_text=4), OFFERED)
    read = "The film was not good, and nobody liked"
    assert (found.words, found.words_lost, found.negations_lost) == (9, 3, 0)
    assert {"not", "nobody"} < {word.word for word in found.measured}
    whole = torch.tensor(letters([read])[0])
    for word in found.measured:
        at = read.index(word.word)
        texts = [without(read, (at, at + len(word.word))), read.replace(word.word, word.swapped_for, 1)]
        for text, change in zip(texts, (word.removal, word.swap), strict=True):
            moved = (torch.tensor(letters([text])[0]) - whole).norm() / whole.norm()
            assert change == pytest.approx(float(moved), rel=1e-6)
        assert math.isnan(word.sensitivity)
        assert word.swapped_for != word.word
    assert found.value == max(word.removal for word in found.measured)
    assert found.evaluations <= 1 + 4 * (1 + MOST)


def test_the_text_alone_decides_what_is_drawn():
    plan = AuditPlan(max_words=20, words_per_text=3, seed=5)
    first, again = (
        audit_black_box(as_model(letters), ws.Document(TEXT.text, source=source), plan, OFFERED)
        for source in ("a", "b")
    )
    assert [word.swapped_for for word in first.measured] == [word.swapped_for for word in again.measured]


def test_what_cannot_be_measured_has_no_mean():
    found = audit_black_box(as_model(letters), TEXT, AuditPlan(max_words=20, words_per_text=4))
    summary = summarise_audit([found], Counter(the=1))
    assert {group.sensitivity for group in summary.groups} == {group.swap for group in summary.groups} == {None}
    assert all(group.removal > 0 for group in summary.groups)
    assert all(list(measures) == ["removal"] for measures in summary.exponents.values())


def test_a_text_of_one_word_is_refused():
    with pytest.raises(ws.InputError, match="has 1 words among those that are read"):
        audit_black_box(as_model(letters), ws.Document("Word", source="x"), AuditPlan(max_words=5, words_per_text=1))


def test_lengths_of_a_black_box_are_in_words():
    pairs = [MinimalPair("n-1", "negation", "the film was good", "the film was not good")]
    found = pair_distances(as_model(letters), pairs, filler="a dull book of many pages", multiples=(1, 2))
    assert [(one.multiple, one.tokens) for one in found] == [(1, 5), (2, 9)]
    rows = as_model(letters).encode([pairs[0].first, pairs[0].second])
    assert found[0].distance == pytest.approx(1 - float(torch.cosine_similarity(rows[0], rows[1], dim=0)), abs=1e-9)


def test_a_transformer_gives_the_same_removals_either_way():
    """On a lower-case text of whole words, deleting tokens and deleting letters are one."""
    text = ws.Document("the film is not good and nobody liked it", source="x")
    phi = ws.TransformerFeatures.from_pretrained("minilm", pool="own")
    black = audit_black_box(as_model("minilm"), text, AuditPlan(max_words=20, words_per_text=9))
    removed = ws.removal_effects(phi, text)
    assert [word.removal for word in black.measured] == pytest.approx(removed.change.tolist(), abs=1e-5)
