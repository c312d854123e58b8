"""The comparison layer by layer: on states that are set by hand, and on a tiny transformer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words
from wordsens.evaluation.layers import layer_rows
from wordsens.models.load import as_model
from wordsens.text.pairs import PACKAGE, read_pairs

ROWS = [
    ("negation", "the film was good", "the film was not good", False),
    ("role", "good film not bad", "bad film not good", False),
    ("same", "the film was very long", "very long film", True),
    ("synonym", "very good film", "very good film and", True),
]
# As if they were the package's, whose synonyms have columns of their own.
PAIRS = [replace(pair, where=PACKAGE) for pair in read_pairs(ROWS)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny BERT as a model, with mean pooling."""
    from tests.maps.tiny_models import save_tiny

    folder = tmp_path_factory.mktemp("tiny")
    save_tiny(folder)
    return folder


def test_every_number_is_that_of_the_models_own_hidden_states(tiny):
    """Against transformers alone: pooled vectors, and rows one by one."""
    from transformers import AutoModel, AutoTokenizer

    found = layer_rows(as_model(str(tiny), pool="mean"), PAIRS)
    tokenizer, model = AutoTokenizer.from_pretrained(tiny), AutoModel.from_pretrained(tiny).eval()
    states = {}
    for pair in PAIRS:
        for text in (pair.first, pair.second):
            with torch.no_grad():
                hidden = model(
                    **tokenizer(text, return_tensors="pt"), output_hidden_states=True
                ).hidden_states
            states[text] = [layer[0].double().numpy() for layer in hidden]
    assert sorted({row.layer for row in found}) == [0, 1, 2, 3]

    def pooled(text, layer):
        vector = states[text][layer].mean(axis=0)
        return vector / np.linalg.norm(vector)

    for row in found:
        pair = next(pair for pair in PAIRS if pair.kind == row.kind)
        one, two = (states[text][row.layer] for text in (pair.first, pair.second))
        cosines = np.array(
            [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in two] for a in one]
        )
        assert row.rows == pytest.approx(
            1 - min(cosines.max(axis=0).min(), cosines.max(axis=1).min()), abs=1e-5
        )
        apart = {
            each.kind: 1 - pooled(each.first, row.layer) @ pooled(each.second, row.layer)
            for each in PAIRS
        }
        assert row.pooled == pytest.approx(apart[row.kind], abs=1e-5)
        assert row.auc == (apart[row.kind] > apart["same"])
        assert row.auc_synonym == (apart[row.kind] > apart["synonym"])
        assert row.kept == pytest.approx(row.pooled / row.rows)


def test_a_black_box_has_no_layers():
    with pytest.raises(ws.InputError, match="layers"):
        layer_rows(as_model(bag_of_words), PAIRS)
