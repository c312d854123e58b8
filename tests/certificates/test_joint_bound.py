"""The own row and all others bounded together: valid for any multipliers, derivatives, and how much it is worth."""

import math

import numpy as np
import pytest
import torch
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_own_weights import prepared
from tests.certificates.test_small_radii import by_hand

import wordsens as ws
from wordsens.certificates.attention import joint_bound as joint
from wordsens.certificates.attention.joint_dual import JointDual
from wordsens.certificates.attention.joint_lagrangian import JointMultipliers, at_options, form
from wordsens.certificates.attention.joint_terms import MovedOwnRow, OtherRows, joint_pairs
from wordsens.certificates.attention.own_weights import OwnRows
from wordsens.maps.attention.scores import Tabulated, offered
from wordsens.seeds import generator

SCORES = ("softmax", "relu", "relu-unnormalized", "sigmoid")


def case(score: str, n: int = 6, d: int = 8, seed: int = 3, share: float = 0.25, word: int = 2):
    """The rows, W over the scale, the radius, and the terms of the word's problem, in the text's unit."""
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    rows = gaussian_rows(n, d, seed)
    radius = share * math.sqrt(d)
    text, errors, twist, unit = prepared(rows, phi)
    tabulated = offered(text.score, Tabulated)
    assert tabulated is not None
    reach = torch.tensor([radius / unit], dtype=torch.float64)
    problem = OwnRows(text, tabulated, errors, float(twist[0]), 0).problem(torch.tensor([word]), reach)
    assert problem is not None
    own = MovedOwnRow(problem.rows, problem.kappa[0], problem.apart[0] / float(reach), float(reach))
    return rows.numpy(), (phi.weight / math.sqrt(d)).numpy(), radius, OtherRows.of(text, word, float(reach)), own


def squared_changes(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, delta: np.ndarray, radius: float):
    """Of the own row and of all others, in radii."""
    texts = np.repeat(rows[None], len(delta), axis=0)
    texts[:, word] += delta
    moved = np.square(by_hand(texts, matrix, score) - by_hand(rows, matrix, score)).sum(axis=2) / radius**2
    return moved[:, word], np.delete(moved, word, axis=1).sum(axis=1)


def perturbations(rows: np.ndarray, matrix: np.ndarray, radius: float) -> np.ndarray:
    d = rows.shape[1]
    drawn = np.random.default_rng(0).standard_normal((300, d))
    delta = np.concatenate([drawn, rows @ matrix.T, -rows @ matrix.T, rows @ matrix, -rows @ matrix])
    delta *= radius / np.linalg.norm(delta, axis=1, keepdims=True)
    return np.concatenate([delta, 0.5 * delta[:100]])


def some_multipliers(dual: JointDual, seed: int) -> JointMultipliers:
    """Inside the domain, with every part at work."""
    by = dual.start(2.0)
    stream = generator(seed, "multipliers")
    noise = torch.randn(len(by.flat), generator=stream, dtype=torch.float64)
    flat = by.flat * (0.3 * noise).exp()
    flat[2] = 0.3 * noise[2].tanh()
    flat[3] = 0.5 * noise[3]
    flat = flat + torch.where(by.flat == 0, 0.02 * noise, torch.zeros_like(noise))
    while int(torch.linalg.cholesky_ex(form(dual.pairs, JointMultipliers(flat))).info):
        flat[:2] *= 2
    return JointMultipliers(flat)


