"""Words that flip labels, against classifying the texts again and against rules that are known."""

import json

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.evaluation.classes import ClassFlips, explain_classes
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.classifier import SIGMOID, Classifier, as_classifier
from wordsens.text.whole_words import with_word, without

RUDE = {"stupid", "awful"}
TEXTS = [
    f"{opening} {word} {thing} {place}"
    for opening in ("this is a", "what a", "I saw that")
    for word in ("stupid", "awful", "good", "stupid awful")
    for thing in ("film", "plan")
    for place in ("at home", "in town today")
]


def moderation(texts):
    """Rude texts hold a rude word."""
    rude = torch.tensor([any(word in RUDE for word in text.split()) for text in texts])
    chance = torch.where(rude, 0.9, 0.2)
    return torch.stack([1 - chance, chance], dim=1)


@pytest.fixture(scope="module")
def found():
    gate = ["rude.delete <= .7", "rude.delete <= .6", "all.texts >= 12", "mild.swap <= 1"]
    return explain_classes(moderation, TEXTS, labels=("fine", "rude"), tries=6, requirements=gate)


def test_a_rude_word_alone_decides(found):
    flipping = [effect for effect in found.by("delete") if effect.label]
    assert {effect.word for effect in flipping} == RUDE
    alone = {number for number, text in enumerate(found.texts) if len(RUDE & {*text.split()}) == 1}
    assert {effect.text for effect in flipping} == alone
    share = found.shares["rude"]["delete"]
    assert (share.value, share.n) == (24 / 36, 36)
    assert share.low < 24 / 36 < share.high
    assert found.shares["fine"]["delete"].value == 0
    assert "move" not in found.shares["rude"]
    assert [one.requirement for one in found.unmet] == ["rude.delete <= .6", "mild.swap <= 1"]


def test_every_number_is_that_of_classifying_again(found):
    names = ("fine", "rude")
    for effect in found.effects[::5]:
        text = found.texts[effect.text]
        changed = (
            without(text, effect.span)
            if effect.way == "delete"
            else with_word(text, effect.span, effect.replaced_by)
        )
        before, after = moderation([text, changed])
        at, label = int(before.argmax()), names[int(after.argmax())]
        assert found.labels[effect.text] == names[at]
        assert effect.change == pytest.approx(float(after[at] - before[at]))
        assert effect.label == ("" if label == names[at] else label)


def test_an_object_with_predict_proba_names_its_classes():
    class Pipeline:
        classes_ = ("fine", "rude")

        def predict_proba(self, texts):
            return moderation(texts).numpy()

    assert {*explain_classes(Pipeline(), TEXTS[:9], tries=0).labels} == {"fine", "rude"}


def test_what_is_left_out_is_in_the_first_line():
    flips = explain_classes(moderation, ["an awful film", "an awful film", "awful", ""], tries=0)
    assert flips.texts == ("an awful film",)
    assert [number for number, _ in flips.left_out] == [1, 2, 3]
    assert "3 texts left out (the first, text 1: it is equal" in flips.headline


def test_a_move_that_flips_a_transformer_is_found_within_the_words_length(tmp_path):
    """The share of a move: at the edge of its label a text flips, far from it none does."""
    model = model_of("bert", "AutoModelForSequenceClassification")
    phi = TransformerFeatures.from_pretrained((model, tokenizer()), output="probabilities")
    texts = [
        f"the {noun} was {state}"
        for noun in ("film", "end", "don")
        for state in ("good", "bad", "not long")
    ]
    found = explain_classes(phi, texts, tries=2, move_texts=4)
    assert {effect.text for effect in found.by("move")} == {0, 1, 2, 3}
    shares = [row["move"] for row in found.shares.values() if "move" in row]
    assert sum(share.n for share in shares) == 4
    assert any(share.value for share in shares)
    for effect in found.by("move"):
        assert not effect.label or effect.change < 0
    found.save(tmp_path / "flips")
    assert ClassFlips.load(tmp_path / "flips") == found
    assert len(found.table()) == len(found.shares)
    json.dumps(found.to_dict(), allow_nan=False)
    with torch.no_grad():
        model.classifier.bias += torch.tensor([1e3, 0.0])
    sure = explain_classes((model, tokenizer()), texts, tries=0, move_texts=4)
    assert not any(effect.label for effect in sure.effects)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda texts: [[1.0]] * len(texts),
            "gives one number per text; a classifier gives one for each class",
        ),
        (3, "is no classifier"),
    ],
)
def test_what_is_no_classifier(model, message):
    with pytest.raises(ws.InputError, match=message):
        explain_classes(model, TEXTS)


def test_of_independent_labels_the_change_is_that_of_the_label_set():
    """The support of a label set is its weakest part; the likeliest class alone would say +.8."""

    def rates(texts):
        rows = [[0.9 if "not" not in text.split() else 0.1, 0.2] for text in texts]
        return torch.tensor(rows, dtype=torch.float64)

    rater = Classifier(rates, name="rater", labels=("toxic", "insult"), kind=SIGMOID)
    found = ws.word_effects(rater, ["it is not good", "it is good"])
    changes = {effect.word: (effect.change, effect.label) for effect in found.by("delete")[:4]}
    # Without "not" the text is toxic with .9: "none" then has the support .1, and had .8.
    assert changes["not"] == (pytest.approx(0.1 - 0.8), "toxic")
    assert changes["good"] == (0.0, "")


def test_a_word_past_what_a_classifier_reads_does_not_come_in():
    model = model_of("bert", "AutoModelForSequenceClassification")
    classifier = as_classifier((model, tokenizer()))
    text = " ".join(["the film was not good and"] * 40)
    start, stop = classifier.read_span(text)
    assert stop < len(text)
    found = ws.word_effects(classifier, [text], words_per_text=3)
    label = int(classifier.probabilities([text])[0].argmax())
    for effect in found.by("delete"):
        both = [text[start:stop], without(text[start:stop], effect.span)]
        before, after = classifier.probabilities(both)[:, label]
        assert effect.change == pytest.approx(float(after - before), abs=1e-6)


def test_how_often_a_word_flips_is_counted_by_the_label_of_its_own_text():
    def mood(texts):
        sad = [float("bad" in text.split() and "not" not in text.split()) for text in texts]
        return [[0.1 + 0.8 * each, 0.9 - 0.8 * each] for each in sad]

    flips = explain_classes(mood, ["a bad day", "not a bad day"], labels=("sad", "glad"), tries=0)
    table = flips.view().parts[-1]
    rows = [*zip(*(table.columns[name] for name in ("word", "label", "deleted")), strict=True)]
    assert sorted(rows) == [("bad", "sad", 1), ("not", "glad", 1)]


def test_a_move_goes_down_the_margin_of_the_label():
    """Of words that a short step moves, the probability of the label falls with hardly an
    exception."""
    classifier = as_classifier(
        (model_of("bert", "AutoModelForSequenceClassification"), tokenizer())
    )
    texts = ["the film was not very good", "a bad film", "the end was long"]
    moves = explain_classes(classifier, texts, tries=0).by("move")
    assert len(moves) > 8
    assert sum(effect.change < 0 for effect in moves) >= 0.9 * len(moves)
