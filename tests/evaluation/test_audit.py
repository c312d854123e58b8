"""An audit of one text, by gradients or by vectors alone, and what audited texts say together."""

import math

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.evaluation.audit.layers import SHORT_SEARCH, layer_sensitivities
from wordsens.evaluation.audit.summary import audit_changes, summarise_audit
from wordsens.evaluation.audit.text import (
    AuditedText,
    AuditedWord,
    AuditTexts,
    audit_black_box,
    audit_text,
    chosen_words,
)
from wordsens.models.function import FunctionModel
from wordsens.models.load import as_model
from wordsens.sensitivity.one_word import relative_change
from wordsens.text.whole_words import without

TEXT = ws.Document("the film was not unlikely good and very long", label=1, source="reviews:1")
SHORT = {"max_words": 20, "words_per_text": 3, "search": ws.SearchPlan("quick", starts=2, steps=2)}


@pytest.fixture(scope="module")
def phi():
    return ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", pool="mean")


@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_what_is_measured_of_a_text_is_what_the_library_measures(phi, removal):
    found = audit_text(phi, TEXT, removal=removal, **SHORT)
    assert (found.source, found.tokens, found.words, found.words_lost) == ("reviews:1", 13, 9, 0)
    names = [word.word for word in found.measured]
    assert "not" in names
    (X,) = phi.embed(TEXT)
    chosen = chosen_words(X, 3, seed=0, content=TEXT.text)
    assert [X.whole_words[at].text for at in chosen] == names
    assert [word.place for word in found.measured] == [at / 8 for at in chosen]
    again = ws.whole_word_sensitivity(
        phi, X, chosen, search=ws.SearchPlan("quick", starts=2, steps=2)
    )
    for word, group, token, delta, value in zip(
        found.measured, again.groups, again.tokens, again.witnesses, again.per_word, strict=True
    ):
        assert (word.word, word.tokens) == (token, len(group))
        assert word.sensitivity == pytest.approx(float(value), rel=1e-6)
        moved = relative_change(phi, X.rows, torch.tensor([group]), delta.unsqueeze(0))
        # A single row's value has its rounding error in float32 taken off.
        assert word.sensitivity <= float(moved) * (1 + 1e-6)
        assert float(moved) == pytest.approx(word.sensitivity, rel=1e-4)
    removed = ws.removal_effects(phi, TEXT, chosen, way=removal)
    assert [word.removal for word in found.measured] == pytest.approx(
        removed.per_word.tolist(), rel=1e-6
    )
    assert found.value == max(word.sensitivity for word in found.measured)


def test_swaps_are_the_farthest_of_the_words_that_are_offered(phi):
    def offered(text, span):
        return {"not": ("very", "and"), "good": ("bad",)}.get(text[slice(*span)], ())

    found = audit_text(phi, TEXT, offered, **SHORT | {"words_per_text": 9})
    by_word = {word.word: word for word in found.measured}
    assert math.isnan(by_word["film"].swap)
    assert by_word["film"].swapped_for == ""
    base, very, both, bad = phi.encode(
        [
            TEXT.text,
            *(TEXT.text.replace("not", word) for word in ("very", "and")),
            TEXT.text.replace("good", "bad"),
        ]
    )
    moved = {
        word: float((rows - base).norm() / base.norm())
        for word, rows in (("very", very), ("and", both))
    }
    best = max(moved, key=moved.get)
    assert (by_word["not"].swapped_for, by_word["not"].swap) == (
        best,
        pytest.approx(moved[best], rel=1e-5),
    )
    assert by_word["good"].swap == pytest.approx(float((bad - base).norm() / base.norm()), rel=1e-5)


def test_texts_that_cannot_be_measured_are_counted_with_the_reason():
    texts = AuditTexts()
    documents = [
        ("", "t:1"),
        ("good", "t:2"),
        ("a good film", "t:3"),
        ("a good film", "t:5"),
        ("?", "t:6"),
    ]
    texts.take(ws.Document(text, source=source) for text, source in documents)
    assert [document.source for document in texts.documents] == ["t:3"]
    assert [source for source, _ in texts.left_out] == ["t:1", "t:2", "t:6"]
    assert texts.left_out[1][1] == "it has 1 word, and an audit compares words"
    assert texts.copies == 1


def made(source, tokens, words, sensitivity, removal, last=None):
    last = last or len(words) - 1
    measured = tuple(
        AuditedWord(word=word, tokens=1, place=at / last, sensitivity=value, removal=change)
        for at, (word, value, change) in enumerate(zip(words, sensitivity, removal, strict=True))
    )
    return AuditedText(
        source=source,
        tokens=tokens,
        words=len(words),
        words_lost=0,
        negations_lost=0,
        measured=measured,
        evaluations=1,
    )


