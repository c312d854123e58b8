"""Words that flip labels, against classifying the texts again and against rules that are known."""

import json
from dataclasses import replace

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.display.view import Table
from wordsens.evaluation.flips import LabelFlips, flip_radii
from wordsens.maps.mapping import perturbed_texts
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.classifier import as_classifier
from wordsens.text.whole_words import with_word, without, word_spans

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
    return ws.label_flips(moderation, TEXTS, labels=("fine", "rude"), tries=6)


def test_a_rude_word_alone_decides(found):
    flipping = {word.word for word in found.words if word.removed_to}
    assert flipping == RUDE
    alone = {number for number, text in enumerate(found.texts) if len(RUDE & {*text.split()}) == 1}
    assert {word.text for word in found.words if word.removed_to} == alone
    rude = next(row for row in found.classes if row.label == "rude")
    assert (rude.removal.value, rude.removal.n) == (24 / 36, 36)
    assert rude.removal.low < 24 / 36 < rude.removal.high
    assert {row.word for row in found.by_word if row.more} == RUDE
    assert any("'awful' decides" in sentence for sentence in found.answer)


def test_the_word_that_moves_its_text_most_is_the_first_row(found):
    flipping = [word for word in found.words if word.removed_to][:3]
    graded = [
        replace(word, removal=removal)
        for word, removal in zip(flipping, (-0.3, -0.9, -0.6), strict=True)
    ]
    table = next(
        part for part in replace(found, words=tuple(graded)).view().parts if isinstance(part, Table)
    )
    assert [label.split()[-1] for label in table.columns["label"]] == [
        "(-0.900)",
        "(-0.600)",
        "(-0.300)",
    ]


def test_every_number_is_that_of_classifying_again(found):
    for word in found.words[::5]:
        text = found.texts[word.text]
        at = int(moderation([text])[0].argmax())
        changes = [(word.removal, word.removed_to, without(text, (word.start, word.stop)))]
        if word.swapped_for is not None:
            changes += [
                (
                    word.swap,
                    word.swapped_to,
                    with_word(text, (word.start, word.stop), word.swapped_for),
                )
            ]
        for value, to, changed in changes:
            again = moderation([changed])[0]
            assert value == pytest.approx(float(again[at] - moderation([text])[0, at]))
            assert to == (
                None if int(again.argmax()) == at else ("fine", "rude")[int(again.argmax())]
            )


def test_a_rule_without_a_decisive_word_names_none():
    """A label by the text's length: a word flips where the text is at the edge, whatever the
    word."""

    def long(texts):
        return [[0.2, 0.8] if len(text.split()) > 7 else [0.8, 0.2] for text in texts]

    texts = [f"{opening} {text}" for text in TEXTS for opening in ("so", "well then")]
    found = ws.label_flips(long, texts, tries=0)
    assert any(word.removed_to for word in found.words)
    assert not any(row.more for row in found.by_word)
    assert all(row.swap is None for row in found.classes)


@pytest.fixture(scope="module")
def phi():
    model = model_of("bert", "AutoModelForSequenceClassification")
    return TransformerFeatures.from_pretrained((model, tokenizer()), output="probabilities")


def test_a_radius_is_attained_and_random_directions_need_more(phi):
    """500 random directions at a fifth of each radius leave the label as it is."""
    text = "the film was not very good"
    radii = flip_radii(as_classifier(phi), text, word_spans(text))
    assert any(radius is not None for radius in radii)
    assert all(radius is None or 0 < radius <= 1 for radius in radii)
    X = phi.embed([text])[0]
    label = int(phi.features(X.rows[None]).argmax())
    random = torch.Generator().manual_seed(0)
    for word, radius in zip(X.whole_words, radii, strict=True):
        if radius is None:
            continue
        rows = torch.tensor([word.rows] * 500)
        drawn = torch.randn(500, len(word.rows), X.rows.shape[1], generator=random)
        steps = torch.nn.functional.normalize(drawn, dim=2) * X.rows[list(word.rows)].norm(
            dim=1, keepdim=True
        )
        with torch.no_grad():
            labels = phi.features(perturbed_texts(X.rows, rows, 0.2 * radius * steps)).argmax(dim=1)
        assert (labels == label).all()


def test_a_transformer_has_radii_and_comes_back_from_a_file(phi, tmp_path):
    texts = [
        f"the {noun} was {state}"
        for noun in ("film", "end", "don")
        for state in ("good", "bad", "not long")
    ]
    found = ws.label_flips(phi, texts, tries=2, radius_texts=4)
    assert {word.text for word in found.words if word.radius is not None} <= {0, 1, 2, 3}
    assert any(row.radius is not None for row in found.classes)
    assert {*found.labels} <= {"LABEL_0", "LABEL_1"}
    found.save(tmp_path / "flips")
    assert LabelFlips.load(tmp_path / "flips") == found
    assert len(found.table()) == len(found.classes)
    assert found.classes[0].label in found.show()
    json.dumps(found.to_dict(), allow_nan=False)


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
        ws.label_flips(model, TEXTS)
