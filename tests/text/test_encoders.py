"""Encoders: what they load, what they refuse, and that layer k is hidden_states[k]."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from wordsens.errors import InputError
from wordsens.models.embedding import load_encoder
from wordsens.models.model_files import model_digest
from wordsens.models.pretrained import load_text_model
from wordsens.text.hub import HubAnswer

SENTENCE = "the film was very long and not good"


def reference(folder, ids, layer):
    """hidden_states[layer] of the model by itself, the plain way."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModel.from_pretrained(folder).eval()
    logging.enable_progress_bar()
    with torch.no_grad():
        return model(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]


@pytest.fixture
def folder(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_gpt2"], indirect=True)
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_layer_k_is_hidden_state_k(folder, layer):
    encoder = load_encoder(str(folder))
    ids = encoder.tokenize(SENTENCE).ids
    (rows,) = encoder.rows([SENTENCE], layer)
    assert rows.dtype == torch.float32
    torch.testing.assert_close(rows, reference(folder, ids, layer), rtol=0, atol=1e-6)


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_gpt2"], indirect=True)
def test_a_batch_of_unequal_lengths_gives_what_single_texts_give(folder):
    encoder = load_encoder(str(folder))
    texts = [SENTENCE, "good", "the film was bad"]
    for layer in range(encoder.layers + 1):
        together = encoder.rows(texts, layer)
        for text, rows in zip(texts, together, strict=True):
            (alone,) = encoder.rows([text], layer)
            torch.testing.assert_close(rows, alone, rtol=0, atol=1e-5)


def test_positions_behind_a_padding_number_shorten_the_context(tiny_bert, tmp_path):
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    config = RobertaConfig(
        vocab_size=16,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=10,
        pad_token_id=1,
    )
    RobertaModel(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    encoder = load_text_model(str(tmp_path))
    assert encoder.context == 8
    assert encoder.hidden_states(torch.tensor([[4] * 8]), 1).shape == (1, 8, 8)


def test_minilm_tokenizer_does_not_truncate():
    # Its tokenizer.json asks for a truncation to 128 tokens, which must not happen in silence.
    assert load_encoder().tokenize("good " * 700).words == 700


def without_weights(folder, content):
    (folder / "model.safetensors").unlink()


def with_a_hole(folder, content):
    del content["encoder.layer.1.output.dense.bias"]
    save_file(content, folder / "model.safetensors", metadata={"format": "pt"})


def cut_off(folder, content):
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])


def with_code(folder, content):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "code.C", "AutoModel": "code.C"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text("raise SystemExit('the code was run')")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_weights, "it cannot be loaded: "),
        (with_a_hole, "1 tensors are missing, the first is 'encoder.layer.1.output.dense.bias'"),
        (cut_off, "it cannot be loaded"),
        (with_code, "it cannot be loaded"),
    ],
)
def test_a_folder_whose_model_cannot_be_loaded(tiny_bert, tmp_path, damage, message):
    """Weights that are no safetensors, incomplete or damaged; code that comes with a model is not
    run."""
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    damage(tmp_path, load_file(tmp_path / "model.safetensors"))
    with pytest.raises(InputError) as caught:
        load_text_model(str(tmp_path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("answer", [HubAnswer.MISSING, HubAnswer.UNREACHABLE])
def test_a_name_that_the_hub_does_not_give(answer, monkeypatch):
    monkeypatch.setattr("wordsens.models.model_files.ask_hub", lambda name, kind: answer)
    with pytest.raises(InputError, match=f"it is not on this machine, and {answer.value}"):
        load_text_model("no-such-owner/no-such-model")


@pytest.fixture
def model_folder(tmp_path):
    """A model_folder with the files of a model, as far as a digest goes."""
    files = {
        "config.json": '{"a": 1}',
        "model.safetensors": "weights",
        "tokenizer.json": '{"a": 1}',
        "vocab.txt": "a",
        "modules.json": json.dumps(
            [{"path": "1_Pooling", "type": "Pooling"}, {"path": "", "type": "Transformer"}]
        ),
        "1_Pooling/config.json": '{"a": 1}',
        "README.md": "read me",
        "other/notes.json": "{}",
    }
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "other").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return tmp_path


DECIDING = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "vocab.txt",
    "modules.json",
    "1_Pooling/config.json",
)


@pytest.mark.parametrize("name", DECIDING)
def test_every_deciding_file_counts(model_folder, name):
    before = model_digest(str(model_folder))
    # Other bytes of the same number, and the old time of change put back.
    seen, content = (model_folder / name).stat(), (model_folder / name).read_bytes()
    changed = (
        content.replace(b"Pooling", b"POOLING") if name == "modules.json" else content.swapcase()
    )
    (model_folder / name).write_bytes(changed.replace(b"1_POOLING", b"1_Pooling"))
    assert (model_folder / name).stat().st_size == seen.st_size
    os.utime(model_folder / name, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert model_digest(str(model_folder)) != before


def test_pickled_weights_of_a_module_count(model_folder):
    """sentence-transformers reads those of a dense layer behind the pooling."""
    before = model_digest(str(model_folder))
    (model_folder / "1_Pooling" / "pytorch_model.bin").write_text("pickled")
    assert model_digest(str(model_folder)) != before


def test_files_that_decide_nothing_and_the_place_do_not_count(model_folder, tmp_path_factory):
    before = model_digest(str(model_folder))
    (model_folder / "README.md").write_text("other")
    (model_folder / "pytorch_model.bin").write_text("pickled")
    assert model_digest(str(model_folder)) == before
    moved = tmp_path_factory.mktemp("elsewhere") / "model"
    model_folder.rename(moved)
    assert model_digest(str(moved)) == before
