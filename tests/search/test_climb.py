"""The rules of ascent on a quadratic, whose maximum over the ball is known, and the points they start from."""

import pytest
import torch
from wordsens.search.points import SAME, Breeder, fittest

from wordsens.maps.word_change import WordChange
from wordsens.search.climb import PATIENCE, Climb, Momentum, QuasiNewton
from wordsens.search.plan import Stages
from wordsens.seeds import generator


class Quadratic(WordChange):
    """Delta^T A Delta + 2 b.Delta: over the unit ball its maximum solves (mu - A) x = b with mu above A's spectrum."""

    def __init__(self, A, b):
        super().__init__(torch.zeros(2, len(b), dtype=b.dtype), 1.0, 1 << 30)
        self.A, self.b = A, b

    def bytes_per_pair(self):
        return 1

    def _evaluate(self, perturbations, words, *, gradient):
        slope = perturbations @ self.A + self.b
        return ((slope + self.b) * perturbations).sum(dim=1), 2 * slope if gradient else None


def quadratic(size, seed, *, linear):
    stream = torch.Generator().manual_seed(seed)
    root = torch.randn(size, size, dtype=torch.float64, generator=stream)
    b = linear * torch.randn(size, dtype=torch.float64, generator=stream)
    return Quadratic(root @ root.T, b), stream


def climbed(change, x, rule, steps):
    b = len(x)
    climb = Climb(change, torch.zeros(b, dtype=torch.long), torch.ones(b, dtype=torch.float64), x)
    walk = rule(climb)
    for _ in range(steps):
        walk.step(climb, 1e-14)
    return climb


@pytest.mark.parametrize("size", [4, 30, 100])
@pytest.mark.parametrize("linear", [0.0, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_quasi_newton_reaches_the_top_of_a_quadratic(size, linear, seed):
    change, stream = quadratic(size, seed, linear=linear)
    climb = climbed(change, torch.randn(6, size, dtype=torch.float64, generator=stream), QuasiNewton, 150)
    best = float(climb.squared.max())
    if linear == 0.0:
        assert best == pytest.approx(float(torch.linalg.eigvalsh(change.A)[-1]), rel=1e-8)
    # Stationary: on the sphere the slope is radial, and the multiplier exceeds A's spectrum, so this is the maximum.
    top = int(climb.squared.argmax())
    x, slope = climb.x[top], climb.slope[top] / 2
    multiplier = float(slope @ x)
    assert float((slope - multiplier * x).norm()) < 1e-4 * multiplier
    assert multiplier >= float(torch.linalg.eigvalsh(change.A)[-1]) * (1 - 1e-4)


def test_a_step_along_a_pressing_sphere_keeps_to_it():
    change, stream = quadratic(10, 0, linear=1.0)
    climb = climbed(change, torch.randn(5, 10, dtype=torch.float64, generator=stream), QuasiNewton, 3)
    direction = torch.randn(5, 10, dtype=torch.float64, generator=stream)
    on_sphere = climb.x.norm(dim=1) > 1 - 1e-13
    assert bool(on_sphere.all())
    assert float(torch.linalg.vecdot(climb.along(direction), climb.x).abs().max()) < 1e-12


def test_inside_the_ball_every_direction_is_open():
    A = -torch.eye(3, dtype=torch.float64)
    change = Quadratic(A, torch.tensor([0.2, 0.0, 0.1], dtype=torch.float64))
    for rule in (QuasiNewton, Momentum):
        climb = climbed(change, torch.eye(3, dtype=torch.float64), rule, 60)
        torch.testing.assert_close(climb.x, change.b.expand(3, 3), rtol=0, atol=1e-5)
        assert int(climb.idle.min()) >= PATIENCE


def test_kicked_points_are_neighbours_of_the_best():
    breeder = Breeder(4, 1, 20, generator(0, "kicks"), torch.float64, torch.device("cpu"))
    parents = breeder.random(3)
    for directions in (torch.zeros(0, 20, dtype=torch.float64), torch.eye(20, dtype=torch.float64)):
        children = breeder.kicked(parents, directions, 50)
        assert children.shape == (50, 4, 20)
        torch.testing.assert_close(children.norm(dim=2), torch.ones(50, 4, dtype=torch.float64))
        cosines = (children * parents[0]).sum(dim=2)
        # A vector of length at most .7 turns a unit vector by at most arcsin .7.
        assert float(cosines.min()) >= (1 - 0.7**2) ** 0.5 - 1e-12
        assert 0 < float((cosines < 0.9999).double().mean()) <= 1


def test_hills_that_nearly_coincide_survive_only_the_strict_rule():
    base = torch.tensor([1.0, 0.0], dtype=torch.float64)
    near = torch.tensor([1.0, 0.1], dtype=torch.float64)
    far = torch.tensor([0.0, 1.0], dtype=torch.float64)
    points = torch.stack([base, near, far]).unsqueeze(1)
    squared = torch.tensor([[3.0], [2.0], [1.0]], dtype=torch.float64)
    assert fittest(squared, points, 2).flatten().tolist() == [0, 2]
    assert fittest(squared, points, 2, SAME).flatten().tolist() == [0, 1]


@pytest.mark.parametrize(("generations", "kick_steps", "kicks"), [(0, 25, 0), (1, 25, 0), (4, 25, 3), (4, 0, 0)])
def test_kicks_follow_crossing(generations, kick_steps, kicks):
    assert Stages(generations=generations, kick_steps=kick_steps).kicks == kicks
