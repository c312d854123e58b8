"""Loading a map from a folder: safetensors only, the head of the task, the model's own pooling."""

import json

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer

SENTENCE = "the film was not very unlikely good and long"


@pytest.fixture
def saved(tmp_path):
    """A function that saves a tiny model with its tokenizer and returns the folder's name."""

    def save(kind="bert", auto="AutoModel", **options):
        model_of(kind, auto).save_pretrained(tmp_path, **options)
        tokenizer().save_pretrained(tmp_path)
        return str(tmp_path)

    return save


def test_a_folder_gives_the_models_own_numbers(saved):
    folder = saved()
    phi = ws.TransformerFeatures.from_pretrained(folder, layer=2)
    ids = torch.tensor([tokenizer()(SENTENCE)["input_ids"]])
    expected = model_of("bert")(ids, output_hidden_states=True).hidden_states
    (text,) = phi.embed(SENTENCE)
    torch.testing.assert_close(text.rows, expected[0][0], rtol=0, atol=1e-6)
    torch.testing.assert_close(phi(text), expected[2][0], rtol=0, atol=1e-6)
    assert phi.name == f"{folder} layer 2"


def test_the_head_is_that_of_the_configuration(saved):
    folder = saved("qwen2", "AutoModelForCausalLM")
    phi = ws.TransformerFeatures.from_pretrained(folder, output="probabilities", pool="last")
    (text,) = phi.embed(SENTENCE)
    probabilities = phi(text)
    assert probabilities.shape == (20,)
    assert float(probabilities.sum()) == pytest.approx(1, abs=1e-6)


def test_a_model_without_a_head_says_so(saved):
    with pytest.raises(
        ws.InputError,
        match=r"its configuration names no classifier or language model \(BertModel\)",
    ):
        ws.TransformerFeatures.from_pretrained(saved(), output="logits")


def test_pickled_weights_are_read_as_numbers_alone(saved, tmp_path):
    """An older file of tensors is read; one that would run code when it is unpickled is refused."""
    folder, ran = saved(), tmp_path / "ran"
    (tmp_path / "model.safetensors").unlink()
    torch.save(model_of("bert").state_dict(), tmp_path / "pytorch_model.bin")
    phi = ws.TransformerFeatures.from_pretrained(folder)
    ids = torch.tensor([tokenizer()(SENTENCE)["input_ids"]])
    torch.testing.assert_close(
        phi(phi.rows_of(ids)), model_of("bert")(ids).last_hidden_state, rtol=0, atol=1e-6
    )

    class Runs:
        def __reduce__(self):
            return type(ran).touch, (ran,)

    torch.save({"embeddings.word_embeddings.weight": Runs()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ws.InputError, match="cannot be loaded"):
        ws.TransformerFeatures.from_pretrained(folder)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        (
            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
            r"\(TypeError\)",
        ),
        (
            {"type": "os.path", "path": "2_Dense"},
            r"code of its own, .* trust_remote_code=True and pass the object",
        ),
    ],
)
def test_a_pooling_that_the_library_cannot_load_is_refused(saved, tmp_path, module, remedy):
    folder = saved()
    first = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (tmp_path / "modules.json").write_text(json.dumps([first, {"idx": 1, "name": "1", **module}]))
    with pytest.raises(
        ws.InputError, match=rf"sentence-transformers cannot load the model .*{remedy}"
    ):
        ws.TransformerFeatures.from_pretrained(folder, pool="own")


def test_a_model_without_its_tokenizers_files_is_refused(tmp_path):
    # transformers then makes a tokenizer of special tokens alone: every word would be [UNK].
    model_of("bert").save_pretrained(tmp_path)
    for load in (
        ws.TransformerFeatures.from_pretrained,
        lambda folder: ws.embed("the film", encoder=folder),
    ):
        with pytest.raises(
            ws.InputError,
            match=r"knows no word: its files \(tokenizer.json, or vocab.txt\) are missing",
        ):
            load(str(tmp_path))


@pytest.mark.parametrize("text", ["любимый фильм года", "quite unheard words stand here good"])
def test_a_text_that_is_nearly_all_unknown_is_refused(saved, text):
    folder = saved()
    phi = ws.TransformerFeatures.from_pretrained(folder)
    for embed in (phi.embed, lambda text: ws.embed(text, encoder=folder)):
        with pytest.raises(ws.InputError, match=r"tokens are unknown to .* \(\[UNK\]\)"):
            embed(text)
