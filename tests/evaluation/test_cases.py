"""Kinds of models and texts that other tools get wrong, each against a computation that is not
ours."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.evaluation.stand_ins import few_pairs
from tests.models.zoo import zoo_model
from wordsens.models import as_classifier
from wordsens.text.whole_words import lettered_spans, without

TEXTS = [f"The lift number {n} is not working today." for n in range(8)]
FIRST, SECOND = "The lift is not working.", "Please use the stairs."
LONG = " ".join(["The room was warm."] * 40)
PAIRS = few_pairs(near=5, opposites=4, paraphrases=4)


class Wrapped(torch.nn.Module):
    """A module that only holds a transformer."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.config = inner, inner.config

    def forward(self, **named):
        return self.inner(**named)


def quantised(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch deprecates what users still have
        return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


def tuples(model):
    model.config.return_dict = False
    return model


def in_inference_mode(model):
    with torch.inference_mode():
        return copy.deepcopy(model)


UNUSUAL = {
    "quantised": quantised,
    "bfloat16": lambda model: model.to(torch.bfloat16),
    "tuples": tuples,
    "wrapped": Wrapped,
    "inference mode": in_inference_mode,
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_models_are_checked_compared_and_explained(kind):
    tokenizer, model = zoo_model("bert")
    pair = (UNUSUAL[kind](model), tokenizer)

    def vector(text):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            output = pair[0](input_ids=ids, attention_mask=torch.ones_like(ids))
        states = output[0] if isinstance(output, tuple) else output.last_hidden_state
        return states[0].float().mean(dim=0).double()

    # Dynamic quantisation scales by the largest number of a batch.
    tolerance = {"quantised": 0.02, "bfloat16": 0.02}.get(kind, 1e-5)
    encoded = ws.as_model(pair).encode([FIRST, SECOND])
    for row, text in zip(encoded, (FIRST, SECOND), strict=True):
        assert float((row - vector(text)).norm() / row.norm()) < tolerance
    explained = ws.explain(pair, FIRST, SECOND, tries=1)
    span = lettered_spans(FIRST)[3]
    changed = torch.nn.functional.cosine_similarity(
        vector(without(FIRST, span)), vector(SECOND), dim=0
    )
    assert explained.value + explained.removal[3] == pytest.approx(float(changed), abs=tolerance)
    assert 0 <= ws.check(pair, PAIRS).kinds["negation"].auc <= 1
    assert not ws.compare(pair, pair, TEXTS, pairs="none").differs


def test_tokenizers_that_are_not_fast():
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.ByT5Tokenizer()
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2
    )
    model = transformers.T5EncoderModel(config).eval()
    ids = tokenizer(FIRST, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = model(input_ids=ids).last_hidden_state[0].mean(dim=0)
    pair = (model, tokenizer)
    np.testing.assert_allclose(
        ws.as_model(pair).encode([FIRST])[0].numpy(), expected.numpy(), rtol=0, atol=1e-6
    )
    assert any("no vectors" in note for note in ws.explain(pair, FIRST, SECOND, tries=1).notes)
    assert not ws.compare(pair, pair, TEXTS, pairs="none").differs


def test_a_bag_of_words_of_sentence_transformers():
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import BoW

    words = [
        "the",
        "lift",
        "number",
        "is",
        "not",
        "working",
        "today",
        "turn",
        "it",
        "on",
        "off",
        "door",
        "open",
    ]
    bag = library.SentenceTransformer(modules=[BoW(vocab=words)], device="cpu")
    np.testing.assert_array_equal(ws.as_model(bag).encode(TEXTS).numpy(), bag.encode(TEXTS))
    assert not ws.compare(bag, bag, TEXTS, pairs="none").differs
    rows = [
        ("negation", "the door is open", "the door is not open", False),
        ("near", "turn it on", "turn on it", True),
    ]
    assert ws.check(bag, rows).kinds["negation"].auc == 1


def test_weights_without_numbers_adapters_and_classifiers_are_no_embeddings(tmp_path):
    tokenizer, model = zoo_model("bert")
    with pytest.raises(
        ws.InputError, match="are on the meta device, where they have no numbers; load them"
    ):
        ws.as_model((model.to("meta"), tokenizer))
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ws.InputError, match="an adapter is merged into its base model"):
        ws.as_model(tmp_path)
    for labels in (2, 3):
        folder = tmp_path / f"classes{labels}"
        tokenizer, classifier = zoo_model("bert", "ForSequenceClassification", num_labels=labels)
        tokenizer.save_pretrained(folder)
        classifier.save_pretrained(folder)
        with pytest.raises(ws.InputError, match=f"is a classifier of {labels} labels, not an emb"):
            ws.check(folder, PAIRS)
        assert ws.as_model(folder, pool="mean").encode([FIRST]).shape == (1, 32)
        assert as_classifier(folder).probabilities([FIRST]).sum() == pytest.approx(1)


def test_a_folder_of_an_encoder_alone(tmp_path):
    tokenizer, model = zoo_model("t5")
    tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    with torch.no_grad():
        expected = model(**tokenizer(FIRST, return_tensors="pt")).last_hidden_state[0].mean(dim=0)
    torch.testing.assert_close(
        ws.as_model(tmp_path).encode([FIRST])[0].float(), expected, rtol=1e-5, atol=1e-6
    )


def test_a_repeated_word_has_its_own_move():
    """The move of each "the" is the same whichever words are measured."""
    tokenizer, model = zoo_model("bert", "ForSequenceClassification", num_labels=2)
    text = "The lift is not working but the stairs and the alarm work."
    options = {"tries": 0, "move_texts": 1}
    classifier = as_classifier((model, tokenizer))
    every = ws.explain_classes(classifier, [text], words_per_text=99, **options).by("move")
    expected = {effect.start: effect.change for effect in every}
    assert len({effect.change for effect in every if effect.word.lower() == "the"}) == 3
    for seed in range(12):
        found = ws.explain_classes(classifier, [text], words_per_text=1, seed=seed, **options)
        (effect,) = found.by("move")
        assert effect.change == pytest.approx(expected[effect.start])


def words_read(tokenizer):
    """The places of the words of LONG that the tokenizer does not cut off."""
    offsets = tokenizer(LONG, truncation=True, max_length=64, return_offsets_mapping=True)[
        "offset_mapping"
    ]
    return [span for span in lettered_spans(LONG) if span[1] <= max(stop for _, stop in offsets)]


def test_words_past_the_limit_have_no_numbers_and_are_counted():
    tokenizer, model = zoo_model("bert")
    pair = (model, tokenizer)
    spans = lettered_spans(LONG)
    read = words_read(tokenizer)
    explained = ws.explain(pair, LONG, FIRST, tries=1)
    own = [
        change
        for side, change in ((word.side, word.removal) for word in explained.words)
        if side == 0
    ]
    unread = len(spans) - len(read)
    assert [change is None for change in own] == [False] * len(read) + [True] * unread
    assert f"{unread} of {len(spans)} words of the first text, from" in explained.headline
    compared = ws.compare(pair, pair, [f"{LONG} {n}" for n in range(8)], pairs="none")
    assert "8 texts longer than what both models read" in compared.answer[0]
    tokenizer, classifier = zoo_model("bert", "ForSequenceClassification", num_labels=2)
    read = words_read(tokenizer)
    flips = ws.explain_classes((classifier, tokenizer), [*TEXTS, LONG], tries=0, move_texts=9)
    assert all(effect.span in read for effect in flips.effects if effect.text == len(TEXTS))
    assert f"{len(spans) - len(read)} words left out" in flips.headline


def test_opposites_that_differ_past_the_limit_are_hits_as_in_service():
    tokenizer, model = zoo_model("bert")
    rows = [
        ("negation", f"{LONG} It is open.", f"{LONG} It is not open.", False),
        ("negation", FIRST, "The lift is working.", False),
        ("near", "it is on", "it's on", True),
    ]
    result = ws.check((model, tokenizer), rows)
    assert result.kinds["negation"].pairs == 2
    assert result.scored.values[0] == 1
    assert "1 pair (1 opposite) with texts that differ only past" in result.answer[0]
    calibrated = ws.calibrate((model, tokenizer), rows, 0.9)
    # A threshold of 1 would let the opposite through that the model cannot see.
    assert calibrated.point_at(0.5, guard=False).threshold is None
    assert "1 pair (1 opposite) with texts that differ only past" in calibrated.answer[0]


def test_a_pair_with_a_text_that_a_model_cannot_read_is_left_out_and_named(tmp_path):
    tokenizer, model = zoo_model("bert")
    rows = ["first,second,same", f"{FIRST},The lift is working.,no", "🜁🜂🜃,it is on,no"]
    rows += ["it is on,it's on,yes", ",,", "it is off,🜁🜂🜃,yes"]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    result = ws.check((model, tokenizer), path)
    assert len(result.scored.pairs) == 2
    assert (
        "2 pairs left out, with a text that the model cannot read (own.csv:3, own.csv:6"
        in (result.answer[0])
    )


def test_several_labels_at_once_flip_as_a_set():
    tokenizer, model = zoo_model(
        "bert", "ForSequenceClassification", num_labels=3, problem_type="multi_label_classification"
    )
    classifier = as_classifier((model, tokenizer))
    rows = classifier.probabilities(TEXTS[:2])
    assert not math.isclose(float(rows[0].sum()), 1, abs_tol=1e-6)
    flips = ws.explain_classes(classifier, TEXTS[:2], tries=1, move_texts=1)
    for effect in flips.by("delete"):
        again = classifier.probabilities([without(flips.texts[effect.text], effect.span)])
        (label,) = classifier.labels_of(again)
        assert effect.label == ("" if label == flips.labels[effect.text] else label)


def test_a_prompt_for_each_side():
    library = pytest.importorskip("sentence_transformers")
    import tempfile

    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    tokenizer, model = zoo_model("bert")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)
        prompts = {"query": "Please use ", "document": "The lift "}
        modules = [Transformer(folder), Pooling(32, "mean")]
        made = library.SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
        made.save(f"{folder}/made")
        result = ws.check(f"{folder}/made", PAIRS, prompt_names=["query", "document"])
    first = made.encode([pair.first for pair in PAIRS], prompt_name="query")
    second = made.encode([pair.second for pair in PAIRS], prompt_name="document")
    expected = (
        (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    )
    np.testing.assert_allclose(result.scored.values, expected, rtol=0, atol=1e-5)
    with pytest.raises(ws.InputError, match="is no prompt of"):
        ws.check(made, PAIRS, prompt_names=["answer"])


def test_a_row_that_a_model_cannot_read_is_left_out_and_named():
    tokenizer, model = zoo_model("bert")
    documents = [
        ws.Document(text, source=f"texts.csv:{at}")
        for at, text in enumerate([*TEXTS, "🜁🜂🜃 🜄"], start=1)
    ]
    result = ws.compare((model, tokenizer), (model, tokenizer), documents, pairs="none")
    assert result.texts == len(TEXTS)
    assert "1 text left out that a model cannot read (the first, texts.csv:9: " in result.answer[0]
    tokenizer, classifier = zoo_model("bert", "ForSequenceClassification", num_labels=2)
    texts = [document.text for document in documents]
    assert ws.explain_classes((classifier, tokenizer), texts, tries=0).texts == tuple(TEXTS)
