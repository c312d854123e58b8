"""Shapes are checked in every call."""

import jaxtyping
import pytest
import torch

from wordsens.maps.mapping import perturbed_texts


def test_a_wrong_shape_is_refused_however_often_a_function_was_called():
    rows, words, delta = torch.zeros(3, 2), torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, 2)
    for _ in range(20):
        assert perturbed_texts(rows, words, delta).shape == (1, 3, 2)
        with pytest.raises(jaxtyping.TypeCheckError, match="rows"):
            perturbed_texts(rows[0], words, delta)
