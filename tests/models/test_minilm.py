"""load_encoder: MiniLM is read from its files as transformers reads it."""

import shutil
from types import SimpleNamespace

import pytest
import torch

from wordsens.errors import InputError
from wordsens.models.embedding import embed, load_encoder
from wordsens.models.minilm import MiniLM
from wordsens.models.model_files import minilm_folder
from wordsens.models.pretrained import load_text_model

TEXTS = [
    "I love her much",
    "Naïve, naive: Ångström, Straße and É, e.g. don't — “well-known” 3.14 %",
    "the film 好不好? 映画 영화",
    "good \N{PILE OF POO}\N{ZERO WIDTH JOINER}\N{FLEXED BICEPS} good \N{REGIONAL INDICATOR SYMBOL LETTER D}",  # noqa: E501
    "\ufefftabs\tand\nlines\r\nand \x00\x07 controls\x7f\u200bhere\u00ad\u2028there\ufffd",
    "good [MASK] [SEP]bad [CLS] [PAD] [UNK] [sep] ##ing",
    "good " * 300,
    "a" * 150 + " antidisestablishmentarianism good",
    "",
    " \t\n",
]


@pytest.fixture(scope="module")
def encoders():
    return load_encoder(), load_text_model("minilm", attention=None)


def test_minilm_has_the_facts_and_the_vocabulary_that_transformers_reads(encoders):
    ours, theirs = encoders
    assert isinstance(ours, MiniLM)
    for fact in ("name", "dimension", "layers", "context", "padding", "device"):
        assert getattr(ours, fact) == getattr(theirs, fact), fact


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:20]))
def test_minilm_has_the_tokens_and_the_rows_of_transformers(encoders, text):
    ours, theirs = encoders
    tokens = ours.tokenize(text)
    assert tokens == theirs.tokenize(text)
    inputs = [(tokens.ids, 0), ((*tokens.ids[:3], 0), 1)]
    for layer in (0, 1, 6):
        for ids, padding in inputs:
            rows, expected = (
                encoder.hidden_states(torch.tensor([ids]), layer, padding) for encoder in encoders
            )
            torch.testing.assert_close(rows, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    ["\N{PILE OF POO} " * 5, "half of a pair: \ud83d", "good " * 511],
    ids=lambda text: ascii(text[:20]),
)
def test_minilm_refuses_what_transformers_refuses(encoders, text):
    messages = []
    for encoder in encoders:
        with pytest.raises(InputError) as caught:
            embed(text, encoder)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_weights_of_minilm_that_are_not_those_published_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    shutil.copytree(minilm_folder(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    package = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    for content in (None, b"other weights"):
        if content is not None:
            (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(InputError, match="missing, or not those that were published"):
            MiniLM()
