"""Pairs and texts that a tiny model can learn, and that model."""

import re

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from tests.models.zoo import BERT, SIZES, fast, framed

pytest.importorskip("accelerate")
SentenceTransformer = pytest.importorskip("sentence_transformers").SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer  # noqa: E402

ANIMALS = ("cat", "dog", "horse", "goat", "hen", "pig", "owl", "fox", "hare", "bee")
PLACES = ("barn", "yard", "house", "field")
PAIRS = [
    pair
    for animal in ANIMALS
    for place in PLACES
    for text in (f"The {animal} is in the {place} today.",)
    for pair in (
        ("negation", text, f"The {animal} is not in the {place} today.", False),
        ("wording", text, f"Inside that {place} one sees a {animal} now.", True),
    )
]
TEXTS = [
    f"The {animal} was in the {place} before noon. It can sleep there."
    for animal in ANIMALS
    for place in PLACES
]


def tiny_model(folder):
    """Save a SentenceTransformer of two layers and width 32 in the folder, and return it.

    Its vocabulary is the words of these texts: a tokenizer that is trained breaks ties by the order
    of a hash table, which is another in every process, and a tiny model is tuned to another AUC
    with every vocabulary.
    """
    words = sorted(
        {
            word
            for text in [*(text for pair in PAIRS for text in pair[1:3]), *TEXTS]
            for word in re.findall(r"\w+|[^\w\s]", text.lower())
        }
    )
    vocabulary = {token: number for number, token in enumerate([*BERT.values(), *words])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = (
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    )
    made.post_processor = framed(made, "[CLS] $A [SEP]")
    plain = folder.with_name(f"{folder.name}-plain")
    fast(made, **BERT, model_max_length=64).save_pretrained(plain)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(vocabulary), max_position_embeddings=64, **SIZES
        )
        transformers.BertModel(config).save_pretrained(plain)
    modules = [Transformer(str(plain)), Pooling(SIZES["hidden_size"])]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder
