"""Tiny random models that are made here, so that no test needs the network."""

import pytest
import torch

WORDS = ("the", "film", "was", "good", "bad", "very", "long", "short", "and", "not")
CONTEXT = 12


def _tokenizer(special, template=None):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate((*special, *WORDS))}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=special[0]))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if template is not None:
        numbers = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
        inner.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=numbers
        )
    names = {"[UNK]": "unk_token", "[PAD]": "pad_token", "[CLS]": "cls_token", "[SEP]": "sep_token"}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        model_max_length=CONTEXT,
        **{names[token]: token for token in special if token in names},
    )


SIZES = {
    "bert": {
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": CONTEXT,
    },
    "gpt2": {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": CONTEXT,
        "bos_token_id": 0,
        "eos_token_id": 0,
    },
}


def _saved(folder, kind, tokenizer):
    """The folder, with a random model of that kind and its tokenizer."""
    from transformers import AutoConfig, AutoModel

    names = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.5,
    }
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(kind, **names, **SIZES[kind])).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The folder of a BERT with 3 layers, 16 coordinates and a context of 12 tokens."""
    tokenizer = _tokenizer(("[UNK]", "[PAD]", "[CLS]", "[SEP]"), "[CLS] $A [SEP]")
    return _saved(tmp_path_factory.mktemp("tiny-bert"), "bert", tokenizer)


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory):
    """The folder of a GPT-2 with 2 layers and 16 coordinates; it has no special tokens and no
    [PAD]."""
    return _saved(tmp_path_factory.mktemp("tiny-gpt2"), "gpt2", _tokenizer(("[UNK]",)))
