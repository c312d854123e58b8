"""The own row under divided ReLU, by products of constraints: they hold, the bound holds, and how near it is."""

import math
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_joint_bound import perturbations as some_perturbations
from tests.certificates.test_small_radii import by_hand
from tests.certificates.test_small_sums import largest_change
from tests.certificates.test_small_sums import perturbations as against_keys

import wordsens as ws
from wordsens.certificates.attention import joint_bound as joint
from wordsens.certificates.attention.own_products import ReluRow, _constraints, _joined, _searched

WORD = 2


def perturbations(rows: np.ndarray, matrix: np.ndarray, radius: float) -> np.ndarray:
    return np.concatenate([some_perturbations(rows, matrix, radius), against_keys(rows, matrix, radius)])


def relu_row(
    n: int, d: int, share: float, seed: int, least: float = 0.1, most: float = 1e3
) -> tuple[ReluRow, np.ndarray, np.ndarray]:
    """Of word `WORD` of Gaussian rows, its sum between shares of what it was; the rows, and W over the scale."""
    rng = np.random.default_rng(seed)
    rows, matrix = rng.standard_normal((n, d)), rng.standard_normal((d, d)) / d
    radius, x = share * math.sqrt(d), rows[WORD]
    scores = x @ matrix @ rows.T
    unit = np.maximum(scores, 0).sum()
    keys = radius * rows @ matrix.T
    keys[WORD] += radius * x @ matrix
    form = 0.5 * radius**2 * (matrix + matrix.T)
    apart = (rows - np.maximum(scores, 0) @ rows / unit) / radius
    twist = np.abs(np.linalg.eigvalsh(form)).max() * (1 + 1e-9)
    tensors = (torch.from_numpy(part) for part in (scores / unit, keys / unit, form / unit, apart))
    scores, keys, form, apart = tensors
    return ReluRow(WORD, scores, keys, form, twist / unit, apart, least, most), rows, matrix


def changes(row: ReluRow, rows: np.ndarray, matrix: np.ndarray, share: float, y: np.ndarray):
    """Of the row by the map itself, in radii; and the sum of the weights, in units of what it was."""
    radius = share * math.sqrt(rows.shape[1])
    moved = np.repeat(rows[None], len(y), axis=0)
    moved[:, WORD] += radius * y
    change = (by_hand(moved, matrix, "relu") - by_hand(rows, matrix, "relu"))[:, WORD]
    scores = np.einsum("ta,ab,tlb->tl", moved[:, WORD], matrix, moved)
    before = np.maximum(rows[WORD] @ matrix @ rows.T, 0).sum()
    return np.linalg.norm(change, axis=1) / radius, np.maximum(scores, 0).sum(axis=1) / before


@pytest.mark.parametrize(
    ("n", "d", "share", "least", "most"), [(6, 4, 0.5, 0.1, 1e3), (5, 9, 0.8, 0.5, 1.5), (3, 1, 0.3, 0.1, 1.2)]
)
def test_every_constraint_holds_for_every_perturbation(n: int, d: int, share: float, least: float, most: float) -> None:
    row, rows, matrix = relu_row(n, d, share, n, least, most)
    constraints = _constraints(row)
    y = np.random.default_rng(1).standard_normal((200, d))
    y *= np.random.default_rng(2).uniform(0, 1, (200, 1)) ** (1 / d) / np.linalg.norm(y, axis=1, keepdims=True)
    change, sums = changes(row, rows, matrix, share, y)
    scores = row.scores.numpy() + y @ row.keys.numpy().T
    scores[:, WORD] += np.einsum("ta,ab,tb->t", y, row.form.numpy(), y)
    counted = (sums > row.least) & (sums < row.most)
    assert counted.sum() > 50
    for at in counted.nonzero()[0]:
        w, eta = np.maximum(scores[at], 0) / sums[at], 1 / sums[at]
        assert math.isclose(w.sum(), 1.0, rel_tol=1e-9)
        z = torch.from_numpy(np.concatenate([[eta], eta * y[at], w, w[WORD] * y[at]]))
        values = torch.zeros(len(constraints.equal), dtype=torch.float64).index_add_(
            0, constraints.which, constraints.coefficient * z[constraints.first] * z[constraints.second]
        )
        assert math.isclose(float(values[-1]), -1.0, rel_tol=1e-9)
        assert float(values[:-1].amin()) > -1e-9
        assert float(values[:-1][constraints.equal[:-1]].abs().amax()) < 1e-9
        assert math.isclose(float(z @ row.objective() @ z), change[at] ** 2, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("n", "d", "seed", "least", "most", "ratio"),
    [(20, 16, 3, 0.1, 1e3, 1.1), (30, 20, 5, 0.1, 1e3, 1.5), (20, 16, 3, 0.4, 0.8, 1.1)],
)
def test_the_bound_holds_and_is_near_what_is_attained(
    n: int, d: int, seed: int, least: float, most: float, ratio: float
) -> None:
    """Attained by random steps, ever smaller, from the best of many draws."""
    row, rows, matrix = relu_row(n, d, 0.5, seed, least, most)
    bound = row.bound()

    def values(y: np.ndarray) -> np.ndarray:
        change, sums = changes(row, rows, matrix, 0.5, y)
        return np.where((sums >= row.least) & (sums <= row.most), change, 0.0)

    rng = np.random.default_rng(0)
    y = rng.standard_normal((5000, d))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    best = values(y)
    y, best, step = y[np.argsort(-best)[:20]], np.sort(best)[::-1][:20], 0.4
    while step > 3e-3:
        near = y[:, None] + step * rng.standard_normal((20, 30, d)) / math.sqrt(d)
        near /= np.maximum(np.linalg.norm(near, axis=2, keepdims=True), 1.0)
        found = values(near.reshape(-1, d)).reshape(20, 30)
        better = found.max(axis=1) > best
        y[better], best = near[better, found.argmax(axis=1)[better]], np.maximum(best, found.max(axis=1))
        step *= 0.96 if better.any() else 0.8
    assert best.max() <= bound <= ratio * best.max()


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
def test_any_multipliers_give_a_bound(noise: float) -> None:
    row, rows, matrix = relu_row(8, 6, 0.5, seed=4)
    constraints = _constraints(row)
    by = _searched(row, constraints)
    assert by is not None
    drawn = torch.from_numpy(np.random.default_rng(5).standard_normal(len(by)))
    bound = row.verified(constraints, by * (1 + noise * drawn))
    y = np.random.default_rng(6).standard_normal((4000, 6))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    change, sums = changes(row, rows, matrix, 0.5, y)
    assert math.isfinite(bound)
    assert change[sums >= row.least].max() <= bound


