"""How a changed word's effect decays with the length of the passage."""

import math

import numpy as np
import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.audit.decay import RESAMPLES, PairDistance, decay, pair_distances
from wordsens.text.shipped_data import MinimalPair

PAIRS = [MinimalPair("n-1", "negation", "the film was good", "the film not good")]
FILLER = "very long and short and bad and the film was long and bad very short and not good the the"


def phi_of(**options):
    return ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", **options)


def test_distances_are_the_models_own_and_stop_at_the_context():
    told = []
    found = pair_distances(phi_of(pool="mean"), PAIRS, filler=FILLER, progress=lambda *done: told.append(done))
    assert len(told) == 1
    assert told[0][0] == told[0][1] > 6 * 4, "characters, three lengths of a pair"
    # 4 words and two special tokens; 24 tokens are the context, so 8 times the sentence does not fit.
    assert [(one.multiple, one.tokens) for one in found] == [(1, 6), (2, 10), (4, 18)]
    words = FILLER.split()
    for one in found:
        around = (one.multiple - 1) * 4
        before, after = words[: around // 2], words[around // 2 : around]
        states = []
        for sentence in (PAIRS[0].first, PAIRS[0].second):
            ids = tokenizer()(" ".join([*before, sentence, *after]))["input_ids"]
            states.append(model_of("bert")(torch.tensor([ids])).last_hidden_state.detach().mean(dim=1)[0].double())
        assert one.distance == pytest.approx(1 - float(torch.cosine_similarity(*states, dim=0)), abs=1e-6)


def along(slope, *, kind="negation", pairs=2, multiples=(1, 2, 4, 8), scatter=0.0, seed=0):
    """Distances of pairs that fall as tokens^slope, each pair with a factor of its own."""
    stream = np.random.default_rng(seed)
    return [
        PairDistance(f"p{pair}", kind, multiple, 12 * multiple, float(factor * (12 * multiple) ** slope))
        for pair, factor in enumerate(np.exp(scatter * stream.standard_normal(pairs)))
        for multiple in multiples
    ]


def test_a_power_law_is_found_again():
    negation, synonym = decay(along(-1.5) + along(0.0, kind="synonym"), threshold=0.001)
    assert (negation.kind, synonym.kind) == ("negation", "synonym")
    assert negation.fit.exponent == pytest.approx(-1.5)
    assert negation.fit.constant == pytest.approx(1.0)
    assert negation.length == 100
    assert (negation.interval, negation.decisive, negation.longest) == (None, False, 96)
    assert synonym.length is None


def test_the_interval_of_the_length_is_the_bootstrap_by_pair():
    made = along(-1.0, pairs=12, scatter=1.0)
    (found,) = decay(made, threshold=0.01)
    factors = np.array([one.distance * one.tokens for one in made if one.multiple == 1])
    # Every sample of these pairs follows (mean factor) / tokens exactly: the length is mean factor / threshold.
    stream = np.random.default_rng(5)
    lengths = np.sort(factors[stream.integers(12, size=(40_000, 12))].mean(axis=1) / 0.01)
    low, high = found.interval
    assert found.length == math.ceil(factors.mean() / 0.01)
    # The ends of 2,000 samples against those of 40,000: the 1.5 % and the 3.5 % point enclose the former's 2.5 % point
    # (six standard errors of .0035, less one).
    assert lengths[600] <= low + 1 and low <= lengths[1400]
    assert lengths[-1400] <= high and high - 1 <= lengths[-600]
    assert decay(made, threshold=0.01) == [found]
    assert RESAMPLES == 2000
