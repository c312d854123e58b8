"""Comparisons of two models, against plain encoding and against differences that are known."""

import copy

import numpy as np
import pytest
import torch
from tests.evaluation.stand_ins import NEGATIONS, bag_of_words, deaf_to_negations, few_pairs
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.evaluation.compare import ComparePlan
from wordsens.models import as_pair_model
from wordsens.models.load import as_model
from wordsens.text.whole_words import without, word_spans

TEXTS = [review.text for review in ws.shipped_reviews()]
PLAN = ComparePlan(words_per_text=6, neighbours=5, explained=2)


@pytest.fixture(scope="module")
def deaf():
    """A bag of words, and one that deletes every negation."""
    return ws.compare(bag_of_words, deaf_to_negations, TEXTS, few_pairs(), plan=PLAN)


def relative(encode, text, word):
    """The mean change of the text's vector without that word, over its places."""
    spans = [span for span in word_spans(text) if text[slice(*span)].lower() == word]
    (own,) = np.asarray(encode([text]))
    moved = np.asarray(encode([without(text, span) for span in spans]))
    return float((np.linalg.norm(moved - own, axis=1) / np.linalg.norm(own)).mean())


def test_two_copies_have_no_difference():
    found = ws.compare(bag_of_words, bag_of_words, TEXTS, few_pairs())
    assert not found.differs
    assert (found.apart, found.changed, found.passed) == (0.0, (), True)
    assert found.answer[0] == (
        "No difference between bag_of_words and bag_of_words (second) in "
        f"{len(found.rows)} comparisons over 66 texts: their vectors are the same."
    )
    assert {(row.difference, row.low, row.high) for row in found.rows} == {(0.0, 0.0, 0.0)}


def test_a_planted_difference_is_found_where_it_is(deaf):
    assert deaf.differs
    words = {row.name for row in deaf.rows if row.differs and row.part == "word"}
    assert {"not", "never"} <= words
    assert all(NEGATIONS.search(name) for name in words)
    # Where negations no longer count, the other words of their texts can only rise.
    ranks = [row for row in deaf.rows if row.differs and row.part == "rank"]
    assert all((row.difference < 0) == bool(NEGATIONS.search(row.name)) for row in ranks)
    negation = deaf["removal.negation"]
    assert negation.differs
    assert negation.high < 0
    assert deaf["rank.not"].second < 0.2 < deaf["rank.not"].first
    assert "deaf_to_negations differs from bag_of_words" in deaf.answer[0]
    assert not any("'the'" in sentence for sentence in deaf.answer)


def test_every_number_is_that_of_encoding_the_texts_again():
    """All words are removed: a word's row is then the mean over its texts of plain encoding."""
    plan = ComparePlan(words_per_text=60, explained=0)
    texts = [" ".join(text.split()[:30]) for text in TEXTS[:20]]
    found = ws.compare(bag_of_words, deaf_to_negations, texts, "none", plan=plan)
    row = found["word.the"]
    held = [text for text in texts if "the" in [text[slice(*span)].lower() for span in word_spans(text)]]
    assert row.count == len(held)
    for value, encode in ((row.first, bag_of_words), (row.second, deaf_to_negations)):
        assert value == pytest.approx(np.mean([relative(encode, text, "the") for text in held]), abs=1e-12)


def test_the_other_order_is_the_same_comparison_with_the_signs_turned(deaf):
    back = ws.compare(deaf_to_negations, bag_of_words, TEXTS, few_pairs(), plan=PLAN)
    for row in deaf.rows:
        other = back[row.key]
        if row.part == "neighbours":
            assert other.difference == pytest.approx(row.difference)
        else:
            assert other.difference == pytest.approx(-row.difference)
            assert other.low == pytest.approx(-row.high)
        assert other.differs == row.differs


def test_models_of_pairs_have_the_check_alone():
    def overlap(first, second):
        return [len({*one.split()} & {*two.split()}) for one, two in zip(first, second, strict=True)]

    model = as_pair_model(overlap)
    found = ws.compare(model, model, TEXTS[:8], few_pairs())
    assert {row.part for row in found.rows} == {"check"}
    assert any("words and neighbours were not compared" in note for note in found.notes)
    with pytest.raises(ws.InputError, match="leaves nothing to compare"):
        ws.compare(model, model, TEXTS[:8], "none")


def test_a_transformer_and_its_rounded_weights():
    """4 bits move a tiny model's vectors; its second copy does not."""
    first, second = model_of("bert"), copy.deepcopy(model_of("bert"))
    with torch.no_grad():
        for weights in second.parameters():
            if weights.ndim == 2:
                step = weights.abs().amax(dim=1, keepdim=True).clamp_min(1e-9) / 7
                weights.copy_((weights / step).round() * step)
    models = [as_model((model, tokenizer())) for model in (first, copy.deepcopy(first), second)]
    texts = [f"the {noun} was {state} and the film {verb}" for noun in ("film", "plot", "end")
             for state in ("good", "not good", "bad") for verb in ("ended", "was long")]  # fmt: skip
    same = ws.compare(models[0], models[1], texts, "none", plan=PLAN)
    other = ws.compare(models[0], models[2], texts, "none", plan=PLAN)
    assert (same.apart, same.differs) == (0.0, False)
    assert other.apart > 0
    assert same.identities[0] == same.identities[1] != other.identities[1]
