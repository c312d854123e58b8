"""The own row and all others bounded together: valid for any multipliers, derivatives, and how much it is worth."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.certificates.attention_cases import gaussian_rows
from tests.certificates.test_own_weights import prepared
from tests.certificates.test_small_radii import by_hand

import wordsens as ws
from wordsens.certificates.attention import joint_bound as joint
from wordsens.certificates.attention.joint_cells import COARSE, Cell
from wordsens.certificates.attention.joint_dual import JointDual
from wordsens.certificates.attention.joint_inverse import DirectForm, InverseForm
from wordsens.certificates.attention.joint_lagrangian import JointMultipliers, at_options, form
from wordsens.certificates.attention.joint_smoothed import OPTIONS_SHARE
from wordsens.certificates.attention.joint_terms import MovedOwnRow, OtherRows, joint_pairs
from wordsens.certificates.attention.own_weights import OwnRows
from wordsens.maps.attention.scores import Tabulated, offered
from wordsens.seeds import generator

SCORES = ("softmax", "relu", "relu-unnormalized", "sigmoid")


def case(score: str, n: int = 6, d: int = 8, share: float = 0.25, floor: float = 0.0):
    """The rows, W over the scale, the radius, and the terms of the word's problem, in the text's unit, where the sum
    of its weights is at least `floor`."""
    seed, word = 3, 2
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    rows = gaussian_rows(n, d, seed)
    radius = share * math.sqrt(d)
    text, errors, twist, unit = prepared(rows, phi)
    tabulated = offered(text.score, Tabulated)
    assert tabulated is not None
    reach = torch.tensor([radius / unit], dtype=torch.float64)
    problem = OwnRows(text, tabulated, errors, float(twist[0]), 0).problem(torch.tensor([word]), reach, floor)
    assert problem is not None
    own = MovedOwnRow(problem.rows, problem.kappa[0], problem.apart[0] / float(reach), float(reach))
    return rows.numpy(), (phi.weight / math.sqrt(d)).numpy(), radius, OtherRows.of(text, word, float(reach)), own


def squared_changes(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, delta: np.ndarray, radius: float):
    """Of the own row and of all others, in radii."""
    texts = np.repeat(rows[None], len(delta), axis=0)
    texts[:, word] += delta
    moved = np.square(by_hand(texts, matrix, score) - by_hand(rows, matrix, score)).sum(axis=2) / radius**2
    return moved[:, word], np.delete(moved, word, axis=1).sum(axis=1)


def own_weights(rows: np.ndarray, matrix: np.ndarray, score: str, word: int, delta: np.ndarray) -> np.ndarray:
    """Before they are divided, in units of what their sum was."""
    moved = rows[None] + np.eye(len(rows))[word][None, :, None] * delta[:, None]
    before, after = rows[word] @ matrix @ rows.T, np.einsum("ta,ab,tjb->tj", moved[:, word], matrix, moved)
    if score == "softmax":
        # Each score less what all move by, to first order, in the old weights' mean.
        old = np.exp(before - before.max()) / np.exp(before - before.max()).sum()
        twist = np.eye(len(rows))[word] * np.einsum("ta,ab,tb->t", delta, matrix, delta)[:, None]
        return old * np.exp(after - before - ((after - before - twist) @ old)[:, None])
    if score == "sigmoid":
        return 1 / (1 + np.exp(-after))
    return np.maximum(after, 0) / (np.maximum(before, 0).sum() if score == "relu" else 1.0)


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
def test_any_multipliers_give_a_bound_where_the_own_row_changes_by_so_much(score: str) -> None:
    rows, matrix, radius, others, own = case(score)
    delta = perturbations(rows, matrix, radius)
    mine, rest = squared_changes(rows, matrix, score, 2, delta, radius)
    whole = own.intervals()
    ends = whole[0][0][0], whole[-1][0][1]
    most = math.sqrt(mine.max()) * (1 + 1e-9)
    counted = 0
    for low, high in ((0.0, most), (0.4 * most, most), (0.7 * most, 0.9 * most)):
        there = (np.sqrt(mine) >= low) & (np.sqrt(mine) <= high)
        counted += there.sum()
        terms = own.within(*ends, low, high)
        for seed in range(5):
            by = some_multipliers(JointDual(joint_pairs(others, terms)), seed)
            bound = joint.joint_lagrangian_bound(others, terms, by)
            assert math.isfinite(bound)
            assert bound >= (rest + mine)[there].max(initial=0.0) * (1 - 1e-12)
    assert counted > len(delta)


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_any_multipliers_give_a_bound_where_the_weights_have_such_a_sum(score: str) -> None:
    rows, matrix, radius, others, own = case(score)
    delta = perturbations(rows, matrix, radius)
    mine, rest = squared_changes(rows, matrix, score, 2, delta, radius)
    sums = own_weights(rows, matrix, score, 2, delta).sum(axis=1)
    for ends, _ in own.intervals():
        there = (sums >= ends[0]) & (sums <= ends[1])
        terms = own.within(*ends, 0.0, math.sqrt(mine.max()))
        for seed in range(3):
            by = some_multipliers(JointDual(joint_pairs(others, terms)), seed)
            assert joint.joint_lagrangian_bound(others, terms, by) >= (rest + mine)[there].max(initial=0.0)
    covered = [((sums >= ends[0]) & (sums <= ends[1])).any() for ends, _ in own.intervals()]
    assert sum(covered) >= 3


@pytest.mark.parametrize("score", SCORES)
def test_any_multipliers_give_a_bound_where_a_weight_is_between_two_numbers(score: str) -> None:
    # Farther, the sum of the weights of divided ReLU may be 0.
    rows, matrix, radius, others, own = case(score, share=0.3 if score == "relu" else 0.6)
    delta = perturbations(rows, matrix, radius)
    mine, rest = squared_changes(rows, matrix, score, 2, delta, radius)
    weights = own_weights(rows, matrix, score, 2, delta)
    most = math.sqrt(mine.max()) * (1 + 1e-9)
    sums = weights.sum(axis=1) if own.rows.divided else np.ones(len(delta))
    counted = 0
    for word in (0, 2, 5):
        for low, high in ((0.0, 0.3), (0.3, 0.8), (0.8, 1.0)):
            least, largest = np.quantile(weights[:, word], [low, high])
            there = (weights[:, word] >= least) & (weights[:, word] <= largest)
            bounds = own.any_weights.clone()
            bounds[:, word] = torch.tensor([least, largest]) * torch.tensor([1 - 1e-12, 1 + 1e-12])
            terms = own.within(sums[there].min(), sums[there].max(), 0.0, most, bounds)
            assert not terms.empty
            counted += there.sum()
            for seed in range(3):
                by = some_multipliers(JointDual(joint_pairs(others, terms)), seed)
                bound = joint.joint_lagrangian_bound(others, terms, by)
                assert math.isfinite(bound)
                assert bound >= (rest + mine)[there].max() * (1 - 1e-12)
    assert counted > 2.9 * len(delta)


@pytest.mark.parametrize(
    ("score", "share"),
    [
        ("relu", 0.1),
        ("relu", 0.3),
        *((score, share) for score in SCORES if score != "relu" for share in (0.1, 0.6, 1.5)),
    ],
)
def test_cells_hold_the_weights(score: str, share: float) -> None:
    rows, matrix, radius, _, own = case(score, share=share)
    delta = perturbations(rows, matrix, radius)
    weights = own_weights(rows, matrix, score, 2, delta)
    moves = (torch.from_numpy(delta) @ own.kappa.T / radius).numpy()
    ends = np.quantile(weights, [0.2, 0.7], axis=0)
    bounds = torch.from_numpy(ends)
    cells = own.within(1.0, float(own.rows.most[0, -1]), 0.0, 1.0, bounds).cells
    assert bool((cells.tau[:, 1:] >= cells.tau[:, :-1]).all())
    seen = 0
    for word in range(len(rows)):
        low, high = own.within(1.0, float(own.rows.most[0, -1]), 0.0, 1.0, bounds).weights[:, word].tolist()
        there = (weights[:, word] >= low) & (weights[:, word] <= high)
        tau, E = moves[there, word], weights[there, word]
        seen += len(E)
        nodes = cells.tau[word].numpy()
        cell = np.clip(np.searchsorted(nodes, tau, side="right") - 1, 0, len(nodes) - 2)
        assert cells.possible[word].numpy()[cell].all()
        lowest, highest = (np.interp(tau, nodes, part[word].numpy()) for part in (cells.lowest, cells.highest))
        assert (lowest - cells.below[word].numpy()[cell] - 1e-9 <= E).all()
        assert (highest + cells.above[word].numpy()[cell] + 1e-9 >= E).all()
    assert seen > len(delta)


@pytest.mark.parametrize(("d", "inverse"), [(5, DirectForm), (9, InverseForm)])  # 14 vectors in 2 d coordinates
@pytest.mark.parametrize("score", SCORES)
def test_gradient_and_hessian_are_those_of_the_smoothed_lagrangian(score: str, d: int, inverse: type) -> None:
    _, _, _, others, own = case(score, n=4, d=d, floor=0.05)
    ends = own.intervals()[0][0]
    dual = JointDual(joint_pairs(others, own.within(*ends, 0.5, 1.0)))
    by, temperature = some_multipliers(dual, 1), 0.3
    smoothed = dual.smoothed
    assert isinstance(smoothed.at(by, temperature).inverse, inverse)
    gradient, hessian = smoothed.derivatives(smoothed.at(by, temperature), temperature)

    def softened(values: torch.Tensor, width: float) -> torch.Tensor:
        top = values.detach().amax(dim=1)
        low, high = top, top + 2 * width * values.shape[1]
        for _ in range(200):
            middle = (low + high) / 2
            above = (width / (middle.unsqueeze(1) - values.detach())).sum(dim=1) < 1
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        for _ in range(2):  # Newton's step carries the derivatives of what bisection found
            near = 1 / (high.unsqueeze(1) - values)
            high = high + (near.sum(dim=1) - 1 / width) / near.square().sum(dim=1)
        return (high - width * (high.unsqueeze(1) - values).log().sum(dim=1)).sum()

    def value(flat: torch.Tensor) -> torch.Tensor:
        here = JointMultipliers(flat)
        Q = form(dual.pairs, here)
        w = torch.cat([here.alpha, here.gamma]) @ torch.cat([dual.pairs.first, dual.pairs.second])
        options = smoothed._values(here)[0]
        logs = torch.logdet(Q) + here.hold.log().sum() + here.pin.log().sum()
        common = here.lam + here.mu + w @ torch.linalg.solve(Q, w) + (here.hold * dual.pairs.between).sum()
        suprema = softened(options, OPTIONS_SHARE * temperature)
        return common + suprema + softened(dual.pairs.of_sum(here.total).unsqueeze(0), temperature) - temperature * logs

    assert smoothed.at(by, temperature).value == pytest.approx(float(value(by.flat)), rel=1e-12)
    torch.testing.assert_close(gradient, torch.autograd.functional.jacobian(value, by.flat), rtol=1e-8, atol=1e-9)
    expected = torch.autograd.functional.hessian(value, by.flat)
    if not dual.pairs.summed:
        hessian[3, 3] = 0.0  # no sum, no multiplier of it: 1 keeps Newton's equations solvable
    # The ends of s have kinks, whose second derivatives autograd and this leave out alike.
    torch.testing.assert_close(hessian, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("score", SCORES)
def test_smoothed_options_are_those_of_the_lagrangian(score: str) -> None:
    _, _, _, others, own = case(score, n=4, d=5)
    ends = own.intervals()[3 if own.rows.divided else 0][0]
    dual = JointDual(joint_pairs(others, own.within(*ends, 0.5, 1.0)))
    by = some_multipliers(dual, 2)
    plain = at_options(dual.pairs, by)[0].masked_fill(~dual.pairs.possible, -torch.inf).amax(dim=1)
    torch.testing.assert_close(dual.smoothed._values(by)[0].amax(dim=1), plain, rtol=1e-12, atol=1e-12)


def test_the_search_ends_where_the_smoothed_lagrangian_is_least() -> None:
    _, _, _, others, own = case("relu-unnormalized", n=5, d=6)
    dual = JointDual(joint_pairs(others, own.within(1, 1, 0.0, 2.0)))
    here, temperature = dual.start(4.0), 0.02
    for _ in range(4):
        here = dual.centred(here, temperature).by
    least = dual.smoothed.at(here, temperature).value
    stream = generator(0, "directions")
    for scale in (1e-3, 1e-2, 0.1, 0.5):
        for _ in range(20):
            noise = torch.randn(len(here.flat), generator=stream, dtype=torch.float64)
            other = JointMultipliers(here.flat + scale * noise * here.flat.abs().clamp(min=1e-3))
            assert dual.smoothed.at(other, temperature).value > least - temperature


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


def test_a_cell_in_which_the_own_row_cannot_change_is_not_split() -> None:
    *_, others, own = case("softmax")
    cell = Cell(own.intervals()[3][0], 0.0, 1.0, 2.0, own.any_weights)
    rows = joint._Rows.of(own, others, 2.0)
    cell = rows.solved(cell, None)
    assert cell.solved == COARSE
    assert cell.divisible
    assert not replace(cell, high=0.0).divisible


def test_what_is_bounded_apart() -> None:
    def joint_at(n: int, d: int, share: float = 0.2, heads: int = 1, score: str = "softmax") -> bool:
        rows = gaussian_rows(n, d, 0)
        text, *_, unit = prepared(rows, ws.RandomAttentionFeatures(d, heads=heads, score=score))
        radius = share * math.sqrt(float(rows.square().sum(dim=1).mean()))
        return bool(joint.may_be_joint(text, torch.tensor([0]), torch.tensor([radius / unit], dtype=torch.float64)))

    assert joint_at(100, 6)
    assert joint_at(100, 400)
    assert not joint_at(101, 6)
    assert not joint_at(5, 6, heads=2)
    assert joint_at(5, 6, share=0.89)
    assert not joint_at(5, 6, share=0.91)
    assert joint_at(5, 6, share=2.0, score="sigmoid")
