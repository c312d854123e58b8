"""Divided ReLU where the sum of the word's own weights comes near 0, or is 0: own row and others together."""

import math
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_joint_bound import own_weights, some_multipliers, squared_changes
from tests.certificates.test_own_weights import prepared
from tests.certificates.test_small_radii import by_hand

import wordsens as ws
from wordsens.certificates.attention import joint_bound as joint
from wordsens.certificates.attention.joint_dual import JointDual
from wordsens.certificates.attention.joint_terms import MovedOwnRow, OtherRows, joint_pairs
from wordsens.certificates.attention.own_weights import OwnRows
from wordsens.maps.attention.scores import Tabulated, offered

WORD = 1


def case(seed: int, n: int = 5, d: int = 8, share: float = 0.9, floor: float = joint.LEAST_SUM):
    """The rows, W over the scale, the radius, the other rows, the own one where Z is at least `floor`, its output's
    length, and whether Z may be less."""
    phi = ws.RandomAttentionFeatures(d, score="relu", seed=seed)
    rows, radius = gaussian_rows(n, d, seed), share * math.sqrt(d)
    text, errors, twist, unit = prepared(rows, phi)
    tabulated = offered(text.score, Tabulated)
    assert tabulated is not None
    reach = torch.tensor([radius / unit], dtype=torch.float64)
    problem = OwnRows(text, tabulated, errors, float(twist[0]), 0).problem(torch.tensor([WORD]), reach, floor=floor)
    assert problem is not None
    own = MovedOwnRow(problem.rows, problem.kappa[0], problem.apart[0] / float(reach), float(reach))
    others = OtherRows.of(text, WORD, float(reach))
    length = float(torch.linalg.vector_norm(text.outputs[WORD]))
    return rows.numpy(), (phi.weight / math.sqrt(d)).numpy(), radius, others, own, length, bool(problem.floored[0])


def perturbations(rows: np.ndarray, matrix: np.ndarray, radius: float, count: int = 4000) -> np.ndarray:
    """Against the keys that count, in random proportions, so that no score of the row is positive or but one."""
    stream = np.random.default_rng(0)
    proportions = stream.exponential(size=(count, len(rows))) ** 2
    delta = -proportions @ rows @ matrix.T + 0.3 * stream.standard_normal((count, rows.shape[1]))
    return delta * (radius * stream.uniform(0.6, 1, count) / np.linalg.norm(delta, axis=1))[:, None]


@pytest.mark.parametrize("seed", [3, 5, 7])
def test_any_multipliers_give_a_bound_where_the_weights_have_a_small_sum(seed: int) -> None:
    rows, matrix, radius, others, own, length, floored = case(seed)
    delta = perturbations(rows, matrix, radius)
    mine, rest = squared_changes(rows, matrix, "relu", WORD, delta, radius)
    sums = own_weights(rows, matrix, "relu", WORD, delta).sum(axis=1)
    there = sums <= joint.LEAST_SUM
    assert floored and there.sum() > 20 and (sums[there] == 0).any() and (sums[there] > 0).any()
    far = own.farthest(length)
    # The own row is at most as far as another word, or than the moved one; a bound for either holds for those y.
    away = np.linalg.norm(rows[WORD] - by_hand(rows, matrix, "relu")[WORD] + delta, axis=1) / radius
    assert (np.sqrt(mine[there]) <= np.maximum(far, away[there]) * (1 + 1e-12)).all()
    for itself, counted in ((False, np.sqrt(mine) <= far), (True, np.sqrt(mine) <= away)):
        terms = own.within(0.0, joint.LEAST_SUM, 0.0, far, own.any_weights, itself)
        assert terms.share == 0 and not terms.empty
        for at in range(5):
            by = some_multipliers(JointDual(joint_pairs(others, terms)), at)
            bound = joint.joint_lagrangian_bound(others, terms, by)
            assert math.isfinite(bound)
            assert bound >= (rest + mine)[there & counted].max() * (1 - 1e-12)


def test_what_is_bounded_of_the_moved_word_is_its_distance() -> None:
    """Bounded by the Lagrangian's best multipliers it is less than its length and the radius."""
    _, _, _, others, own, length, _ = case(3)
    terms = own.within(0.0, joint.LEAST_SUM, 0.0, own.farthest(length), own.any_weights, itself=True)
    dual = JointDual(joint_pairs(others, terms))
    by = dual.start(2.0)
    for temperature in (0.3, 0.03, 0.003):
        by = dual.centred(by, temperature).best
    apart = terms.caps[WORD] + 1
    rows_apart = joint.joint_lagrangian_bound(others, own.within(0.0, joint.LEAST_SUM, 0.0, 0.0), by)
    assert joint.joint_lagrangian_bound(others, terms, by) < 0.95 * (float(apart) ** 2 + rows_apart)


def largest_change(phi: ws.RandomAttentionFeatures, rows: torch.Tensor, delta: np.ndarray, radius: float) -> float:
    """By hand, relative to the features, of word 1 moved by some vectors, those that are too long shortened."""
    matrix, plain = (phi.weight / math.sqrt(rows.shape[1])).numpy(), rows.numpy()
    delta = delta * np.minimum(1, radius / np.linalg.norm(delta, axis=1, keepdims=True).clip(1e-300))
    texts = np.repeat(plain[None], len(delta), axis=0)
    texts[:, 1] += delta
    before = by_hand(plain, matrix, phi.score.name)
    changes = np.linalg.norm(by_hand(texts, matrix, phi.score.name) - before, axis=(1, 2))
    return float(changes.max() / np.linalg.norm(before))


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), d=st.integers(2, 8), share=st.floats(0.5, 0.89))
def test_no_perturbation_exceeds_a_thorough_bound(seed: int, n: int, d: int, share: float) -> None:
    """Few cells are solved: what is left must hold after any number."""
    phi = ws.RandomAttentionFeatures(d, score="relu", seed=seed)
    rows = gaussian_rows(n, d, seed)
    if not float(torch.linalg.vector_norm(phi(rows))) > 0:
        return
    radius = share * float(torch.linalg.vector_norm(rows)) / math.sqrt(n)
    matrix, plain = (phi.weight / math.sqrt(d)).numpy(), rows.numpy()
    with patch.object(joint, "_MOST_CENTRED", 12):
        bound = float(ws.certify(phi, rows, words=[1], radius=radius, effort="thorough")[0])
    away = plain[1][None] - plain
    delta = np.concatenate([perturbations(plain, matrix, radius, 2000), away, -away, plain @ matrix.T])
    assert largest_change(phi, rows, delta, radius) <= bound * (1 + 1e-12)


def test_far_words_are_bounded_together() -> None:
    """upper/attained of this word is 1.51 where rows are bounded apart."""
    phi, X = ws.RandomAttentionFeatures(12, seed=9, score="relu"), ws.gaussian_text(8, 12, seed=9)
    radius = 0.8 * math.sqrt(12)
    attained = ws.word_sensitivity(phi, X, words=[2], radius=radius, search="thorough").per_word
    together = ws.certify(phi, X, words=[2], radius=radius, effort="thorough", attained=attained, gap=1.3)
    assert float(attained) <= float(together) <= 1.3 * float(attained)
