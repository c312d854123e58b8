"""Fixtures: pairs and texts of `small`, an encoder wide enough to carry marks, and the same encoder counting."""

import pytest
import torch
from tests.training.adapter.small import pairs, texts

import wordsens as ws
from wordsens.text.pretrained import minilm_folder
from wordsens.training.adapter.split import sentences_of

__all__ = ["counting", "encoder", "pairs", "sentences", "texts"]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """The folder of a random BERT with 3 layers and 128 coordinates that reads English."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=3, num_attention_heads=2, intermediate_size=96,
        max_position_embeddings=512, initializer_range=0.1,
    )  # fmt: skip
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def sentences():
    """Of the package's reviews."""
    return sentences_of(document.text for document in ws.shipped_reviews())


@pytest.fixture(scope="session")
def counting(encoder, sentences):
    """The encoder as it counts turning words: tokenizer, model, the places of the count and of the one."""
    from wordsens.training.adapter.parity.build import ParityModel

    made = ParityModel(str(encoder), sentences, pooling=None, revision=None)
    return made._tokenizer, made._model, made._places
