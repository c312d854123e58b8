"""Fixtures: a tiny encoder with MiniLM's tokenizer, and a short plan."""

import pytest
import torch

import wordsens as ws
from wordsens.text.pretrained import minilm_folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a BERT with 2 layers and 32 coordinates that reads English."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=512, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def short():
    """A function that gives a plan of a second or two; its keyword arguments take the place of its settings."""

    def plan(**changes):
        usual = {"adapter": "layers", "depth": 1, "steps": 6, "made": 30, "batch": 8, "real": 4, "plain": 6}
        usual |= {"kept": 40, "rate": 3e-3}
        return ws.training.TunePlan(**{**usual, **changes})

    return plan


@pytest.fixture(scope="session")
def pairs():
    """Short pairs of three domains and three kinds, and paraphrases."""
    kinds = ("negation", "antonym", "entity", "paraphrase")
    short = [pair for pair in ws.read_pairs() if pair.length == "question" and pair.kind in kinds]
    domains = ("support", "everyday", "finance")
    return [
        pair
        for domain in domains
        for kind in kinds
        for pair in [one for one in short if one.kind == kind and one.columns["domain"] == domain][:5]
    ]


@pytest.fixture(scope="session")
def texts():
    """A few reviews."""
    return [document.text for document in ws.shipped_reviews()[:12]]
