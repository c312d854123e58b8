"""Longer texts: how far scores move where their weights' sum is small, and the own row bounded alone, cell by cell."""

import math
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_joint_bound import case, own_weights, squared_changes
from tests.certificates.test_joint_bound import perturbations as some_perturbations
from tests.certificates.test_small_radii import by_hand
from tests.certificates.test_small_sums import perturbations as against_keys

import wordsens as ws
from wordsens.certificates.attention import joint_bound as joint
from wordsens.certificates.attention.joint_cells import ALONE, Cell
from wordsens.certificates.attention.reached_moves import ReachedMoves

WORD = 2


def perturbations(rows: np.ndarray, matrix: np.ndarray, radius: float) -> np.ndarray:
    return np.concatenate([some_perturbations(rows, matrix, radius), against_keys(rows, matrix, radius)])


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_no_score_moves_farther_than_a_small_sum_allows(score: str) -> None:
    rows, matrix, radius, _, own = case(score, share=0.8, floor=joint.LEAST_SUM)
    delta = perturbations(rows, matrix, radius)
    sums = own_weights(rows, matrix, score, WORD, delta).sum(axis=1)
    moves = torch.from_numpy(delta / radius) @ own.kappa.T
    most = float(np.quantile(sums, 0.1))
    terms = own.within(0.5 * most, most, 0.0, 1.0)
    reached = ReachedMoves.of(own.kappa, terms.cells, most)
    inside = moves[torch.from_numpy(sums <= most)]
    assert len(inside) > 100
    assert bool((inside >= reached.ends[0]).all() and (inside <= reached.ends[1]).all())
    whole = own.kappa.norm(dim=1)
    assert float(((reached.ends[1] - reached.ends[0]) / (2 * whole)).amin()) < 0.9
    # From there again, and where a weight is known to be small as well.
    again = ReachedMoves.of(own.kappa, own.within(0.5 * most, most, 0, 1, moves=reached.ends).cells, most, reached)
    assert bool((inside >= again.ends[0]).all() and (inside <= again.ends[1]).all())
    assert bool((again.ends[1] - again.ends[0] <= reached.ends[1] - reached.ends[0]).all())


def test_how_far_scores_move_is_what_a_solver_finds() -> None:
    """Divided ReLU: the largest kappa . y where ‖y‖ <= 1 and weights e >= 0, e >= (score + kappa . y) / unit sum to
    at most `most`, by SLSQP."""
    *_, own = case("relu", share=0.8, floor=joint.LEAST_SUM)
    table, kappa = own.rows.table, own.kappa.numpy()
    n, d = kappa.shape
    tau, low = table.tau[0].numpy(), table.low[0].numpy()
    slopes = np.diff(low)[:, -1] / np.diff(tau)[:, -1]
    assert (slopes > 0).all()
    most = 0.4 * float(table.before.sum())
    found = ReachedMoves.of(own.kappa, own.within(0.5 * most, most, 0.0, 1.0).cells, most).ends.numpy()
    rules = [
        {"type": "ineq", "fun": lambda z: 1 - z[:d] @ z[:d]},
        {"type": "ineq", "fun": lambda z: most - z[d:].sum()},
        {"type": "ineq", "fun": lambda z: z[d:] - low[:, -1] - slopes * (kappa @ z[:d] - tau[:, -1])},
    ]
    for word in range(n):
        for side, end in ((1, found[1, word]), (-1, -found[0, word])):
            best = max(
                -solved.fun
                for seed in range(3)
                if (
                    solved := minimize(
                        lambda z, word=word, side=side: -side * kappa[word] @ z[:d],
                        np.concatenate([0.3 * np.random.default_rng(seed).standard_normal(d) / d**0.5, np.ones(n)]),
                        bounds=[(-1, 1)] * d + [(0, None)] * n,
                        constraints=rules,
                        options={"maxiter": 300},
                    )
                ).success
            )
            size = np.linalg.norm(kappa[word])
            assert best - 1e-6 * size <= end <= best + 0.03 * size


@pytest.mark.parametrize("score", ["softmax", "relu"])
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_own_row_alone_is_bounded_in_a_cell(score: str, share: float) -> None:
    rows, matrix, radius, others, own = case(score, share=share, floor=joint.LEAST_SUM)
    delta = perturbations(rows, matrix, radius)
    mine, _ = squared_changes(rows, matrix, score, WORD, delta, radius)
    sums = own_weights(rows, matrix, score, WORD, delta).sum(axis=1)
    with patch.object(joint, "_MANY_WORDS", 1):
        problem = joint._Rows.of(own, others, 1.0)
        tighter = 0
        for (least, most), cap in own.intervals()[::2]:
            inside = (sums >= least) & (sums <= most)
            if cap < 0:
                assert not inside.any()
                continue
            for low in (0.0, 0.5 * cap):
                cell = problem.solved(Cell((least, most), low, cap, 10.0, own.any_weights), None)
                assert cell.solved == ALONE
                left = inside & (np.sqrt(mine) >= low)
                if left.any():
                    assert cell.bound > 0
                    assert np.sqrt(mine[left]).max() <= cell.high * (1 + 1e-12)
                tighter += cell.high < 0.97 * cap or cell.bound == 0
    assert tighter >= 4


@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 6),
    d=st.integers(2, 8),
    share=st.floats(0.1, 0.89),
    score=st.sampled_from(["relu", "softmax", "sigmoid"]),
)
def test_no_perturbation_exceeds_a_bound_of_many_words(seed: int, n: int, d: int, share: float, score: str) -> None:
    """Few centres are spent: what is left must hold after any number."""
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    rows = gaussian_rows(n, d, seed)
    before = phi(rows)
    if not float(torch.linalg.vector_norm(before)) > 0:
        return
    radius = share * float(torch.linalg.vector_norm(rows)) / math.sqrt(n)
    matrix, plain = (phi.weight / math.sqrt(d)).numpy(), rows.numpy()
    with patch.object(joint, "_MANY_WORDS", 1), patch.object(joint, "_MOST_CENTRED", 6):
        bound = float(ws.certify(phi, rows, words=[1], radius=radius, effort="thorough")[0])
    delta = np.concatenate([perturbations(plain, matrix, radius), -plain @ matrix.T])
    delta *= np.minimum(1, radius / np.linalg.norm(delta, axis=1, keepdims=True).clip(1e-300))
    texts = np.repeat(plain[None], len(delta), axis=0)
    texts[:, 1] += delta
    changes = np.linalg.norm(by_hand(texts, matrix, score) - by_hand(plain, matrix, score), axis=(1, 2))
    assert changes.max() / float(torch.linalg.vector_norm(before)) <= bound * (1 + 1e-12)
