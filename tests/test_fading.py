"""How a changed word's effect fades with the length of the passage."""

import math

import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.fading import PairDistance, fading, pair_distances
from wordsens.text.shipped_data import MinimalPair

PAIRS = [MinimalPair("n-1", "negation", "the film was good", "the film not good")]
FILLER = "very long and short and bad and the film was long and bad very short and not good the the"


def phi_of(**options):
    return ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", **options)


def test_distances_are_the_models_own_and_stop_at_the_context():
    told = []
    found = pair_distances(phi_of(pool="mean"), PAIRS, filler=FILLER, progress=lambda *done: told.append(done))
    assert told == [(1, 1)]
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


def test_a_power_law_is_found_again():
    made = [
        PairDistance(pair, kind, multiple, 12 * multiple, scale * (12 * multiple) ** slope)
        for kind, slope in (("negation", -1.5), ("synonym", 0.0))
        for pair, scale in (("a", 0.5), ("b", 1.5))
        for multiple in (1, 2, 4, 8)
    ]
    negation, synonym = fading(made, threshold=0.001)
    assert (negation.kind, synonym.kind) == ("negation", "synonym")
    assert negation.exponent == pytest.approx(-1.5)
    assert negation.constant == pytest.approx(1.0)
    assert negation.length == math.ceil(0.001 ** (1 / -1.5))
    assert synonym.length is None


def test_the_same_pairs_are_averaged_at_every_length():
    made = [PairDistance("short", "role", 1, 10, 0.9)]
    made += [PairDistance("long", "role", multiple, 10 * multiple, 0.1 / multiple) for multiple in (1, 2)]
    (fit,) = fading(made, threshold=0.01)
    assert fit.means == {1: 0.1, 2: 0.05}


def test_an_effect_that_is_lost_from_the_beginning_has_no_length():
    made = [PairDistance("a", "role", multiple, 10 * multiple, 0.01 / multiple) for multiple in (1, 2, 4)]
    (fit,) = fading(made, threshold=0.05)
    assert fit.length is None


def test_a_map_of_every_row_is_refused():
    with pytest.raises(ws.InputError, match="bert layer 3 does not give one vector a text; choose a pool"):
        pair_distances(phi_of(), PAIRS)
    with pytest.raises(ws.InputError, match=r"`threshold` \(=0.0\) must be a positive finite number"):
        fading([], threshold=0.0)
