"""`tune` on a tiny transformer with random weights, by sentence-transformers' own trainer."""

import json
import random
import shutil
import stat

import pytest
import torch

import wordsens as ws
from tests.models.zoo import zoo_model
from wordsens.cli import main
from wordsens.training import Tuned, TunePlan, tune
from wordsens.training import tune as tune_module
from wordsens.training.triples import make_triples, reword, sentences_of

sentence_transformers = pytest.importorskip("sentence_transformers")
pytest.importorskip("accelerate")

ANIMALS = ("cat", "dog", "horse", "goat", "hen", "pig", "owl", "fox", "hare", "bee")
PLACES = ("barn", "yard", "house", "field")
PAIRS = [
    pair
    for animal in ANIMALS
    for place in PLACES
    for text in (f"The {animal} is in the {place} today.",)
    for pair in (
        ("negation", text, f"The {animal} is not in the {place} today.", False),
        ("order", text, f"Today the {animal} is in the {place}.", True),
    )
]
TEXTS = [f"The {animal} was in the {place} before noon. It can sleep there." for animal in ANIMALS for place in PLACES]
PLAN = TunePlan(steps=24, batch=8, rate=3e-3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a SentenceTransformer of two layers and width 32."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer, network = zoo_model("bert")
    tokenizer.save_pretrained(folder / "plain")
    network.save_pretrained(folder / "plain")
    modules = sentence_transformers.sentence_transformer.modules
    transformer = modules.Transformer(str(folder / "plain"))
    pooling = modules.Pooling(32)
    sentence_transformers.SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder / "model"))
    return folder / "model"


def load(folder):
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def tuned(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "tuned"
    shares = []
    result = tune(model, out, PAIRS, TEXTS, plan=PLAN, progress=lambda now, share: shares.append((now, share)))
    return result, out, shares


def test_tuning_separates_opposites_that_took_no_part(tuned):
    result, _, _ = tuned
    before, after = result.before.check.kinds["negation"], result.after.check.kinds["negation"]
    assert after.auc > before.auc + 0.1
    assert isinstance(result, Tuned)
