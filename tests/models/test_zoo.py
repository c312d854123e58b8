"""Seventeen architectures: embeddings against sentence-transformers, removals against encoding again, moved words
against running the model on changed embeddings."""

import random

import numpy as np
import pytest
import torch
import transformers
from tests.models.zoo import NAMES, zoo_model

import wordsens as ws
from wordsens.evaluation.explain import ExplainPlan
from wordsens.evaluation.flips import FlipPlan
from wordsens.maps.mapping import perturbed_texts
from wordsens.models import as_classifier
from wordsens.text.whole_words import lettered_spans, without

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = ["The lift is not working today, please use the stairs.", "I did not love her.", "यह अच्छा नहीं है",
         "emoji 😀 naïve café"]  # fmt: skip
FIRST, SECOND = TEXTS[:2]


@pytest.fixture(scope="module", params=NAMES)
def member(request, tmp_path_factory):
    """An architecture's name, its folder, its tokenizer and model, and what `as_model` makes of the folder."""
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer, model = zoo_model(request.param)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return request.param, folder, tokenizer, model, ws.as_model(folder)


@pytest.fixture
def library(member):
    """What sentence-transformers makes of the folder; it refuses tokenizers without a padding token."""
    if member[0] in ("gpt2", "llama"):
        pytest.skip("sentence-transformers needs a padding token")
    return sentence_transformers.SentenceTransformer(str(member[1]), device="cpu")


def test_embeddings_are_those_of_sentence_transformers(member, library):
    expected = np.concatenate([library.encode([text]) for text in TEXTS])
    apart = np.linalg.norm(member[4].encode(TEXTS).numpy() - expected, axis=1)
    assert (apart <= 1e-6 * np.linalg.norm(expected, axis=1)).all()


def test_removals_are_those_of_encoding_again(member):
    model = member[4]
    explained = ws.explain(model, FIRST, SECOND, plan=ExplainPlan(tries=0))

    def cosine(first, second):
        one, two = model.encode([first])[0], model.encode([second])[0]
        return float(one @ two / one.norm() / two.norm())

    value = cosine(FIRST, SECOND)
    spans = lettered_spans(FIRST)
    assert [word.word for word in explained.words if word.side == 0] == [FIRST[slice(*span)] for span in spans]
    for word, span in zip(explained.words, spans, strict=False):
        assert word.removal == pytest.approx(cosine(without(FIRST, span), SECOND) - value, abs=1e-6)


def test_moved_words_are_the_model_on_changed_embeddings(member):
    """The same rows put into the first layer of the model's own forward pass, by a hook of this test."""
    name, *_, wrapped = member
    if not wrapped.can_differentiate:
        with pytest.raises(ws.InputError, match="where gradients are needed"):
            wrapped.features()
        return
    phi = wrapped.features()
    (X,) = phi.embed([FIRST])
    if phi.stack.blocks is None:
        pytest.skip(f"{name}: rows are those of the token embeddings")
    ids = torch.tensor([list(phi.reading().tokens(FIRST).ids)])
    for word in random.Random(0).sample(list(X.whole_words), 5):
        moved = perturbed_texts(X.rows, torch.tensor([word.rows]), torch.ones(1, len(word.rows), X.rows.shape[1]))[0]
        states = states_with(phi.stack.base, phi.stack.blocks[0], ids, moved)
        expected = states[-1] if phi.pool == "last" else states.mean(dim=0)
        torch.testing.assert_close(phi(moved), expected, rtol=1e-4, atol=1e-5)


def states_with(model, layer, ids, rows):
    """The last hidden states when these rows enter the layer at its first call."""
    calls = []

    def change(_, positional, named):
        calls.append(1)
        states = positional[0] if positional else named["hidden_states"]
        changed = torch.cat([rows[None].to(states), states[:, len(rows) :]], dim=1) if len(calls) == 1 else states
        return ((changed, *positional[1:]), named) if positional else (positional, {**named, "hidden_states": changed})

    handle = layer.register_forward_pre_hook(change, with_kwargs=True)
    try:
        with torch.no_grad():
            return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
    finally:
        handle.remove()


@pytest.mark.parametrize("name", ["bert", "roberta", "qwen2", "gpt2", "distilbert", "deberta"])
@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification", "regression"])
def test_classifiers_give_their_pipelines_own_numbers(name, problem):
    pad = {"pad_token_id": 0} if name in ("qwen2", "gpt2") else {}
    count = 1 if problem == "regression" else 3
    head = "ForSequenceClassification"
    tokenizer, model = zoo_model(name, head, num_labels=count, problem_type=problem, **pad)
    tokenizer.pad_token = tokenizer.pad_token or "<|endoftext|>"
    classifier = as_classifier((model, tokenizer))
    pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu", top_k=None)
    rows = classifier.probabilities(TEXTS)
    for text, row in zip(TEXTS, rows.tolist(), strict=True):
        expected = {one["label"]: one["score"] for one in pipeline([text])[0]}
        assert dict(zip(map(classifier.label, range(count)), row, strict=True)) == pytest.approx(expected, abs=1e-6)
    explained = ws.explain(classifier, FIRST, plan=ExplainPlan(tries=0))
    changed = classifier.probabilities([without(FIRST, (explained.words[3].start, explained.words[3].stop))])[0]
    target = int(rows[0].argmax())
    assert explained.words[3].removal == pytest.approx(float(changed[target] - rows[0, target]), abs=1e-6)
    if problem == "regression":
        with pytest.raises(ws.InputError, match="is a regression: it gives a number and no label"):
            ws.label_flips(classifier, TEXTS)
        return
    flips = ws.label_flips(classifier, TEXTS, plan=FlipPlan(words_per_text=3, tries=1, radius_texts=1))
    labels = classifier.labels_of(classifier.probabilities(list(flips.texts)))
    assert list(flips.labels) == labels
