"""Seventeen architectures: embeddings against sentence-transformers, removals against encoding
again, moved words against running the model on changed embeddings."""

import numpy as np
import pytest
import transformers

import wordsens as ws
from tests.models.zoo import NAMES, zoo_model
from wordsens.models import as_classifier
from wordsens.text.whole_words import lettered_spans, without

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = [
    "The lift is not working today, please use the stairs.",
    "I did not love her.",
    "यह अच्छा नहीं है",
    "emoji 😀 naïve café",
]
FIRST, SECOND = TEXTS[:2]


@pytest.fixture(scope="module", params=NAMES)
def member(request, tmp_path_factory):
    """An architecture's name, its folder, its tokenizer and model, and what `as_model` makes of the
    folder."""
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer, model = zoo_model(request.param)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return request.param, folder, tokenizer, model, ws.as_model(folder)


@pytest.fixture
def library(member):
    """What sentence-transformers makes of the folder; it refuses tokenizers without a padding
    token."""
    if member[0] in ("gpt2", "llama"):
        pytest.skip("sentence-transformers needs a padding token")
    return sentence_transformers.SentenceTransformer(str(member[1]), device="cpu")


def test_embeddings_are_those_of_sentence_transformers(member, library):
    expected = np.concatenate([library.encode([text]) for text in TEXTS])
    apart = np.linalg.norm(member[4].encode(TEXTS).numpy() - expected, axis=1)
    assert (apart <= 1e-6 * np.linalg.norm(expected, axis=1)).all()


def test_removals_are_those_of_encoding_again(member):
    model = member[4]
    explained = ws.explain(model, FIRST, SECOND, tries=0)

    def cosine(first, second):
        one, two = model.encode([first])[0], model.encode([second])[0]
        return float(one @ two / one.norm() / two.norm())

    value = cosine(FIRST, SECOND)
    spans = lettered_spans(FIRST)
    assert [word.word for word in explained.words if word.side == 0] == [
        FIRST[slice(*span)] for span in spans
    ]
    for word, span in zip(explained.words, spans, strict=False):
        assert word.removal == pytest.approx(cosine(without(FIRST, span), SECOND) - value, abs=1e-6)


@pytest.mark.parametrize("name", ["bert", "roberta", "qwen2", "gpt2", "distilbert", "deberta"])
@pytest.mark.parametrize(
    "problem", ["single_label_classification", "multi_label_classification", "regression"]
)
def test_classifiers_give_their_pipelines_own_numbers(name, problem):
    pad = {"pad_token_id": 0} if name in ("qwen2", "gpt2") else {}
    count = 1 if problem == "regression" else 3
    head = "ForSequenceClassification"
    tokenizer, model = zoo_model(name, head, num_labels=count, problem_type=problem, **pad)
    tokenizer.pad_token = tokenizer.pad_token or "<|endoftext|>"
    classifier = as_classifier((model, tokenizer))
    pipeline = transformers.pipeline(
        "text-classification", model=model, tokenizer=tokenizer, device="cpu", top_k=None
    )
    rows = classifier.probabilities(TEXTS)
    for text, row in zip(TEXTS, rows.tolist(), strict=True):
        expected = {one["label"]: one["score"] for one in pipeline([text])[0]}
        assert dict(zip(map(classifier.label, range(count)), row, strict=True)) == pytest.approx(
            expected, abs=1e-6
        )
    explained = ws.explain(classifier, FIRST, tries=0)
    changed = classifier.probabilities(
        [without(FIRST, (explained.words[3].start, explained.words[3].stop))]
    )[0]
    target = int(rows[0].argmax())
    assert explained.words[3].removal == pytest.approx(
        float(changed[target] - rows[0, target]), abs=1e-6
    )
    if problem == "regression":
        with pytest.raises(ws.InputError, match="is a regression: it gives a number and no label"):
            ws.label_flips(classifier, TEXTS)
        return
    flips = ws.label_flips(classifier, TEXTS, words_per_text=3, tries=1, radius_texts=1)
    labels = classifier.labels_of(classifier.probabilities(list(flips.texts)))
    assert list(flips.labels) == labels
