"""Classifiers: probabilities, labels and removals are those of the pipeline of transformers."""

import pytest
import torch
import transformers

import wordsens as ws
from tests.models.zoo import zoo_model
from wordsens.models.classifier import SIGMOID, SOFTMAX, Classifier, as_classifier
from wordsens.text.whole_words import without

TEXTS = ["The lift is not working today, please use the stairs.", "I did not love her.", "café"]
DECODERS = ("gpt2", "llama", "qwen2")
NAMES = ("bert", "roberta", "distilbert", "mpnet", "modernbert", "deberta", *DECODERS)
PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_classifiers_give_their_pipelines_own_numbers(name, problem):
    """As a pair, as the pipeline, and from rows."""
    pad = {"pad_token_id": 0} if name in DECODERS else {}
    count = 1 if problem == "regression" else 3
    options = {"num_labels": count, "problem_type": problem, **pad}
    tokenizer, model = zoo_model(name, "ForSequenceClassification", **options)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    pipeline = transformers.pipeline(
        "text-classification", model=model, tokenizer=tokenizer, device="cpu", top_k=None
    )
    classifier = as_classifier((model, tokenizer))
    rows = classifier.probabilities(TEXTS)
    for text, row in zip(TEXTS, rows.tolist(), strict=True):
        expected = {one["label"]: one["score"] for one in pipeline([text])[0]}
        found = dict(zip(map(classifier.label, range(count)), row, strict=True))
        assert found == pytest.approx(expected, abs=1e-6)
    output = "logits" if problem == "regression" else "probabilities"
    phi = ws.TransformerFeatures.from_pretrained(pipeline, output=output)
    torch.testing.assert_close(phi.encode(TEXTS), rows, rtol=0, atol=1e-6)
    effect = ws.explain(classifier, TEXTS[0], tries=0).by("delete")[3]
    changed = classifier.probabilities([without(TEXTS[0], effect.span)])[0]
    target = int(rows[0].argmax())
    assert effect.change == pytest.approx(float(changed[target] - rows[0, target]), abs=1e-6)
    if problem == "regression":
        with pytest.raises(ws.InputError, match="is a regression: it gives a number and no label"):
            ws.explain_classes(classifier, TEXTS)
        return
    flips = ws.explain_classes(classifier, TEXTS, words_per_text=3, tries=1, move_texts=1)
    assert list(flips.labels) == classifier.labels_of(classifier.probabilities(list(flips.texts)))


def test_of_several_labels_the_least_sure_decides():
    """A label is on from 1/2; the margin turns negative where one of the labels changes."""
    both = Classifier(lambda texts: [[0.9, 0.45]] * len(texts), name="both", kind=SIGMOID)
    observed = both.probabilities(["a"])[0]
    assert both.labels_of(observed.unsqueeze(0)) == ["0"]
    rows = torch.tensor([[0.9, 0.3], [0.6, 0.49], [0.9, 0.6], [0.4, 0.1]], dtype=torch.float64)
    assert both.support(rows, observed).tolist() == pytest.approx([0.7, 0.51, 0.4, 0.4])
    assert (both.margin(rows, observed) > 0).tolist() == [True, True, False, False]


def test_one_output_alone_is_a_sigmoid_and_named_labels_win():
    tokenizer, model = zoo_model("bert", "ForSequenceClassification", num_labels=1)
    classifier = as_classifier((model, tokenizer), labels=("sure",))
    logits = classifier.text_model().logits_of(TEXTS)
    torch.testing.assert_close(classifier.probabilities(TEXTS), torch.sigmoid(logits))
    phi = ws.TransformerFeatures(model, tokenizer, output="probabilities")
    torch.testing.assert_close(phi.encode(TEXTS), torch.sigmoid(logits), rtol=0, atol=1e-6)
    assert classifier.label(0) == "sure"


@pytest.mark.parametrize("kind", [SOFTMAX, SIGMOID])
def test_a_margin_is_negative_exactly_where_the_label_is_another(kind):
    moods = Classifier(lambda texts: [[0.5, 0.5]] * len(texts), name="moods", kind=kind)
    rows = torch.rand(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = rows / rows.sum(dim=1, keepdim=True) if kind == SOFTMAX else rows
    labels = moods.labels_of(rows)
    for observed, label in zip(rows[:5], labels, strict=False):
        margins = moods.margin(rows, observed)
        assert [margin < 0 for margin in margins.tolist()] == [other != label for other in labels]
