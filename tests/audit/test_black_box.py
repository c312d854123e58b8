"""An audit by a model that gives vectors and nothing else, against plain encoding."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.audit.text import AuditPlan, audit_black_box
from wordsens.evaluation.replacements import MOST, Replacements
from wordsens.models.load import as_model
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


def test_a_transformer_gives_the_same_removals_either_way():
    """On a lower-case text of whole words, deleting tokens and deleting letters are one."""
    text = ws.Document("the film is not good and nobody liked it", source="x")
    phi = ws.TransformerFeatures.from_pretrained("minilm", pool="own")
    black = audit_black_box(as_model("minilm"), text, AuditPlan(max_words=20, words_per_text=9))
    removed = ws.removal_effects(phi, text)
    assert [word.removal for word in black.measured] == pytest.approx(removed.change.tolist(), abs=1e-5)
