"""The two step rules on a quadratic, whose maximum over the ball is known."""

import pytest
import torch
from tests.search.functions import Function, quadratic

from wordsens.search.climb import PATIENCE, Climb, Momentum, QuasiNewton


def climbed(objective, x, rule, steps, blocks=1):
    b = len(x)
    climb = Climb(objective, torch.zeros(b, dtype=torch.long), torch.ones(b, dtype=torch.float64), x, blocks)
    walk = rule(climb)
    for _ in range(steps):
        walk.step(climb, 1e-14)
    return climb


def points(count, size, seed=0):
    return torch.randn(count, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("size", [4, 30, 100])
@pytest.mark.parametrize("linear", [0.0, 1.0])
def test_quasi_newton_reaches_the_top_of_a_quadratic(size, linear):
    """The maximum x on the sphere solves (mu - A) x = b with mu at least A's largest eigenvalue."""
    f, A, b = quadratic(size, 0, linear=linear)
    climb = climbed(Function(f, (size,)), points(6, size), QuasiNewton, 150)
    top, largest = int(climb.squared.argmax()), float(torch.linalg.eigvalsh(A)[-1])
    x = climb.x[top]
    multiplier = float((A @ x + b) @ x)
    assert float((A @ x + b - multiplier * x).norm()) < 1e-4 * multiplier
    assert multiplier >= largest * (1 - 1e-4)
    if linear == 0.0:
        assert float(climb.squared[top]) == pytest.approx(largest, rel=1e-8)


@pytest.mark.parametrize("rule", [QuasiNewton, Momentum])
def test_a_climb_never_falls_and_stays_in_the_ball(rule):
    f, _, _ = quadratic(12, 1, linear=1.0)
    objective, x = Function(f, (3, 4)), points(5, 12)
    before = climbed(objective, x, rule, 0, blocks=3).squared
    for steps in (1, 3, 10):
        climb = climbed(objective, x, rule, steps, blocks=3)
        assert bool((climb.squared >= before).all())
        assert float(climb.x.unflatten(1, (3, 4)).norm(dim=2).max()) <= 1
        before = climb.squared


@pytest.mark.parametrize("rule", [QuasiNewton, Momentum])
def test_a_maximum_inside_the_ball(rule):
    peak = torch.tensor([0.2, 0.0, 0.1], dtype=torch.float64)
    objective = Function(lambda delta: 1 - (delta - peak).square().sum(dim=-1), (3,))
    climb = climbed(objective, torch.eye(3, dtype=torch.float64), rule, 60)
    torch.testing.assert_close(climb.x, peak.expand(3, 3), rtol=0, atol=1e-5)
    assert int(climb.idle.min()) >= PATIENCE


def test_a_step_along_a_sphere_against_which_the_slope_presses_keeps_to_it():
    f, _, _ = quadratic(10, 0, linear=1.0)
    climb = climbed(Function(f, (10,)), points(5, 10), QuasiNewton, 3)
    assert float(climb.x.norm(dim=1).min()) > 1 - 1e-13
    along = climb.along(points(5, 10, seed=1))
    assert float(torch.linalg.vecdot(along, climb.x).abs().max()) < 1e-12


def test_chosen_ascents_go_on_as_they_were():
    f, _, _ = quadratic(8, 2, linear=1.0)
    objective, chosen = Function(f, (8,)), torch.tensor([3, 0])
    whole = climbed(objective, points(5, 8), QuasiNewton, 12)
    climb = Climb(objective, torch.zeros(5, dtype=torch.long), torch.ones(5, dtype=torch.float64), points(5, 8))
    rule = QuasiNewton(climb)
    for _ in range(6):
        rule.step(climb, 1e-14)
    part = climb.select(chosen)
    rule.select(chosen)
    for _ in range(6):
        rule.step(part, 1e-14)
    climb.store(chosen, part)
    torch.testing.assert_close(climb.squared[chosen], whole.squared[chosen], rtol=1e-12, atol=0)
