"""captum's sensitivity_max samples at random: an independent lower bound that a search must reach.

captum keeps the largest relative change of an "explanation" over random perturbations. With phi as
the explanation and perturbations drawn from the ball of one word, that is a lower bound of the
sensitivity to this word.
"""

import math

import pytest
import torch

import wordsens as ws

captum_metrics = pytest.importorskip("captum.metrics", reason="captum is a benchmark dependency")

N, D = 6, 8


def features_for(phi):
    """phi as captum calls it: a text in a tuple asks for its features in one; perturbed texts come
    as they are."""

    def mapped(texts):
        if isinstance(texts, tuple):
            return (phi(texts[0]).flatten(start_dim=1),)
        return phi(texts).flatten(start_dim=1)

    return mapped


def sampled_sensitivity(phi, X, word, samples, seed):
    """captum's maximum over `samples` points of the ball around word `word`, half of them on its
    sphere."""
    stream = torch.Generator().manual_seed(seed)

    def perturb(inputs):
        drawn = torch.randn(len(inputs), D, generator=stream, dtype=torch.float64)
        lengths = torch.rand(len(inputs), 1, generator=stream, dtype=torch.float64).mul_(2).clamp_(
            max=1
        ) ** (1 / D)
        moved = inputs.clone()
        moved[:, word] += math.sqrt(D) * lengths * drawn / drawn.norm(dim=1, keepdim=True)
        return moved

    found = captum_metrics.sensitivity_max(
        features_for(phi),
        X.unsqueeze(0),
        perturb_func=lambda texts, _: perturb(texts),
        n_perturb_samples=samples,
    )
    return float(found)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ws.RandomFeatures(N, D, gaussian="dense", seed=0), id="rf"),
        pytest.param(lambda: ws.RandomAttentionFeatures(D, seed=0), id="raf"),
        pytest.param(lambda: ws.RandomAttentionFeatures(D, score="relu", seed=0), id="relu-raf"),
    ],
)
def test_the_search_is_at_least_captums_sampling(make):
    phi, X = make(), ws.gaussian_text(N, D, seed=1).rows
    r = ws.word_sensitivity(phi, X, search="quick", certificate=False)
    share = -(-r.evaluations // N)
    for word in range(N):
        sampled = sampled_sensitivity(phi, X, word, share, seed=word)
        assert 0 < sampled <= float(r.per_word[word])


def test_captum_computes_the_same_ratio():
    """At one perturbation the two agree, so they measure the same thing."""
    phi, X = ws.RandomAttentionFeatures(D, seed=2), ws.gaussian_text(N, D, seed=2).rows
    r = ws.word_sensitivity(phi, X, words=[3], search=ws.SearchPlan("quick", starts=1, steps=3))

    def perturb(inputs):
        moved = inputs.clone()
        moved[:, 3] += r.perturbations[0]
        return moved

    found = captum_metrics.sensitivity_max(
        features_for(phi),
        X.unsqueeze(0),
        perturb_func=lambda texts, _: perturb(texts),
        n_perturb_samples=1,
    )
    assert float(found) == pytest.approx(r.value, rel=1e-6)