@pytest.mark.parametrize("score", SCORES)
def test_any_multipliers_give_a_bound(score: str) -> None:
    rows, matrix, radius, others, own = case(score)
    delta = perturbations(rows, matrix, radius)
    mine, rest = squared_changes(rows, matrix, score, 2, delta, radius)
    whole = own.intervals()
    ends = whole[0][0][0], whole[-1][0][1]
    for factor in (0.5, 2.0):
        terms = own.within(*ends, factor)
        for seed in range(5):
            by = some_multipliers(JointDual(joint_pairs(others, terms)), seed)
            bound = joint._Sum(others, terms).bound(by)
            assert math.isfinite(bound)
            assert bound >= (rest + factor * np.sqrt(mine)).max() * (1 - 1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_the_own_row_alone_has_its_linear_bound_and_intervals_tell_where_z_may_be(score: str) -> None:
    rows, matrix, radius, others, own = case(score, n=4, d=5)
    mine, _ = squared_changes(rows, matrix, score, 2, perturbations(rows, matrix, radius), radius)
    intervals = own.intervals()
    best = 0.0
    for ends, cap in intervals:
        alone = joint._Sum(others.none(), own.within(*ends, 1.0))
        best = max(best, min(cap, alone.least(None, math.inf, 1.0)[0]))
    assert math.sqrt(mine.max()) <= best
    assert best <= 2 * math.sqrt(mine.max())


def test_the_best_multipliers_of_both_are_at_most_what_each_has_apart() -> None:
    _, _, _, others, own = case("relu-unnormalized", n=10, d=20)
    cap = joint._Sum(others.none(), own.within(1, 1, 1.0)).least(None, math.inf, 5.0)[0]
    together = joint._Sum(others, own.within(1, 1, cap)).least(None, math.inf, cap**2)[0]
    nothing = own.within(1, 1, 1e-12)
    apart = joint._Sum(others, nothing).least(None, math.inf, cap**2)[0]
    assert max(apart, cap**2) * 0.5 < together < (cap**2 + apart) * (1 + 1e-3)


@pytest.mark.parametrize("score", SCORES)
def test_gradient_and_hessian_are_those_of_the_smoothed_lagrangian(score: str) -> None:
    _, _, _, others, own = case(score, n=4, d=5)
    ends = own.intervals()[0][0]
    dual = JointDual(joint_pairs(others, own.within(*ends, 1.5)))
    by = some_multipliers(dual, 1)
    temperature, barrier = 0.3, 0.2
    gradient, hessian = dual._derivatives(by, temperature, barrier)

    def value(flat: torch.Tensor) -> torch.Tensor:
        here = JointMultipliers(flat)
        Q = form(dual.pairs, here)
        w = torch.cat([here.alpha, here.gamma]) @ torch.cat([dual.pairs.first, dual.pairs.second])
        suprema = temperature * torch.logsumexp(at_options(dual.pairs, here)[0] / temperature, dim=1).sum()
        logs = torch.logdet(Q) + here.hold.log().sum() + here.pin.log().sum()
        common = here.lam + here.mu + w @ torch.linalg.solve(Q, w) + (here.hold * dual.pairs.between).sum()
        return common + suprema + dual._sum_term(here, temperature)[0] - barrier * logs

    assert float(value(by.flat)) == pytest.approx(dual._at(by, temperature, barrier).value, rel=1e-12)
    torch.testing.assert_close(gradient, torch.autograd.functional.jacobian(value, by.flat), rtol=1e-8, atol=1e-9)
    if not dual.pairs.summed:
        hessian[3, 3] = 0.0  # no sum, no multiplier of it: 1 keeps Newton's equations solvable
    # |2 shared - E reach| and the ends of s have kinks, whose second derivatives autograd and this leave out alike.
    torch.testing.assert_close(hessian, torch.autograd.functional.hessian(value, by.flat), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("score", "n", "d", "share", "before", "now"),
    [("relu-unnormalized", 10, 24, 0.3, 1.19, 1.15), ("softmax", 8, 16, 0.25, 1.5, 1.2)],
)
def test_brackets_at_a_medium_radius(
    monkeypatch: pytest.MonkeyPatch, score: str, n: int, d: int, share: float, before: float, now: float
) -> None:
    phi, X = ws.RandomAttentionFeatures(d, score=score, seed=1), ws.gaussian_text(n, d, seed=1)
    radius = share * math.sqrt(d)
    found = ws.word_sensitivity(phi, X, [3], radius, search="thorough", certificate="thorough")
    assert found.upper is not None
    assert 1 <= found.upper / found.value < now
    monkeypatch.setattr(joint, "MOST_WORDS", 0)
    assert float(ws.certify(phi, X.rows, words=[3], radius=radius, effort="thorough")) / found.value > before


def test_an_own_row_that_cannot_change_leaves_the_others() -> None:
    # A sigmoid at scores of -300: an own row's bound of 0 was taken for a Z that no perturbation has.
    phi = ws.RandomAttentionFeatures.of_weight(torch.tensor([[-3162.3]], dtype=torch.float64), "sigmoid")
    X = torch.tensor([[-0.3638], [0.5812]], dtype=torch.float64)
    moved = X.clone()
    moved[0] += 1e-6
    change = torch.linalg.vector_norm(phi(moved) - phi(X)) / torch.linalg.vector_norm(phi(X))
    assert float(change) <= float(ws.certify(phi, X, words=[0], radius=1e-6, effort="thorough"))


def test_longer_texts_several_heads_and_values_are_bounded_apart() -> None:
    assert not joint.may_be_joint(prepared(gaussian_rows(25, 6, 0), ws.RandomAttentionFeatures(6))[0])
    two = ws.RandomAttentionFeatures(6, heads=2)
    assert not joint.may_be_joint(prepared(gaussian_rows(5, 6, 0), two)[0])
    assert joint.may_be_joint(prepared(gaussian_rows(5, 6, 0), ws.RandomAttentionFeatures(6))[0])
