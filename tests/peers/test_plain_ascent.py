"""Every word's attained value is at least that of plain gradient ascent through the whole map."""

import pytest
import torch

import wordsens as ws
from benchmarks.plain import attention_features, plain_ascent


@pytest.mark.usefixtures("unchecked_types")
def test_no_word_falls_short_of_plain_ascent():
    n, d = 12, 32
    phi, X = ws.RandomAttentionFeatures(d, seed=0), ws.gaussian_text(n, d, seed=0).rows
    r = ws.word_sensitivity(phi, X, certificate=False)
    for word in range(n):
        value, _ = plain_ascent(phi.weight, X, word, steps=200, seed=word)
        assert float(r.per_word[word]) >= value * (1 - 1e-9)


def test_the_straightforward_map_is_the_same_map():
    phi, X = ws.RandomAttentionFeatures(6, seed=1), ws.gaussian_text(5, 6, seed=1).rows
    torch.testing.assert_close(attention_features(phi.weight, X), phi(X), rtol=1e-13, atol=1e-14)
