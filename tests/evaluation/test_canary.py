"""The canary: the same model, one that moved, and another."""

import numpy as np
import pytest
from tests.evaluation.stand_ins import bag_of_words

import wordsens as ws
from wordsens.evaluation.canary import Canary


def noisy(size):
    """The bag of words with a fixed disturbance of this share of every vector's length."""

    def encode(texts):
        vectors = bag_of_words(texts)
        shift = np.random.default_rng(0).standard_normal(vectors.shape[1])
        shift /= np.linalg.norm(shift)
        return vectors + size * np.linalg.norm(vectors, axis=1, keepdims=True) * shift

    return encode


@pytest.fixture
def saved(tmp_path):
    """The file of the bag of words' canary."""
    Canary.stamp(bag_of_words).save(tmp_path / "canary.json")
    return tmp_path / "canary.json"


@pytest.mark.parametrize(("size", "same"), [(0, True), (0.01, True), (0.05, False)])
def test_the_distance_is_the_disturbance(saved, size, same):
    moved = Canary.read(saved).compare(noisy(size))
    assert (moved.texts, moved.same) == (32, same)
    assert moved.moved == pytest.approx(size, abs=1e-7)
    assert moved.moved_most == pytest.approx(size, abs=1e-7)


def test_another_dimension_is_another_model(saved):
    moved = Canary.read(saved).compare(lambda texts: bag_of_words(texts)[:, :4000] + 1)
    assert (moved.same, moved.dimensions) == (False, (4096, 4000))
    assert "vectors of 4000 numbers, and gave 4096" in moved.answer


def test_a_rotation_leaves_the_neighbours_and_is_another_model(saved):
    moved = Canary.read(saved).compare(lambda texts: bag_of_words(texts)[:, ::-1])
    assert (moved.same, moved.neighbours) == (False, 0)


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": 1, "model": "m", "texts": ["a"], "vectors": []}', "no"])
def test_another_file_is_one_line(tmp_path, content):
    (tmp_path / "wrong.json").write_text(content)
    with pytest.raises(ws.InputError, match="is no canary"):
        Canary.read(tmp_path / "wrong.json")
