"""Shapes are checked in the first calls of every test."""

import jaxtyping
import pytest
import torch
from tests.first_calls import CHECKED_CALLS

from wordsens.maps.mapping import perturbed_texts


@pytest.mark.parametrize("again", range(2))
def test_a_wrong_shape_is_refused_until_a_function_was_called_often(again):
    rows, words, delta = torch.zeros(3, 2), torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, 2)
    with pytest.raises(jaxtyping.TypeCheckError, match="rows"):
        perturbed_texts(rows[0], words, delta)
    for _ in range(CHECKED_CALLS):
        assert perturbed_texts(rows, words, delta).shape == (1, 3, 2)
    assert perturbed_texts(rows[0], words, delta) is not None
