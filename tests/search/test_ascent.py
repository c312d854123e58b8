"""The multistart ascent on functions whose maximum over the ball is known."""

import math

import pytest
import torch

import wordsens as ws
from tests.search.functions import Function, quadratic
from wordsens.search.ascent import _Ascent, ascend
from wordsens.search.climb import PATIENCE, BallProblem, Climb, Momentum, QuasiNewton, verified
from wordsens.search.objective import SearchResult
from wordsens.search.plan import Stages
from wordsens.seeds import generator


def problem_of(objective, radius, *, blocks=1, joint=False, seed=0):
    radius = torch.atleast_1d(torch.as_tensor(radius, dtype=torch.float64))
    words, streams = torch.arange(len(radius)), [generator(seed, "ascent")]
    return BallProblem(objective, words, radius.unsqueeze(1).expand(-1, blocks), streams, joint)


def maximum(objective, radius, *, blocks=1, seed=0):
    problem = problem_of(objective, radius, blocks=blocks, seed=seed)
    words, radius = problem.places, problem.radius[:, 0]
    best = ascend(problem, objective.stages)
    parts = best.perturbations.reshape(len(radius), blocks, -1)
    assert bool((parts.norm(dim=2).double() <= radius.unsqueeze(1) * (1 + 1e-12)).all())
    torch.testing.assert_close(
        best.squared, objective.value(best.perturbations, words), rtol=1e-5, atol=1e-12
    )
    return best


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_on_the_sphere(dtype, tolerance):
    """The maximum of a positive semidefinite form is its largest eigenvalue times the squared
    radius."""
    f, A, _ = quadratic(20, 0, dtype=dtype)
    radius = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    best = maximum(Function(f, (20,), dtype=dtype), radius)
    exact = float(torch.linalg.eigvalsh(A.double())[-1]) * radius.square()
    assert best.perturbations.dtype == dtype
    torch.testing.assert_close(best.squared.double(), exact, rtol=tolerance, atol=0)
    assert bool(best.converged.all())


@pytest.mark.parametrize("kinked", [False, True])
def test_inside_the_ball(kinked):
    peak = torch.tensor([0.3, -0.2, 0.1, 0.0], dtype=torch.float64)
    objective = Function(lambda x: 1 / (1 + (x - peak).square().sum(dim=-1)), (4,), kinked=kinked)
    best = maximum(objective, 2.0)
    torch.testing.assert_close(best.perturbations[0], peak, rtol=0, atol=1e-3 if kinked else 1e-6)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_hill_that_few_random_points_see(share):
    """A narrow peak on the sphere of R^3 beside a broad one that is lower."""
    narrow, broad = torch.eye(3, dtype=torch.float64)[:2]

    def f(x):
        return 2 * torch.exp((x @ narrow - 1) / share) + torch.exp(x @ broad - 1)

    best = maximum(Function(f, (3,), stages=Stages(starts=64, generations=4)), 1.0)
    assert float(best.squared[0]) >= 2 + math.exp(-1)


def test_several_blocks_have_a_ball_each():
    """sum_k a_k . Delta_k is largest at Delta_k = radius a_k / ‖a_k‖."""
    slopes = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    objective = Function(lambda x: 100 + (x * slopes).sum(dim=(1, 2)), (3, 5))
    best = maximum(objective, [1.5, 2.0], blocks=3)
    exact = 100 + torch.tensor([1.5, 2.0], dtype=torch.float64) * slopes.norm(dim=1).sum()
    torch.testing.assert_close(best.squared, exact, rtol=1e-12, atol=0)


