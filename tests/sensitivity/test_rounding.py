"""What is reported at tiny and huge radii: below the certified bound, and within its stated error
of long doubles."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.peers import numpy_maps
from wordsens.maps.attention.scores import SCORES

LONG = np.longdouble
RADII = (1e-12, 1e-6, 1.0, 1e4)
QUICK = {"search": ws.SearchPlan("quick", starts=4, steps=20)}


def attention(phi, X):
    return numpy_maps.attention(phi.weight.numpy().astype(LONG), phi.score.name, X)


def layers(phi, X):
    return numpy_maps.fully_connected(
        [V.numpy().astype(LONG) for V in phi.weights], phi.activation.name, X
    )


def cases():
    for score in sorted(SCORES):
        yield pytest.param(
            lambda s=score: ws.RandomAttentionFeatures(6, s, seed=1), attention, id=score
        )
    for depth, activation in ((1, "relu"), (1, "tanh"), (3, "relu"), (3, "tanh")):
        yield pytest.param(
            lambda a=activation, L=depth: ws.DeepRandomFeatures(
                8, 6, L, activation=a, gaussian="dense", seed=1
            ),
            layers,
            id=f"{activation}-{depth}",
        )


@pytest.mark.parametrize(("make", "exactly"), list(cases()))
def test_reported_values_are_within_their_error_and_below_the_bound(make, exactly, loose_bounds):
    assert np.finfo(LONG).eps < 1e-18, "this platform has no long double to compare with"
    phi, X = make(), ws.gaussian_text(8, 6, seed=3).rows
    base = exactly(phi, X.numpy().astype(LONG))
    for radius in RADII:
        r = ws.word_sensitivity(phi, X, words=[0, 5], radius=radius * math.sqrt(6), **QUICK)
        for at, word in enumerate(r.words.tolist()):
            moved = X.numpy().astype(LONG)
            moved[word] += r.perturbations[at].numpy().astype(LONG)
            change = np.sqrt(((exactly(phi, moved) - base) ** 2).sum() / (base**2).sum())
            value, rounding = float(r.per_word[at]), float(r.rounding[at])
            assert max(0.0, float(change) - 2 * rounding) <= value <= float(change)
            assert rounding <= 1e-12 * (1 + value)
            assert r.upper_per_word is None or value <= float(r.upper_per_word[at])
        assert r.upper is None or r.value <= r.upper


def test_the_value_that_exceeded_its_bound():
    """Linear attention at radius 1e-6: the bound is tight, the difference of features lost nine
    digits."""
    for seed in range(2):
        phi, X = (
            ws.RandomAttentionFeatures(6, "linear", seed=seed),
            ws.gaussian_text(8, 6, seed=seed),
        )
        for radius in (1e-9, 1e-6):
            r = ws.word_sensitivity(phi, X, radius=radius)
            assert bool((r.per_word <= r.upper_per_word).all())
            assert bool((r.rounding > 0).all())


def test_a_value_at_rounding_level_has_not_converged():
    phi = ws.RandomAttentionFeatures(6, seed=1, dtype=torch.float32)
    X = ws.gaussian_text(8, 6, seed=3)
    r = ws.word_sensitivity(phi, X, radius=1e-6)
    assert not bool(r.converged.any())
    assert bool(ws.word_sensitivity(phi, X, radius=1.0).converged.any())


@pytest.mark.parametrize("outside", [torch.nan, torch.inf])
def test_a_map_that_is_a_number_in_the_balls_alone_is_measured(outside):
    """Neighbours of a witness on the sphere are taken in the ball."""
    X = ws.gaussian_text(4, 3, seed=0).rows

    def phi(texts):
        squared = (texts - X).square().sum(dim=-1)
        return 1 + torch.where(squared <= 1, squared, outside)

    r = ws.word_sensitivity(phi, X, radius=1.0)
    assert r.per_word.tolist() == pytest.approx([0.5] * 4, rel=1e-6)
    assert bool(r.converged.all())
