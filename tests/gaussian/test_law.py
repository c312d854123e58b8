"""The on-demand matrix has exactly the law of a dense one, also when queries depend on answers.

Every test draws the same functionals of dense and of on-demand matrices, fixed seeds, and compares
them by Kolmogorov-Smirnov tests. A test's false-alarm rate over fresh seeds is 1e-3 in all, split
over its statistics (Bonferroni).
"""

import math

import jaxtyping
import pytest
import torch
from scipy import stats

from wordsens.gaussian import DenseGaussian, OnDemandGaussian
from wordsens.seeds import generator

FALSE_ALARMS = 1e-3
DRAWS = 200
ROWS, WORDS, D = 6, 3, 2
COLUMNS = WORDS * D
DEVIATION = 0.7


def adaptive_run(V):
    """Queries that depend on answers, of every kind, in an order that forces each rule: then the
    whole matrix."""
    X = torch.linspace(-1, 1, COLUMNS, dtype=torch.float64)
    base = V.multiply(X)
    active = (base > 0).double()
    gradient = V.multiply_block_transposed(active * base + 1, D, 2 * D)
    moved = V.multiply_block(gradient / gradient.norm(), D)
    features = torch.relu(base + moved)
    back = V.multiply_transposed(features)
    again = V.multiply(back / back.norm() + 0.3 * X)
    V.multiply(torch.stack([X.roll(1) * again[0], X]))
    straddling = V.multiply_block(again[:3] / again[:3].norm(), 1)
    direction = X
    for _ in range(3):
        forward = V.multiply(direction / direction.norm())
        direction = V.multiply_transposed(forward / forward.norm())
    whole = V.multiply(torch.eye(COLUMNS, dtype=torch.float64)).T
    return whole, torch.stack(
        [moved.norm(), again.norm(), straddling[0], forward.norm(), direction.norm()]
    )


def functionals(V):
    """Numbers that name many ways in which the law of the matrix and of its answers could be
    wrong."""
    whole, answers = adaptive_run(V)
    spectrum = torch.linalg.svdvals(whole)
    moments = [
        whole.square().sum(),
        whole[0, 0],
        whole[2, 3],
        whole[1, 4] * whole[5, 0],
        whole[3, 1] * whole[4, 1],
    ]
    return torch.cat([answers, torch.stack(moments), spectrum[[0, -1]]])


def draws(kind, count=DRAWS, **options):
    matrices = (
        kind(
            ROWS, COLUMNS, standard_deviation=DEVIATION, seed=seed, purpose=kind.__name__, **options
        )
        for seed in range(count)
    )
    return torch.stack([functionals(V) for V in matrices])


def smallest_level(first, second):
    """The smallest p-value over the statistics, times their number."""
    levels = [
        stats.ks_2samp(a, b).pvalue for a, b in zip(first.T.numpy(), second.T.numpy(), strict=True)
    ]
    return min(levels) * len(levels)


@pytest.fixture(autouse=True)
def unchecked_shapes(monkeypatch):
    """Thousands of tiny products take a fifth of the time without."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def dense_draws():
    return draws(DenseGaussian)


def test_adaptive_answers_have_the_law_of_a_dense_matrix(dense_draws):
    assert smallest_level(dense_draws, draws(OnDemandGaussian)) > FALSE_ALARMS


@pytest.mark.slow
def test_the_reconstructed_entries_are_independent_standard_gaussians():
    count = 300
    matrices = []
    for seed in range(count):
        V = OnDemandGaussian(
            ROWS, COLUMNS, standard_deviation=DEVIATION, seed=seed, purpose="entries"
        )
        matrices.append(adaptive_run(V)[0].flatten() / DEVIATION)
    entries = torch.stack(matrices)
    assert stats.kstest(entries.flatten().numpy(), "norm").pvalue > FALSE_ALARMS / 3
    assert (
        stats.kstest(entries.square().sum(dim=1).numpy(), "chi2", args=(entries.shape[1],)).pvalue
        > FALSE_ALARMS / 3
    )
    # An off-diagonal entry of the sample covariance is close to N(0, 1 / count): a union bound over
    # all pairs.
    size = entries.shape[1]
    covariance = (entries.T @ entries / count - torch.eye(size)).fill_diagonal_(0).abs().max()
    pairs = size * (size - 1) / 2
    assert float(covariance) * math.sqrt(count) < stats.norm.isf(FALSE_ALARMS / 3 / pairs / 2) * 1.1


@pytest.mark.slow
def test_a_fork_with_a_seed_draws_its_future_from_the_conditional_law(dense_draws):
    def forked(seed):
        V = OnDemandGaussian(
            ROWS, COLUMNS, standard_deviation=DEVIATION, seed=seed, purpose="forked"
        )
        V.multiply(torch.linspace(-1, 1, COLUMNS, dtype=torch.float64))
        V.multiply_block(torch.ones(D, dtype=torch.float64), 0)
        V.multiply_transposed(torch.ones(ROWS, dtype=torch.float64))
        return functionals(V.fork(seed=seed))

    assert (
        smallest_level(dense_draws, torch.stack([forked(seed) for seed in range(DRAWS)]))
        > FALSE_ALARMS
    )


def test_single_precision_has_the_same_law(dense_draws):
    def run(seed):
        V = OnDemandGaussian(
            ROWS,
            COLUMNS,
            standard_deviation=DEVIATION,
            seed=seed,
            purpose="single",
            dtype=torch.float32,
        )
        q = torch.randn(3, COLUMNS, generator=generator(seed, "queries"))
        answer = V.multiply(q)
        u = answer[0].tanh()
        inside = V.multiply_block_transposed(u, 0, COLUMNS)
        assert torch.allclose(answer @ u, q @ inside, atol=1e-4)
        return torch.linalg.svdvals(V.multiply(torch.eye(COLUMNS)))[0].double()

    single = torch.stack([run(seed) for seed in range(DRAWS)])
    assert stats.ks_2samp(single.numpy(), dense_draws[:, -2].numpy()).pvalue > FALSE_ALARMS
