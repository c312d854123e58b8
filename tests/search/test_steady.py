"""Points at the edge of a jump, where rounding decides which side they are on."""

import math

import pytest
import torch
from wordsens.search.ascents import Ascents
from wordsens.search.steady import steadied

from wordsens.search.climb import Climb
from wordsens.search.objective import Objective
from wordsens.search.plan import Stages
from wordsens.seeds import generator

EDGE = 0.5


class Beside(Objective):
    """(1 minus the distance to the plane Delta_0 = EDGE)² on its upper side, nothing on the other."""

    farthest = 0.0

    def __init__(self):
        super().__init__((2,), dtype=torch.float64, device=torch.device("cpu"), memory_budget=1 << 20)

    def bytes_per_pair(self):
        return 1

    def _evaluate(self, perturbations, words, *, gradient):
        Beside.farthest = max(Beside.farthest, float(torch.linalg.vector_norm(perturbations, dim=1).max()))
        distance = perturbations[:, 0] - EDGE
        upper = distance > 0
        value = torch.where(upper, 1 - distance, 0.0)
        slope = torch.zeros_like(perturbations)
        slope[:, 0] = torch.where(upper, -2 * value, 0.0)
        return value.square(), slope if gradient else None


def steadied_from(points, candidates):
    w = len(points)
    words, radius = torch.arange(w), torch.ones(w, dtype=torch.float64)
    plan = Stages(starts=1, finalists=2, climb_steps=3)
    ascents = Ascents(Beside(), words, radius, 1, plan, [generator(0, "steady")], lambda: None)
    climb = Climb(ascents.objective, words, radius, torch.tensor(points, dtype=torch.float64))
    seen = climb.squared.clone()
    best, converged = steadied(ascents, climb, torch.ones(w, dtype=torch.bool), candidates)
    chosen = ascents.winners(best)
    return seen, best.x[chosen], best.squared[chosen], converged[chosen], ascents.evaluations


def attained(x):
    return Beside()._evaluate(x, None, gradient=False)[0]


def test_a_point_that_a_last_digit_turns_is_moved_and_the_others_stay():
    above = math.nextafter(EDGE, 1.0)
    points = [[above, 0.0], [EDGE + 1e-9, 0.0], [above, (1 - 1e-12) * 0.75**0.5]]
    none = torch.empty(0, 3, 2, dtype=torch.float64)
    seen, x, squared, converged, evaluations = steadied_from(points, none)
    assert bool((seen > 1 - 1e-8).all())
    assert x[1].tolist() == points[1]
    assert bool(converged[1]) and evaluations[1] == 3
    for at in (0, 2):
        assert x[at].tolist() != points[at]
        assert squared[at] > 1 - 1e-6
        assert not converged[at]
        assert evaluations[at] > 300
    assert bool((torch.linalg.vector_norm(x, dim=1) <= 1).all())
    assert Beside.farthest <= 1
    for way in (1, -1):
        assert bool((attained(x + way * 4e-16) > 1 - 1e-6).all())


def test_where_nothing_near_is_steady_a_candidate_is_taken():
    """A line of width 1e-15 on which the objective is 1; the candidate attains .36."""

    class Line(Beside):
        def _evaluate(self, perturbations, words, *, gradient):
            on_line = (perturbations[:, 0] - EDGE).abs() < 1e-16
            value = torch.where(on_line, 1.0, 0.36 * (perturbations[:, 1] > 0.9).double())
            return value, torch.zeros_like(perturbations) if gradient else None

    words, radius = torch.zeros(1, dtype=torch.long), torch.ones(1, dtype=torch.float64)
    ascents = Ascents(Line(), words, radius, 1, Stages(climb_steps=2), [generator(0, "steady")], lambda: None)
    climb = Climb(ascents.objective, words, radius, torch.tensor([[EDGE, 0.0]], dtype=torch.float64))
    assert climb.squared.tolist() == [1.0]
    candidates = torch.tensor([[[0.0, 0.95]], [[0.0, 0.5]]], dtype=torch.float64)
    best, converged = steadied(ascents, climb, torch.ones(1, dtype=torch.bool), candidates)
    winner = ascents.winners(best)
    assert not converged[winner]
    assert best.squared[winner].tolist() == [0.36]
    assert best.x[winner].tolist() == [[0.0, 0.95]]


def test_in_a_ball_of_few_roundings_a_slope_is_no_jump():
    words, radius = torch.zeros(1, dtype=torch.long), torch.full((1,), 1e-12, dtype=torch.float64)

    class Slope(Beside):
        def _evaluate(self, perturbations, words, *, gradient):
            slope = torch.zeros_like(perturbations)
            slope[:, 0] = 1e12
            return 1 + 1e12 * perturbations[:, 0], slope if gradient else None

    ascents = Ascents(Slope(), words, radius, 1, Stages(), [generator(0, "steady")], lambda: None)
    climb = Climb(ascents.objective, words, radius, torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    best, converged = steadied(ascents, climb, torch.ones(1, dtype=torch.bool), torch.empty(0, 1, 2))
    assert len(best) == 1 and bool(converged.all())
    assert best.squared.tolist() == pytest.approx([2.0])
