"""Features that are tiny beside the text: units of gelu far in their tail."""

import numpy as np
import torch
from benchmarks.attack.problems import problem

import wordsens as ws


def test_features_in_the_tail_are_measured_and_bounded():
    """Against the definition in whole numbers; before, no bound was known and values were 6e-6 too high."""
    case = problem(301000178)
    assert case.exact.norm < 1e-14 * np.linalg.norm(case.X)
    words = [0, 4]
    found = ws.word_sensitivity(case.phi, torch.from_numpy(case.X), words, case.radius, search="quick")
    for at, word in enumerate(words):
        true = case.exact.value(word, found.perturbations[at].numpy())
        value, rounding = float(found.per_word[at]), float(found.rounding[at])
        assert true - 4 * rounding <= value <= true
    assert found.upper_per_word is not None
    assert bool((found.upper_per_word >= found.per_word).all())
