"""RF and DRF have the same law with dense and with on-demand matrices: sensitivity, feature norms,
inner products.

Two-sample Kolmogorov-Smirnov tests over 100 draws each, fixed seeds. A test's false-alarm rate over
fresh seeds is 1e-3 in all (Bonferroni over its five statistics). With the conditioning term dropped
the same tests fail at once.
"""

from functools import cache

import jaxtyping
import pytest
import torch
from scipy import stats

import wordsens as ws
from wordsens.maps import dense_change
from wordsens.maps.dense_change import OneLayerChange
from wordsens.maps.mapping import perturbed_texts
from wordsens.search import krylov
from wordsens.search.plan import Stages
from wordsens.text.synthetic import gaussian_text

FALSE_ALARMS = 1e-3
DRAWS = 100
N, D, WIDTH, WORD = 3, 16, 72, 1
DEPTHS = [1, 2]
X, Y = gaussian_text(N, D, seed=0).rows, gaussian_text(N, D, seed=1).rows


@pytest.fixture(autouse=True)
def short_searches(monkeypatch):
    """The same few steps for both kinds of matrices: equal laws of the matrices then give equal
    laws of the values.

    Fewer than d products with V_i: a search that has asked for all of V_i finds the sup of whatever
    matrix that is, and any Gaussian block has the same. Shapes are not checked here: thousands of
    tiny products take a fifth of the time.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setattr(krylov, "LANCZOS_STEPS", 4)
    monkeypatch.setattr(dense_change, "_LANCZOS_STEPS", 4)
    # Small dense maps are searched more widely than those on demand.
    monkeypatch.setattr(dense_change, "_MOST_SMALL", 0)
    for name in ("stages", "_FRUGAL_STAGES"):
        one_layer = Stages(starts=2, steps=1, finalists=1, finish=1)
        monkeypatch.setattr(OneLayerChange, name, one_layer)
        monkeypatch.setattr(
            dense_change.DenseChange, name, Stages(starts=1, steps=1, finalists=1, finish=1)
        )


def draw(depth, gaussian, seed):
    """For one matrix: S; ‖phi‖ at the witness; phi(witness).phi(X); and, of texts chosen
    beforehand, ‖phi(X)‖ and phi(X).phi(Y)."""
    phi = ws.DeepRandomFeatures(N, D, depth, width=WIDTH, gaussian=gaussian, seed=seed)
    r = ws.word_sensitivity(phi, X, words=[WORD], certificate=False)
    witness = perturbed_texts(X, torch.tensor([[WORD]]), r.perturbations.unsqueeze(1))
    moved, plain, other = phi(torch.cat([witness, torch.stack([X, Y])]))
    return r.value, moved.norm(), moved @ plain, plain.norm(), plain @ other


def draws(depth, gaussian):
    offset = 0 if gaussian == "dense" else 10**6
    return torch.tensor(
        [draw(depth, gaussian, offset + seed) for seed in range(DRAWS)], dtype=torch.float64
    )


@cache
def dense_draws(depth):
    return draws(depth, "dense")


def levels(first, second):
    """The p-value of every statistic, times their number."""
    pairs = zip(first.T.numpy(), second.T.numpy(), strict=True)
    return [first.shape[1] * float(stats.ks_2samp(a, b).pvalue) for a, b in pairs]


@pytest.mark.parametrize("depth", DEPTHS)
def test_dense_and_on_demand_maps_have_one_law(depth):
    assert min(levels(dense_draws(depth), draws(depth, "lazy"))) > FALSE_ALARMS


@pytest.mark.parametrize("gaussian", ["dense", "lazy"])
def test_random_features_are_deep_ones_of_depth_one(gaussian):
    """So the tests above are of both."""
    found = [
        ws.word_sensitivity(phi, X, words=[WORD])
        for phi in (
            ws.RandomFeatures(N, D, width=WIDTH, gaussian=gaussian, seed=3),
            ws.DeepRandomFeatures(N, D, 1, width=WIDTH, gaussian=gaussian, seed=3),
        )
    ]
    assert torch.equal(found[0].per_word, found[1].per_word)
    assert torch.equal(found[0].perturbations, found[1].perturbations)
