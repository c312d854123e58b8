"""Transformers as models: by name, loaded, in a pipeline; with a map and without one."""

import json

import pytest
import torch
from safetensors.torch import save_file

import wordsens as ws
from tests.maps.tiny_models import CONTEXT, model_of, save_tiny, tokenizer
from wordsens.errors import InputError
from wordsens.maps.transformer.features import map_of
from wordsens.models.embedding import load_encoder
from wordsens.models.load import as_model

TEXTS = ["the film was good", "the film was not good and not bad", "the film was bad", "very long"]
LONG = "the film was good and " * 10


def theirs(model, text, pool=lambda states: states.mean(dim=0), layer=-1):
    """A text's vector, from the model's own forward pass."""
    ids = torch.tensor([tokenizer()(text, truncation=True, max_length=CONTEXT)["input_ids"]])
    with torch.no_grad():
        return pool(model(ids, output_hidden_states=True).hidden_states[layer][0]).double()


@pytest.fixture
def folder(tmp_path):
    """A folder with a tiny BERT and its tokenizer."""
    save_tiny(tmp_path)
    return tmp_path


def test_a_pair_gives_the_mean_of_its_last_states():
    given = model_of("bert")
    model = as_model((given, tokenizer()))
    assert (model.name, model.no_rows, model.layers) == ("BertModel (mean)", None, 3)
    expected = torch.stack([theirs(given, text) for text in TEXTS])
    torch.testing.assert_close(model.encode(TEXTS), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(model.encode(TEXTS[2:3])[0], expected[2], rtol=0, atol=1e-6)


def test_every_layer():
    given = model_of("bert")
    found = as_model((given, tokenizer()), pool="cls").encode_layers(TEXTS)
    assert found.shape == (4, 4, 16)
    for layer in range(4):
        for at, text in enumerate(TEXTS):
            expected = theirs(given, text, lambda states: states[0], layer)
            torch.testing.assert_close(found[layer, at], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_causal_language_model_is_read_at_its_last_token(kind):
    given = model_of(kind, "AutoModelForCausalLM")
    model = as_model((given, tokenizer()))
    expected = torch.stack([theirs(given, text, lambda states: states[-1]) for text in TEXTS])
    torch.testing.assert_close(model.encode(TEXTS), expected, rtol=0, atol=1e-6)
    assert model.name.endswith("(last)")


def test_a_text_that_is_too_long_is_cut():
    given = model_of("bert")
    (found,) = as_model((given, tokenizer())).encode([LONG])
    torch.testing.assert_close(found, theirs(given, LONG), rtol=0, atol=1e-6)


def test_the_given_model_keeps_its_mode_and_its_gradients():
    given = model_of("gpt2").train()
    before = as_model((given, tokenizer()))
    before.encode(TEXTS)
    map_of(before)
    assert given.training
    assert all(weight.requires_grad for weight in given.parameters())
    assert given.config.pad_token_id is None
    # The weights are shared: what training changes in place is seen.
    first, identity = before.encode(TEXTS), before.identity()
    with torch.no_grad():
        next(given.parameters()).mul_(1.5)
    assert not torch.allclose(before.encode(TEXTS), first)
    assert before.identity() != identity


def test_features_are_those_of_encode():
    model = as_model((model_of("bert"), tokenizer()))
    phi = map_of(model)
    for text, row in zip(phi.embed(TEXTS), model.encode(TEXTS), strict=True):
        torch.testing.assert_close(phi(text).double(), row, rtol=0, atol=1e-6)
    assert (
        ws.word_sensitivity(
            phi, phi.embed(TEXTS[0])[0], words=[1], search=ws.SearchPlan(steps=1)
        ).value
        > 0
    )


def test_a_pipeline():
    from transformers import pipeline

    given = model_of("bert")
    made = pipeline("feature-extraction", model=given, tokenizer=tokenizer())
    found = as_model(made, pool="cls").encode(TEXTS)
    for row, states in zip(found, made(TEXTS), strict=True):
        torch.testing.assert_close(row, torch.tensor(states[0][0]).double(), rtol=0, atol=1e-6)


def test_a_map_of_a_pipelines_classifier():
    from transformers import pipeline

    given = model_of("bert", "AutoModelForSequenceClassification")
    made = pipeline(
        "text-classification",
        model=given,
        tokenizer=tokenizer(),
        top_k=None,
        function_to_apply="softmax",
    )
    phi = ws.TransformerFeatures.from_pretrained(made, output="probabilities")
    (scores,) = made([TEXTS[0]])
    expected = torch.tensor(
        [each["score"] for each in sorted(scores, key=lambda each: each["label"])]
    )
    torch.testing.assert_close(phi(phi.embed(TEXTS[0])[0]), expected, rtol=0, atol=1e-6)


def test_a_folder(folder):
    given = model_of("bert")
    models = [as_model(folder), as_model(str(folder))]
    for model in models:
        torch.testing.assert_close(
            model.encode(TEXTS)[1], theirs(given, TEXTS[1]), rtol=0, atol=1e-6
        )
        assert model.name == f"{folder} (mean)"
    assert models[0].identity() == as_model((model_of("bert"), tokenizer())).identity()


def test_a_model_that_cannot_be_run_from_rows_is_a_black_box():
    given = model_of("xlnet")
    model = as_model((given, tokenizer()))
    assert model.no_rows is not None
    expected = torch.stack([theirs(given, text) for text in TEXTS])
    torch.testing.assert_close(model.encode(TEXTS), expected, rtol=0, atol=2e-6)
    with pytest.raises(InputError, match=r"where gradients .* cannot be run from rows"):
        map_of(model)
    assert model.identity() == as_model((model_of("xlnet"), tokenizer())).identity()


def test_a_map_with_a_pool_is_a_model():
    phi = ws.TransformerFeatures(model_of("bert"), tokenizer(), pool="max", layer=2)
    expected = theirs(model_of("bert"), TEXTS[1], lambda states: states.amax(dim=0), 2)
    torch.testing.assert_close(as_model(phi).encode(TEXTS)[1], expected, rtol=0, atol=1e-6)
    rows = ws.TransformerFeatures(model_of("bert"), tokenizer())
    with pytest.raises(InputError, match="choose a pool, such as pool='mean'"):
        as_model(rows).encode(TEXTS)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A cache of the hub with two revisions of one model, of which the branch main is the first."""
    from huggingface_hub import constants

    root = tmp_path / "hub" / "models--someone--tiny"
    for revision, layers in (("a" * 40, 3), ("b" * 40, 2)):
        place = root / "snapshots" / revision
        save_tiny(place, "bert", num_hidden_layers=layers)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("a" * 40)
    (root / "refs" / "v2").write_text("b" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(
        constants, "HF_HUB_OFFLINE", True
    )  # without a network every request is tried for half a minute
    return "someone/tiny"


@pytest.mark.parametrize(("revision", "layers"), [(None, 3), ("main", 3), ("v2", 2), ("b" * 40, 2)])
def test_a_revision_of_a_name_on_the_hub(hub, revision, layers):
    model = as_model(hub, revision=revision, local_files_only=True)
    assert model.layers == layers
    expected = theirs(model_of("bert", num_hidden_layers=layers), TEXTS[0])
    torch.testing.assert_close(model.encode(TEXTS)[0], expected, rtol=0, atol=1e-6)
    phi = ws.TransformerFeatures.from_pretrained(hub, revision=revision, local_files_only=True)
    assert phi.model.layers == layers
    encoder = load_encoder(hub, revision=revision, local_files_only=True)
    assert (
        ws.embed(TEXTS, encoder, layer=-1, rescale=False)[0].rows.shape[1]
        == model.encode(TEXTS).shape[1]
    )
    assert encoder.layers == layers


@pytest.mark.parametrize("local_files_only", [True, False])
def test_what_stands_behind_the_pooling_comes_from_the_hub_too(hub, tmp_path, local_files_only):
    place = tmp_path / "hub" / "models--someone--tiny" / "snapshots" / ("a" * 40)
    weight = torch.linspace(-1, 1, 32).reshape(2, 16)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    types = {path: f"sentence_transformers.models.{kind}" for path, kind in kinds.items()}
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": types[path]}
        for at, path in enumerate(kinds)
    ]
    (place / "modules.json").write_text(json.dumps(modules))
    for folder, config in (
        ("1_Pooling", {"word_embedding_dimension": 16, "pooling_mode_cls_token": True}),
        ("2_Dense", {"in_features": 16, "out_features": 2, "bias": False}),
    ):
        (place / folder).mkdir()
        (place / folder / "config.json").write_text(json.dumps(config))
    save_file({"linear.weight": weight}, place / "2_Dense" / "model.safetensors")
    found = as_model(hub, local_files_only=local_files_only).encode(TEXTS)
    expected = torch.stack(
        [theirs(model_of("bert"), text, lambda states: states[0]) for text in TEXTS]
    )
    torch.testing.assert_close(found, torch.tanh(expected @ weight.double().T), rtol=0, atol=1e-5)


def test_modules_that_another_program_left_out_of_the_cache_are_brought(hub, tmp_path, monkeypatch):
    """transformers alone caches weights and no modules: the pooling would be guessed."""
    import huggingface_hub

    from wordsens.models import model_files

    place = tmp_path / "hub" / "models--someone--tiny" / "snapshots" / ("a" * 40)
    asked = []
    download = huggingface_hub.snapshot_download

    def downloaded(name, *, local_files_only, **options):
        if not local_files_only:
            asked.append(name)
            kinds = {"": "Transformer", "1_Pooling": "Pooling"}
            modules = [
                {
                    "idx": at,
                    "name": str(at),
                    "path": path,
                    "type": f"sentence_transformers.models.{kind}",
                }
                for at, (path, kind) in enumerate(kinds.items())
            ]
            (place / "modules.json").write_text(json.dumps(modules))
            (place / "1_Pooling").mkdir()
            settings = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True}
            (place / "1_Pooling" / "config.json").write_text(json.dumps(settings))
        return download(name, local_files_only=True, **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", downloaded)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *given, **options: None)
    monkeypatch.setattr(model_files, "ask_hub", lambda *_: model_files.HubAnswer.FOUND)
    for _ in range(2):
        found = as_model(hub).encode(TEXTS[:1])[0]
        expected = theirs(model_of("bert"), TEXTS[0], lambda states: states[0])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert asked == [hub]  # the second time all is known