def test_a_summary_of_made_up_texts():
    texts = [
        made("a", 10, ["the", "not", "film"], (1.0, 0.8, 0.6), (0.5, 0.01, 0.2)),
        made("b", 20, ["the", "not", "film"], (0.5, 0.4, 0.3), (0.3, 0.03, 0.4)),
        made("c", 40, ["a", "not", "plot"], (0.25, 0.2, 0.15), (0.1, 0.05, 0.6)),
    ]
    summary = summarise_audit(texts)
    assert (summary.texts, summary.words) == (3, 9)
    groups = {group.category: group for group in summary.groups}
    assert groups["kind: negation"].count == 3
    assert groups["kind: negation"].removal == pytest.approx(0.03)
    assert groups["place: first fifth"].count == 3
    assert groups["place: first fifth"].sensitivity == pytest.approx(1.75 / 3)
    with pytest.raises(ws.InputError, match="no text of the dataset could be measured"):
        summarise_audit([])


def test_layers_and_heads(phi):
    found = layer_sensitivities(phi.at(), [TEXT], words=2, max_words=20)
    assert [layer.layer for layer in found] == [1, 2, 3]
    (X,) = phi.embed(TEXT)
    chosen = chosen_words(X, 2, seed=0, content=TEXT.text)
    for layer in found:
        one = phi.at(layer=layer.layer)
        r = ws.whole_word_sensitivity(one, X, chosen, search=SHORT_SEARCH)
        assert layer.sensitivity == pytest.approx(r.value, rel=1e-5)
        head = phi.at(layer=layer.layer, head=3)
        changes = []
        for group, delta in zip(r.groups, r.witnesses, strict=True):
            changes.append(
                float(relative_change(head, X.rows, torch.tensor([group]), delta.unsqueeze(0)))
            )
        assert layer.heads[3] == pytest.approx(max(changes), rel=1e-5)


REVIEW = ws.Document(
    "The film was not good, and nobody liked its end.", label=-1, source="reviews:1"
)


def letters(texts):
    return [
        [text.lower().count(letter) + 0.5 for letter in "abcdefghijklmnopqrstuvwxyz"]
        for text in texts
    ]


def test_removals_and_swaps_are_those_of_plain_encoding():
    model, rng = as_model(letters), torch.Generator().manual_seed(0)

    def offered(text, span):
        return ["lamp", "never", "it"][: int(torch.randint(1, 4, (), generator=rng))]

    found = audit_black_box(model, REVIEW, offered, max_words=9, words_per_text=4)
    read = "The film was not good, and nobody liked"
    assert (found.words, found.words_lost, found.negations_lost) == (9, 3, 0)
    assert {"not", "nobody"} < {word.word for word in found.measured}
    whole = torch.tensor(letters([read])[0])
    for word in found.measured:
        at = read.index(word.word)
        texts = [
            without(read, (at, at + len(word.word))),
            read.replace(word.word, word.swapped_for, 1),
        ]
        for text, change in zip(texts, (word.removal, word.swap), strict=True):
            moved = (torch.tensor(letters([text])[0]) - whole).norm() / whole.norm()
            assert change == pytest.approx(float(moved), rel=1e-6)
        assert math.isnan(word.sensitivity)
        assert word.swapped_for != word.word
    assert found.value == max(word.removal for word in found.measured)
    assert found.evaluations <= 1 + 4 * (1 + 3)


class ReadsTheEnd(FunctionModel):
    """A model that cuts texts in front, as one whose tokenizer has truncation_side="left" does."""

    def read_span(self, text):
        return max(0, len(text) - 24), len(text)


def test_words_that_a_model_does_not_read_are_lost_and_not_measured():
    model = ReadsTheEnd(lambda texts: letters([text[-24:] for text in texts]), name="end")
    found = audit_black_box(model, REVIEW, max_words=50, words_per_text=20)
    read = "nobody liked its end"
    assert [word.word for word in found.measured][:4] == read.split()
    assert (found.words_lost, found.negations_lost) == (7, 1)
    whole = torch.tensor(letters([read])[0])
    for word in found.measured[:4]:
        moved = torch.tensor(letters([read.replace(word.word, "", 1)])[0]) - whole
        assert word.removal == pytest.approx(float(moved.norm() / whole.norm()), rel=1e-6)


def test_the_change_is_that_of_the_words_both_measured():
    def text(at, **words):
        return made(
            str(at),
            9,
            list(words),
            (*words.values(),),
            tuple(value / 2 for value in words.values()),
            last=9,
        )

    before = [text(at, **{"not": 0.2 + at / 100, "film": 0.5, "old": 9.0}) for at in range(6)]
    after = [text(at, **{"not": 0.3 + at / 100, "film": 0.5 + (-1) ** at / 10}) for at in range(6)]
    found = {
        (one.kind, one.measure): one for one in audit_changes(list(zip(before, after, strict=True)))
    }
    assert set(found) == {
        (kind, name) for kind in ("negation", "content word") for name in ("sensitivity", "removal")
    }
    grew = found["negation", "sensitivity"]
    assert (grew.before, grew.after, grew.texts, grew.certain) == (
        pytest.approx(0.225),
        pytest.approx(0.325),
        6,
        True,
    )
    assert grew.difference.value == pytest.approx(0.1)
    assert not found["content word", "removal"].certain