def test_a_step_follows_the_slopes_before_it_too():
    """The slope is along x_0 first and along x_1 then: the second step goes along (.7, 1)."""

    def f(x):
        return 10 + (10 * x[:, 0]).clamp(max=0.5) + (x[:, 0] > 0.05) * x[:, 1]

    start = torch.zeros(1, 2, dtype=torch.float64)
    climb = Climb(problem_of(Function(f, (2,), kinked=True), 1.0), start)
    rule = Momentum(climb, first=0.1)
    rule.step(climb, 0.0)
    before = climb.x.clone()
    rule.step(climb, 0.0)
    torch.testing.assert_close(before, torch.tensor([[0.1, 0.0]], dtype=torch.float64))
    step = torch.tensor([[0.7, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(climb.x - before, 0.13 * step / step.norm())


def test_a_child_of_equal_parents_is_their_point():
    objective = Function(lambda x: 10 + x.sum(dim=-1), (4,))
    ascent = _Ascent(problem_of(objective, torch.ones(3)), objective.stages, lambda: None)
    parent = torch.tensor([0.3, -0.5, 0.1, 0.2], dtype=torch.float64)
    children = ascent._children(parent.expand(3, 5, 4), 8)
    torch.testing.assert_close(children, parent.expand(3, 8, 4))


def test_a_kink_at_the_top():
    """-‖Delta - peak‖_1 has no gradient at its maximum, which lies inside the ball."""
    peak = torch.tensor([0.5, -0.3, 0.2, 0.4, -0.1], dtype=torch.float64)
    objective = Function(lambda x: 10 - (x - peak).abs().sum(dim=-1), (5,), kinked=True)
    assert float(maximum(objective, 1.0).squared[0]) >= 10 - 0.02


def test_a_piecewise_constant_function_is_sampled_and_not_called_converged():
    objective = Function(lambda x: 1 + (x > 0.2).double().sum(dim=-1) + 0 * x.sum(dim=-1), (6,))
    best = maximum(objective, 1.0)
    assert float(best.squared[0]) == 7
    assert not bool(best.converged.any())


def test_where_the_function_is_not_a_number():
    """NaN on half of the ball: the maximum of the other half is returned."""
    objective = Function(lambda x: torch.where(x[:, 0] > 0.5, torch.nan, 2 + x[:, 1]), (4,))
    best = maximum(objective, 1.0)
    assert float(best.squared[0]) == pytest.approx(3, rel=1e-6)
    everywhere = Function(lambda x: torch.nan * x[:, 0], (4,))
    best = ascend(problem_of(everywhere, 1.0), everywhere.stages)
    assert bool(torch.isfinite(best.perturbations).all())
    assert not bool(best.converged.any())


@pytest.mark.parametrize("radius", [1e-150, 1e-8, 1e-3, 1e3, 1e150])
def test_radii_of_all_sizes(radius):
    slope = torch.tensor([3.0, 4.0], dtype=torch.float64)
    best = maximum(Function(lambda x: (x / radius) @ slope + 6, (2,)), radius)
    assert float(best.squared[0]) == pytest.approx(11, rel=1e-9)


@pytest.mark.parametrize("radius", [1e-5, 1e-3])
def test_small_radii_reach_the_jacobians_limit(radius):
    X = ws.gaussian_text(5, 40, seed=1)
    phi = ws.FunctionFeatures(lambda text: torch.tanh(text @ text.T) @ text)
    limit = ws.jacobian_sensitivity(phi, X).per_word
    assert bool(
        (ws.word_sensitivity(phi, X, radius=radius).per_word >= 0.99 * radius * limit).all()
    )


@pytest.mark.parametrize("kinked", [False, True])
@pytest.mark.parametrize("radius", [2.0**-20, 2.0**12])
def test_a_change_of_units_changes_nothing(radius, kinked):
    """f(Delta / r) in a ball of radius r: every step is a number of radii, the longest too."""
    f, *_ = quadratic(6, 3, linear=4.0)
    stages = Stages(starts=4, steps=5, generations=1, finish=12)
    found = []
    for unit in (1.0, radius):
        objective = Function(lambda x, unit=unit: f(x / unit), (6,), stages=stages, kinked=kinked)
        found.append((maximum(objective, unit), unit))
    (plain, _), (scaled, unit) = found
    torch.testing.assert_close(scaled.perturbations / unit, plain.perturbations, rtol=0, atol=1e-12)
    assert torch.equal(scaled.spent, plain.spent)


@pytest.mark.parametrize("rule", [QuasiNewton, Momentum])
def test_no_step_is_longer_than_the_longest(rule):
    """A slope that grows along the way: every step wants to be longer, in radii of 1,000."""
    radius, longest = torch.tensor([1e3], dtype=torch.float64), 0.01
    objective = Function(lambda x: torch.exp(x[:, 0] / 100), (3,))
    climb = Climb(problem_of(objective, radius), -torch.eye(3, dtype=torch.float64)[:1])

    class Short(rule):
        LONGEST = longest

    steps, short = [], Short(climb, first=longest)
    for _ in range(12):
        before = climb.x.clone()
        short.step(climb, 0.0)
        steps.append(float((climb.x - before).norm()))
    assert max(steps) == pytest.approx(longest, rel=1e-6)


def test_quasi_newton_steps_learn_the_curvature():
    """A bowl whose axes differ by 100 in curvature, its top inside the ball: 30 steps, of which
    gradients alone would leave 1e-3."""
    curvature = torch.logspace(0, 2, 4, dtype=torch.float64)
    peak = torch.full((4,), 0.2, dtype=torch.float64)

    def loss(x):
        return (curvature * (x - peak).square()).sum(dim=-1)

    objective = Function(lambda x: 1e3 - loss(x), (4,))
    start = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    start = 0.9 * start / start.norm(dim=1, keepdim=True)
    climb = Climb(problem_of(objective, torch.ones(4)), start.clone())
    rule = QuasiNewton(climb)
    for _ in range(30):
        rule.step(climb, 0.0)
    assert float(loss(climb.x).max()) < 1e-8


@pytest.mark.parametrize("radius", [0.01, 30.0])
@pytest.mark.parametrize(
    ("share", "stationary"), [(0.0, False), (0.015, True), (0.025, False), (0.5, False)]
)
def test_converged_is_a_rise_of_less_than_two_per_cent_per_radius(share, stationary, radius):
    """f = 1 + share * Delta_1 / radius at Delta = 0 rises by that share of f per radius."""
    slope = share / radius
    objective = Function(lambda x: 1 + slope * x[:, 0] + 0 * x.sum(dim=1), (3,))
    reach = torch.tensor([radius], dtype=torch.float64)
    x = torch.full((1, 3), 1e-3, dtype=torch.float64)
    climb = Climb(problem_of(objective, reach), x)
    climb.idle += PATIENCE
    result = verified(climb)
    # A function without any slope is sampled, and not called converged.
    assert bool(result.converged) == stationary


def test_the_best_of_two_searches_is_word_by_word_all_that_the_better_found():
    """The first is better for words 0 and 1, the second for 2 and 3; each converged in every
    way."""

    def result(values, converged):
        squared = torch.tensor(values, dtype=torch.float64)
        return SearchResult(
            perturbations=squared.unsqueeze(1).expand(-1, 3),
            squared=squared,
            spent=torch.tensor([1, 2, 3, 4]),
            converged=torch.tensor(converged),
        )

    first = result([5.0, 6.0, 1.0, 2.0], [True, False, True, False])
    second = result([3.0, 4.0, 7.0, 8.0], [False, True, False, True])
    for best in (first.merge_best(second), second.merge_best(first)):
        assert best.squared.tolist() == [5.0, 6.0, 7.0, 8.0]
        assert best.perturbations[:, 0].tolist() == [5.0, 6.0, 7.0, 8.0]
        assert best.converged.tolist() == [True, False, False, True]
        assert best.evaluations == 20
