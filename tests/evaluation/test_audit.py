"""An audit: the mean effects by kind of word and by place, what was left out, and the advice."""

import math
from dataclasses import replace
from statistics import fmean

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.evaluation.audit import text_means
from wordsens.findings.audit import page
from wordsens.models.function import FunctionModel
from wordsens.text.whole_words import without

REVIEW = "The film was not good, and nobody liked its end."
OTHERS = ["It is not a lamp but a good chair.", "The end of it all is never here."]


def letters(texts):
    return [[text.lower().count(letter) + 0.5 for letter in "adefghilmnostuy"] for text in texts]


def change(text, changed):
    first, second = torch.tensor(letters([text, changed]))
    return float((second - first).norm() / first.norm())


@pytest.fixture(scope="module")
def phi():
    return ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", pool="mean")


def test_a_group_is_the_mean_over_texts_of_what_encoding_without_each_word_changes():
    texts = [REVIEW, *OTHERS]
    found = ws.audit(letters, texts, words_per_text=50)
    by_text = []
    for text in texts:
        words = [word for word in ("not", "nobody", "never") if f" {word} " in text]
        spans = [(text.index(word), text.index(word) + len(word)) for word in words]
        by_text.append(fmean(change(text, without(text, span)) for span in spans))
    (negations,) = [group for group in found.groups if group.name == "negation"]
    assert negations.count == 4
    assert negations.removal.value == pytest.approx(fmean(by_text), rel=1e-6)
    assert negations.removal.n == 3
    assert [found.effects.by("delete")] == [list(found.effects.effects)]
    assert text_means(found.words("negation")) == pytest.approx(dict(enumerate(by_text)), rel=1e-6)


@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_of_a_transformer_tokens_are_removed(phi, removal):
    text = "the film was not unlikely good and very long"
    found = ws.audit(phi, [text], removal=removal, words_per_text=3, max_words=8)
    words = [effect.word for effect in found.effects.effects]
    assert "not" in words and len(words) == 3
    expected = ws.removal_effects(phi, text, way=removal, max_words=8)
    known = dict(zip(expected.tokens, expected.per_word.tolist(), strict=True))
    changes = {effect.word: effect.change for effect in found.effects.effects}
    assert changes == pytest.approx({word: known[word] for word in words}, rel=1e-6)
    assert [(text.source, text.words_lost) for text in found.cut] == [("text 0", 3)]


def test_a_classifier_is_audited_by_its_probabilities():
    model = model_of("bert", "AutoModelForSequenceClassification")
    phi = ws.TransformerFeatures(model, tokenizer(), name="bert", output="probabilities")
    found = ws.audit(phi, ["the film was good"], words_per_text=1)
    (effect,) = found.effects.effects
    rest = " ".join(word for word in ["the", "film", "was", "good"] if word != effect.word)
    before, after = phi.encode(["the film was good", rest])
    assert effect.change == pytest.approx(float((after - before).norm() / before.norm()), rel=1e-5)
    assert (found.advice, found.no_advice) == (None, "it is for embeddings")


def test_texts_that_cannot_be_measured_copies_and_cut_texts_are_in_the_first_line():
    rows = ["", "good", REVIEW, REVIEW, "?", OTHERS[0]]
    found = ws.audit(letters, [ws.Document(text, source=f"t:{n}") for n, text in enumerate(rows)])
    assert [source for source, _ in found.left_out] == ["t:0", "t:1", "t:4"]
    assert (found.sources, found.copies) == (("t:2", "t:5"), 1)
    assert "3 texts left out (the first, t:0: " in found.headline
    assert "1 text left out, equal to an earlier one" in found.headline
    with pytest.raises(ws.InputError, match="holds none that can be measured; the first, text 0"):
        ws.audit(letters, ["good", ""])


def test_a_text_that_the_model_refuses_in_any_way_is_left_out_whole():
    def refusing(texts):
        if any("lamp but" in text and "It" not in text for text in texts):
            raise ValueError("too odd")
        return letters(texts)

    ways = ["swap", "delete"]
    found = ws.word_effects(refusing, [REVIEW, OTHERS[0], OTHERS[1]], ways)
    assert [number for number, _ in found.left_out] == [1]
    assert "too odd" in found.left_out[0][1]
    assert found.effects == ws.word_effects(letters, [REVIEW, OTHERS[1]], ways).effects


class ReadsTheEnd(FunctionModel):
    """A model that cuts texts in front, as one whose tokenizer has truncation_side="left" does."""

    def read_span(self, text):
        return max(0, len(text) - 24), len(text)


def test_words_that_a_model_does_not_read_are_lost_and_not_measured():
    model = ReadsTheEnd(lambda texts: letters([text[-24:] for text in texts]), name="end")
    found = ws.audit(model, [REVIEW], words_per_text=20)
    read = "nobody liked its end."
    assert [effect.word for effect in found.effects.effects] == [*read[:-1].split(), "."]
    (cut,) = found.cut
    assert (cut.words_lost, cut.negations_lost) == (7, 1)
    assert "7 words not read, 1 negation among them" in found.headline
    for effect in found.effects.effects[:4]:
        at = read.index(effect.word)
        expected = change(read, without(read, (at, at + len(effect.word))))
        assert effect.change == pytest.approx(expected, rel=1e-6)


