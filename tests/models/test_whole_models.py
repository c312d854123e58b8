"""A model is what it says: whole weights, an identity of its own, copies that give the same, no
silent cut, and objects left as they were."""

import copy
import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

import wordsens as ws
from tests.maps.tiny_models import model_of, save_tiny, tokenizer
from tests.models.zoo import tiny_sentence_transformer, zoo_model
from wordsens.maps.transformer.features import map_of
from wordsens.models import as_classifier, as_model, as_pair_model, load_encoder, load_text_model
from wordsens.models.model_files import minilm_folder
from wordsens.models.text_model import TextModel

library = pytest.importorskip("sentence_transformers")

TEXTS = ["the film was good", "the film was not good"]


def without(folder, part):
    """The folder with its weights, but for those whose name holds the part."""
    file = folder / "model.safetensors"
    weights = {name: each for name, each in load_file(file).items() if part not in name}
    save_file(weights, file, metadata={"format": "pt"})


@pytest.mark.parametrize("kind", ["plain", "sentence", "reranker"])
def test_missing_weights_are_refused_on_every_way_in(tmp_path, kind):
    """A library would fill them with random numbers, others in every run."""
    load = as_model
    if kind == "plain":
        save_tiny(tmp_path)
    elif kind == "sentence":
        tiny_sentence_transformer(tmp_path / "base").save(str(tmp_path))
    else:
        save_tiny(tmp_path, "bert", "AutoModelForSequenceClassification", num_labels=1)
        load = as_pair_model
    load(str(tmp_path))
    without(tmp_path, "layer.1.")
    with pytest.raises(ws.InputError, match="tensors are missing"):
        load(str(tmp_path))


def test_a_reranker_without_its_head_is_refused(tmp_path):
    save_tiny(tmp_path, "bert", "AutoModelForSequenceClassification", num_labels=1)
    without(tmp_path, "pooler")
    with pytest.raises(ws.InputError, match="tensors are missing"):
        as_pair_model(str(tmp_path))


def test_a_tokenizer_without_words_is_named_not_the_text(tmp_path):
    tiny_sentence_transformer(tmp_path / "base").save(str(tmp_path))
    for path in [*tmp_path.glob("*token*"), *tmp_path.glob("vocab*")]:
        path.unlink()
    with pytest.raises(ws.InputError, match=r"knows no word|cannot be loaded"):
        as_model(str(tmp_path))


def test_a_name_and_its_object_share_an_identity():
    model = library.SentenceTransformer(str(minilm_folder()), device="cpu")
    assert as_model("minilm").identity() == as_model(model).identity()


def test_prompts_are_part_of_an_identity():
    made = [
        TextModel(model_of("bert"), tokenizer(), pool="mean", prompt=prompt)
        for prompt in ("", "good ")
    ]
    assert made[0].identity() != made[1].identity()
    assert not torch.allclose(made[0].encode(TEXTS), made[1].encode(TEXTS))


@pytest.mark.parametrize("name", ["object", "pair", "light"])
@pytest.mark.parametrize("way", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_gives_the_same_numbers(tmp_path, name, way):
    if name == "light":
        (first,), (second,) = (
            model.rows(["a film"]) for model in (load_encoder(), way(load_encoder()))
        )
        torch.testing.assert_close(first, second)
        return
    given = (model_of("bert"), tokenizer())
    if name == "object":
        given = library.SentenceTransformer(str(minilm_folder()), device="cpu")
    model = as_model(given, batch_size=3)
    twin = way(model)
    torch.testing.assert_close(twin.encode(TEXTS), model.encode(TEXTS), rtol=0, atol=1e-6)
    assert (twin.identity(), twin._batch_size) == (model.identity(), 3)


def test_a_map_leaves_the_given_model_as_it_was():
    given = model_of("gpt2").train()
    phi = ws.TransformerFeatures(given, tokenizer())
    phi.embed(TEXTS)
    assert given.training and given.config.pad_token_id is None
    assert all(weight.requires_grad for weight in given.parameters())


def test_embed_cuts_no_text_whatever_model_is_given():
    long = "a film " * 400
    for encoder in ("minilm", as_model("minilm"), load_text_model("minilm")):
        with pytest.raises(ws.InputError, match="its context is"):
            ws.embed(long, encoder)
    assert as_model("minilm").encode([long]).shape == (1, 384)


def test_a_dtype_does_not_apply_to_an_objects_own_pooling():
    model = library.SentenceTransformer(str(minilm_folder()), device="cpu")
    with pytest.raises(ws.InputError, match=r"`dtype` \(=torch.float64\) does not apply"):
        ws.TransformerFeatures.from_pretrained(model, pool="own", dtype=torch.float64)


@pytest.mark.parametrize("layer", [None, "3", 3.0, True, 7, -8])
def test_layers_are_whole_numbers_of_the_model(layer):
    with pytest.raises(ws.InputError, match=r"`layer` .* is not a layer of minilm"):
        load_encoder().rows(["a film"], layer)


@pytest.mark.parametrize("texts", [None, 5, "a film", [3], [["a"]], []])
def test_texts_are_a_list_of_strings(texts):
    for call in (as_model("minilm").encode, load_encoder().rows):
        with pytest.raises(ws.InputError, match=r"`texts` .* must be a list of strings"):
            call(texts)


def test_an_odd_configuration_is_one_line(tmp_path):
    save_tiny(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "architectures": 5}))
    try:
        as_model(str(tmp_path))
    except ws.InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_classifier_without_a_padding_token_reads_texts_together(name):
    words, model = zoo_model(name, "ForSequenceClassification")
    assert model.config.pad_token_id is None
    classifier = as_classifier((model, words))
    texts = ["the lift is on", "turn it on", "the lift is on"]
    with torch.no_grad():
        own = [model(**words(text, return_tensors="pt")).logits.softmax(1)[0] for text in texts]
    found = classifier.probabilities(texts)
    torch.testing.assert_close(found, torch.stack(own).double(), rtol=0, atol=1e-6)
    phi = map_of(classifier, "probabilities")
    torch.testing.assert_close(phi.encode(texts), found, rtol=0, atol=1e-6)


def test_an_unknown_pooling_is_refused_from_rows_too():
    model = load_text_model((model_of("bert"), tokenizer()))
    rows = model.entering(torch.tensor([model.read("the film").ids]))
    with pytest.raises(ws.InputError, match=r"`pool` .*mean"):
        model.forward(rows, pool="meen")