def test_one_word_and_one_dimension() -> None:
    for n, d in ((1, 3), (1, 1), (2, 1)):
        apart = torch.ones(n, d, dtype=torch.float64)
        row = ReluRow(0, torch.full((n,), 0.5).double(), 0.1 * apart, torch.zeros(d, d).double(), 0.0, apart, 0.5)
        # All words have the weight 1/n, and y goes where they are.
        largest = math.sqrt(d) + 1 / n
        assert largest <= row.bound() <= 1.01 * largest


def test_a_sum_that_no_perturbation_has() -> None:
    row, *_ = relu_row(20, 16, 0.2, seed=3)
    bound = row.bound()
    assert bound > 0.5
    # Old scores and all that they can move by add up to less.
    most = float((row.scores + torch.linalg.vector_norm(row.keys, dim=1) + row.twist).clamp(min=0).sum())
    assert replace(row, least=1.01 * most, most=2 * most).bound() < 0.1 * bound


def test_narrow_intervals_are_joined() -> None:
    ends = [1.2**at for at in range(17)]
    joined = _joined(list(pairwise(ends)))
    assert sum(count for *_, count in joined) == 16
    assert [least for least, *_ in joined[1:]] == [most for _, most, _ in joined[:-1]]
    assert len(joined) == 5
    assert all(most <= 2 * least for least, most, _ in joined[:-1])
    assert joined[0][0] == 1.0 and joined[-1][1] == ends[-1]


def test_a_solver_that_fails_leaves_a_bound() -> None:
    row, *_ = relu_row(5, 4, 0.5, seed=1)
    with patch("wordsens.certificates.attention.own_products._searched", return_value=None):
        assert row.bound() == math.inf
    nothing = torch.zeros(len(_constraints(row).equal), dtype=torch.float64)
    # All multipliers 0: nothing but the size of the objective is known.
    assert row.verified(_constraints(row), nothing) >= float(row.apart.norm(dim=1).max())


def test_a_text_of_many_words_is_bounded_more_closely() -> None:
    phi, X = ws.RandomAttentionFeatures(16, score="relu", seed=8), ws.gaussian_text(25, 16, seed=8)
    with patch.object(joint, "_MOST_CENTRED", 4):
        now = float(ws.certify(phi, X, words=[3], radius=2.0, effort="thorough"))
        with patch.object(joint, "own_products_bounds", lambda *given: [math.inf] * len(given[-1])):
            before = float(ws.certify(phi, X, words=[3], radius=2.0, effort="thorough"))
    value = ws.word_sensitivity(phi, X, words=[3], radius=2.0).value
    assert value <= now < 0.9 * before


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 6),
    d=st.integers(2, 8),
    share=st.floats(0.1, 0.89),
    score=st.sampled_from(["relu", "relu", "softmax", "sigmoid"]),
)
def test_no_perturbation_exceeds_a_bound_of_few_cells(seed: int, n: int, d: int, share: float, score: str) -> None:
    """What is left must hold after any number of solutions."""
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    rows = gaussian_rows(n, d, seed)
    if not float(torch.linalg.vector_norm(phi(rows))) > 0:
        return
    radius = share * float(torch.linalg.vector_norm(rows)) / math.sqrt(n)
    matrix, plain = (phi.weight / math.sqrt(d)).numpy(), rows.numpy()
    with patch.object(joint, "_MOST_CENTRED", 6):
        bound = float(ws.certify(phi, rows, words=[1], radius=radius, effort="thorough")[0])
    delta = np.concatenate([perturbations(plain, matrix, radius), -plain @ matrix.T])
    assert largest_change(phi, rows, delta, radius) <= bound * (1 + 1e-12)
