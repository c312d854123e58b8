"""load_encoder: MiniLM is read from its files as transformers reads it."""

import shutil

import pytest
import torch

from wordsens.errors import InputError
from wordsens.text import TransformerEncoder, embed, load_encoder
from wordsens.text.encoder import EncoderInput
from wordsens.text.load import MiniLM
from wordsens.text.pretrained import minilm_folder

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
    return load_encoder(), TransformerEncoder("minilm")


def test_minilm_has_the_facts_and_the_vocabulary_that_transformers_reads(encoders):
    ours, theirs = encoders
    assert not isinstance(ours, TransformerEncoder)
    for fact in ("name", "dimension", "layers", "context", "padding", "device"):
        assert getattr(ours, fact) == getattr(theirs, fact), fact
    assert list(ours.vocabulary().items()) == list(theirs.vocabulary().items())


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:20]))
def test_minilm_has_the_tokens_and_the_rows_of_transformers(encoders, text):
    ours, theirs = encoders
    tokens = ours.tokenize(text)
    assert tokens == theirs.tokenize(text)
    inputs = [EncoderInput(tokens.ids), EncoderInput((*tokens.ids[:3], 0), padding=1)]
    for layer in (0, 1, -1):
        rows, expected = (encoder.encode(inputs, layer=layer) for encoder in encoders)
        for of_ours, of_theirs in zip(rows, expected, strict=True):
            torch.testing.assert_close(of_ours, of_theirs, rtol=0, atol=1e-6)


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


def test_files_of_minilm_without_weights_are_refused(tmp_path, monkeypatch):
    shutil.copytree(
        minilm_folder(),
        tmp_path,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("*.safetensors"),
    )
    monkeypatch.setattr("wordsens.text.load.minilm_folder", lambda: tmp_path)
    with pytest.raises(InputError, match="no model 'minilm': it cannot be loaded on this machine"):
        MiniLM()
