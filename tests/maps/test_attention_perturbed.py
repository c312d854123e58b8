"""The features of perturbed texts from what they share with X: the same as mapping each text."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.maps.attention.scores import SCORES
from wordsens.maps.base import FeatureMap


def gaussian(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    n=st.integers(3, 8),
    d=st.integers(1, 6),
    moved=st.integers(1, 3),
    heads=st.integers(1, 2),
    score=st.sampled_from(sorted(SCORES)),
    temperature=st.sampled_from([1.0, 0.05, 0.002]),
    seed=st.integers(0, 10**6),
)
def test_equals_the_map(n, d, moved, heads, score, temperature, seed):
    phi = ws.RandomAttentionFeatures(d, score=score, heads=heads, temperature=temperature, seed=seed)
    X = gaussian(n, d, seed=seed)
    words = torch.stack(
        [torch.randperm(n, generator=torch.Generator().manual_seed(seed + at))[:moved] for at in range(4)]
    )
    delta = gaussian(4, moved, d, seed=seed + 1)
    plain = torch.cat(list(FeatureMap.perturbed_features(phi, X, words, delta, at_once=2)))
    shared = torch.cat(list(phi.perturbed_features(X, words, delta, at_once=3)))
    # A score of several hundred is rounded by eps times itself, and so are the weights that follow from it.
    steep = float(phi.scores(X).abs().max()) + 100 / temperature
    torch.testing.assert_close(
        shared, plain, rtol=1e-15 * steep + 1e-12, atol=(1e-15 * steep + 1e-12) * float(plain.abs().max())
    )