def made(*texts):
    """An audit of texts, each given by its (word, change) pairs."""
    found = ws.audit(letters, [REVIEW])
    first = found.effects.effects[0]
    effects = tuple(
        replace(
            first,
            text=number,
            word=word,
            kind="negation" if word == "not" else "content word",
            place=at / (len(words) - 1),
            change=change,
        )
        for number, words in enumerate(texts)
        for at, (word, change) in enumerate(words)
    )
    names = tuple(f"t:{number}" for number in range(len(texts)))
    read = ((0, 1),) * len(texts)
    measured = replace(found.effects, texts=("a",) * len(texts), effects=effects, read=read)
    return replace(found, effects=measured, sources=names)


def test_negations_are_compared_only_as_far_as_the_interval_goes():
    alike = made(*([("not", 1.0), ("film", 1.0 + 0.1 * (-1) ** at)] for at in range(6)))
    assert "No difference is claimed" in alike.answer[1]
    texts = [[("not", 0.13 + 0.01 * at), ("film", 0.5), ("good", 1.0)] for at in range(6)]
    apart = made(*texts, [("film", 9.0), ("good", 9.0)])
    negation, content, difference = apart.difference(["negation"], ["content word"])
    assert (negation.value, content.value) == (pytest.approx(0.155), pytest.approx(0.75))
    assert (difference.value, difference.n) == (pytest.approx(0.155 - 0.75), 6)
    half = 0.01 * math.sqrt(3.5) * 2.5706 / math.sqrt(6)
    assert difference.high - difference.value == pytest.approx(half, rel=1e-4)
    assert "Do not rely on similarity" in apart.answer[1]
    turned = made(*texts[::-1]).difference(["negation"], ["content word"])
    assert turned == made(*texts).difference(["negation"], ["content word"])
    assert made(*texts[:4]).difference(["negation"], ["content word"]) is None


@pytest.mark.parametrize(("first", "last", "place"), [(2.0, 0.4, "beginning"), (0.4, 2.0, "end")])
def test_the_place_whose_words_count_for_more_is_named(first, last, place):
    texts = [
        [("film", (first if at < 5 else last) + 0.01 * number) for at in range(10)]
        for number in range(6)
    ]
    (finding,) = [each for each in made(*texts).answer if "first fifth" in each]
    assert f"count for more at the {place}" in finding


def test_a_requirement_is_on_a_kind_a_place_or_every_kind():
    required = ["negation.removal >= 9", "middle.count >= 1", "all.removal <= 0", "odd.count > 0"]
    found = ws.audit(letters, [REVIEW], words_per_text=50, requirements=required)
    failed = [(each.kind, each.requirement) for each in found.unmet]
    kinds = ("negation", "function word", "content word")  # a sign moves no letter
    assert failed == [
        ("negation", required[0]),
        *((kind, required[2]) for kind in kinds),
        ("", required[3]),
    ]
    with pytest.raises(ws.InputError, match="must be one of count, removal"):
        ws.audit(letters, [REVIEW], requirements=["all.loudness <= 0"])


def test_the_advice_is_that_on_the_measured_texts():
    texts = [f"Lamp {n} is not as bright as it was. " + "It hangs there. " * 20 for n in range(8)]

    def fades(texts):
        counts = [(len(text.split()), " not " in text) for text in texts]
        return [[1.0, (8 / n) ** 0.5 if negated else 0.0] for n, negated in counts]

    found = ws.audit(fades, ["good", *texts, texts[0]], threshold=0.9)
    assert found.advice == ws.advise_length(fades, texts, threshold=0.9)
    for low, high in ((None, 18), (18, None)):  # lost in the shortest passages; kept in the longest
        open_ended = replace(found.advice, length=None, low=low, high=high, reason="why")
        said = replace(found, advice=open_ended).answer[1]
        assert ("reranker" in said) == (low is None) and "Cut longer" not in said
    few = ws.audit(fades, [REVIEW])
    assert few.advice is None and "two or more" in few.no_advice


def test_an_audit_is_saved(tmp_path):
    found = ws.audit(letters, [REVIEW, *OTHERS, "good"], requirements=["negation.removal >= 9"])
    found.save(tmp_path / "audit.safetensors")
    assert ws.Audit.load(tmp_path / "audit.safetensors") == found


@pytest.mark.parametrize("count", [2, 9])
def test_progress_never_falls_and_reaches_its_end(count):
    texts = [f"lamp {number} is not on" for number in range(count)]
    steps = []
    ws.audit(letters, texts, progress=lambda done, total: steps.append(done / total))
    assert steps == sorted(steps) and steps[-1] == 1


def test_a_page_shows_the_texts_that_one_word_changes_most_whole_with_the_measured_words_marked():
    found = ws.audit(letters, [f"{REVIEW} {'o' * at}" for at in range(8)], words_per_text=2)
    words = page(found).parts[-1].parts
    texts = ["".join(getattr(piece, "text", piece) for piece in one.pieces) for one in words]
    largest = sorted(found.effects.effects, key=lambda effect: -effect.change)
    order = list(dict.fromkeys(effect.text for effect in largest))[:6]
    assert texts == [found.effects.texts[number] for number in order]
    for number, one in zip(order, words, strict=True):
        marked = [(piece.text, piece.value) for piece in one.pieces if not isinstance(piece, str)]
        rows = [effect for effect in found.effects.effects if effect.text == number]
        assert marked == [(effect.word, effect.change) for effect in rows]
    assert page(found).parts[-1].headline.startswith("6 of 8 texts")
