"""Maps among torch's modules, modes and files: dtype and device, no_grad and inference mode,
pickles, reprs, errors."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from transformers import pipeline

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.maps.arguments import as_feature_map
from wordsens.maps.function import FunctionFeatures
from wordsens.maps.transformer.prompt_pair import prompt_pair
from wordsens.models.load import as_model

X = ws.gaussian_text(4, 6, seed=1)
IDS = torch.tensor([[2, 5, 6, 7, 3]])
SHORT = ws.SearchPlan("quick", starts=1, steps=2)


def linear(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Linear(6, 3).to(dtype)


MAPS = {
    "rf": lambda: ws.RandomFeatures(4, 6),
    "drf": lambda: ws.DeepRandomFeatures(4, 6, 2, activation="gelu"),
    "rf on demand": lambda: ws.RandomFeatures(4, 6, gaussian="lazy"),
    "raf": lambda: ws.RandomAttentionFeatures(6, heads=2),
    "relu-raf": lambda: ws.RandomAttentionFeatures(6, score="relu"),
    "module": lambda: FunctionFeatures(linear()),
    "transformer": lambda: ws.TransformerFeatures(
        model_of("bert"), tokenizer(), name="tiny", pool="mean"
    ),
}


def text_of(phi):
    return phi.rows_of(IDS)[0] if isinstance(phi, ws.TransformerFeatures) else X.rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_module_computes_in_its_own_dtype(dtype):
    module = linear(dtype)
    phi = as_feature_map(module)
    assert (phi.dtype, phi.device, phi.name) == (dtype, module.weight.device, "Linear")
    assert as_feature_map(module.forward).dtype == dtype
    found = ws.word_sensitivity(module, X, search=SHORT)
    assert found.perturbations.dtype == dtype
    assert found.value > 0


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", MAPS)
def test_searches_differentiate_in_every_mode(name, mode):
    plain = MAPS[name]()
    expected = ws.word_sensitivity(plain, text_of(plain), [1], search=SHORT, certificate=False)
    phi = MAPS[name]()
    with mode():
        if name not in (
            "module",
            "transformer",
        ):  # torch never differentiates a module that was made in inference mode
            phi = MAPS[name]()
        text = text_of(phi).clone()
        found = ws.word_sensitivity(phi, text, [1], search=SHORT, certificate=False)
        group = ws.group_sensitivity(phi, text, [(0, 1)], search=SHORT)
    assert found == expected
    assert group.value > 0


@pytest.mark.parametrize("name", ["raf", "module"])
def test_regression_and_its_search_differentiate_in_inference_mode(name):
    texts, labels = [ws.gaussian_text(4, 6, seed=seed) for seed in range(4)], [1, -1, 1, -1]
    phi = MAPS[name]()
    with torch.inference_mode():
        new = ws.NewText(ws.fit_min_norm(phi, texts, labels), X, 1)
        inside = new.generalization(search=SHORT)
    again = ws.NewText(ws.fit_min_norm(MAPS[name](), texts, labels), X, 1)
    assert again.generalization(search=SHORT).error == inside.error
    assert new.generalization(search=SHORT).error == inside.error


def saved_and_loaded(phi):
    file = io.BytesIO()
    torch.save(phi, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda phi: pickle.loads(pickle.dumps(phi)), saved_and_loaded]
)
@pytest.mark.parametrize("name", MAPS)
def test_maps_are_copied_pickled_and_saved(name, way):
    phi = MAPS[name]()
    twin = way(phi)
    assert twin is not phi
    assert torch.equal(twin(text_of(phi)), phi(text_of(phi)))
    assert repr(twin) == repr(phi)


@pytest.mark.parametrize(
    ("function", "found", "remedy"),
    [
        (lambda rows: (rows, rows), "a tuple of 2", "lambda X: phi(X)[0]"),
        (
            lambda rows: rows.detach().numpy(),
            "a ndarray",
            "write it with torch operations from end to end",
        ),
        (lambda rows: torch.fft.fft(rows), "a tensor of complex128", "torch.view_as_real"),
        (
            lambda rows: rows.argmax(dim=1),
            "a tensor of int64",
            "return scores or probabilities, not classes",
        ),
    ],
)
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    "measure",
    [
        lambda phi: ws.word_sensitivity(phi, X),
        lambda phi: ws.jacobian_sensitivity(phi, X),
        lambda phi: ws.fit_min_norm(phi, [X, X], [1, -1]),
    ],
)
def test_features_that_are_no_real_tensor_are_one_error(
    function, found, remedy, batched, measure, unchecked_types
):
    with pytest.raises(ws.InputError) as caught:
        measure(FunctionFeatures(function, batched=batched, name="mine"))
    message = str(caught.value)
    assert message.startswith(
        f"`phi` (mine) must return one tensor of real floating-point numbers; it gave {found}; "
    )
    assert remedy in message


RAF, RF = MAPS["raf"](), MAPS["rf"]()


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (lambda: ws.removal_effects(RAF, "a text"), "`phi` (=RandomAtten"),
        (lambda: prompt_pair(RAF, "a", "b"), "`phi` (=RandomAtten"),
        (lambda: ws.theorem_witness(RF, X), "`phi` (=RandomFeature"),
        (
            lambda: ws.attention_pair(RF, "a b", "a c"),
            "`phi` (rf) has no attention weights; give a Transformer",
        ),
    ],
)
def test_the_wrong_map_is_one_error(call, start, unchecked_types):
    with pytest.raises(ws.InputError) as caught:
        call()
    assert str(caught.value).startswith(start)
    assert "AttributeError" not in str(caught.value)


def test_a_model_of_texts_is_pointed_to_its_map(unchecked_types):
    """A transformer, its tokenizer, a pair, a pipeline, a model of ours, a name: none of them takes
    rows."""
    bert, words = model_of("bert"), tokenizer()
    pair = "TransformerFeatures.from_pretrained((model, tokenizer))"
    loaded = "TransformerFeatures.from_pretrained(model)"
    for given, remedy in (
        (bert, pair),
        (words, pair),
        ((bert, words), loaded),
        (torch.nn.DataParallel(bert), pair),
        (pipeline("feature-extraction", bert, tokenizer=words), loaded),
        (as_model((bert, words)), "map_of(model)"),
        ("minilm", "TransformerFeatures.from_pretrained('minilm')"),
    ):
        for measure in (ws.word_sensitivity, ws.certify):
            with pytest.raises(ws.InputError) as caught:
                measure(given, "a text, as a newcomer writes it")
            assert f"pass phi = {remedy}" in str(caught.value) and "X = phi.embed(text)[0]" in str(
                caught.value
            )
