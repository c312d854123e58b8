"""The search for one layer: known optima, the straightforward search as a peer, and what it
costs."""

import math

import pytest
import torch

import wordsens as ws
from benchmarks.operations import OperationCount
from benchmarks.plain import dense_ascent
from tests.search.functions import word_change
from wordsens.activations import ACTIVATIONS
from wordsens.maps import dense
from wordsens.search.ascent import ascend
from wordsens.search.climb import BallProblem
from wordsens.search.krylov import LANCZOS_STEPS, CircleLimits, climb_great_circles, krylov_search
from wordsens.search.objective import Ball
from wordsens.search.plan import Stages
from wordsens.seeds import generator
from wordsens.text.synthetic import gaussian_text


@pytest.mark.parametrize(("n", "d"), [(4, 3), (4, 40)])
def test_the_identity_has_the_largest_singular_value_as_its_sensitivity(n, d):
    """S of word i is sqrt(d) ‖V_i‖_op / ‖V flat(X)‖; the Krylov space is the whole space for d = 3,
    not for d = 40."""
    phi = ws.RandomFeatures(n, d, width=80, activation="identity", gaussian="dense")
    X = gaussian_text(n, d)
    r = ws.word_sensitivity(phi, X, search="thorough")
    blocks = phi.weight.view(80, n, d).transpose(0, 1)
    exact = math.sqrt(d) * torch.linalg.matrix_norm(blocks, 2) / phi(X).norm()
    torch.testing.assert_close(r.per_word, exact, rtol=1e-7, atol=0)
    assert bool(r.converged.all())


def test_it_finds_what_the_straightforward_search_finds_from_many_starts():
    n, d = 8, 12
    phi = ws.RandomFeatures(n, d, gaussian="dense")
    X = gaussian_text(n, d)
    r = ws.word_sensitivity(phi, X, words=[0, 5])
    for value, word in zip(r.per_word.tolist(), [0, 5], strict=True):
        best = max(
            dense_ascent([phi.weight], X.rows, word, seed=seed, steps=200).value
            for seed in range(12)
        )
        assert value >= best * (1 - 1e-3)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_finds_what_the_general_search_finds(activation):
    n, d = 8, 12
    phi = ws.RandomFeatures(n, d, activation=activation, gaussian="dense")
    change = word_change(phi, gaussian_text(n, d).rows)
    words = torch.arange(n)
    ball = Ball(torch.full((n,), math.sqrt(d), dtype=torch.float64))
    general = Stages(starts=8, steps=20, finish=60)
    problem = BallProblem(change, words, ball.radius.unsqueeze(1), [generator(0, "search")])
    reference = ascend(problem, general)
    found = krylov_search(problem, change.stages)
    assert bool((found.squared >= reference.squared * (1 - 4e-3)).all())
    torch.testing.assert_close(
        found.squared, change.value(found.perturbations, words), rtol=1e-9, atol=0
    )
    assert ball.contains(found.perturbations.squeeze(1))


def test_it_asks_few_products():
    n, d = 40, 48
    phi = ws.RandomFeatures(n, d, gaussian="lazy")
    r = ws.word_sensitivity(phi, gaussian_text(n, d), words=[3])
    right, left = phi.layers[0].queries
    steps = r.evaluations - 1 - LANCZOS_STEPS  # one evaluation recomputes the witness
    assert LANCZOS_STEPS < left <= LANCZOS_STEPS + steps <= 64
    # The text, its part in the word, the Lanczos vectors, and one direction a step.
    assert right <= 2 + LANCZOS_STEPS + steps
    assert bool(r.converged.all())


def climbed(n, d, look_every):
    """Words of one text from three points each, as far as they rise, and what was asked of the
    device."""
    phi = ws.RandomFeatures(n, d, 120, "tanh", gaussian="dense")
    change = word_change(phi, gaussian_text(n, d).rows)
    entry = change.entry(torch.arange(n), torch.full((n,), math.sqrt(d)))
    point = torch.randn(n, 3, d, generator=generator(0, "points"), dtype=torch.float64)
    point = torch.nn.functional.normalize(point, dim=2)
    with OperationCount() as count:
        circles = climb_great_circles(
            change,
            entry,
            point,
            entry.forward(point),
            CircleLimits(60, 1e-5, look_every=look_every),
        )
    return circles, count


def test_words_that_have_ended_change_no_value_of_others_and_are_not_counted():
    """Whether climbs are looked at after every step, so that words drop out in turn, or never
    before the end."""
    often, _ = climbed(12, 10, look_every=1)
    never, _ = climbed(12, 10, look_every=60)
    assert bool(often.ended.all())
    assert len(often.steps.amax(dim=1).unique()) > 3
    # Climbs end where a step gains less than 1e-5: rounding, which they magnify, may cost a step.
    torch.testing.assert_close(often.squared, never.squared, rtol=1e-5, atol=0)
    assert int((often.steps - never.steps).abs().max()) <= 1


def test_a_step_waits_for_the_device_only_where_it_looks():
    """Of a climb the host may ask how many words go on, and which; a step has no more operations
    for more words."""
    few, count = climbed(4, 10, look_every=5)
    looks = int(few.steps.max()) // 5 + 2
    assert count.waits <= 2 * looks
    more, larger = climbed(16, 10, look_every=5)
    steps, more_steps = (5 * (int(circles.steps.max()) // 5 + 1) for circles in (few, more))
    assert larger.operations / more_steps <= 1.2 * count.operations / steps


@pytest.mark.parametrize(("seed", "width"), [(9, 2), (48, 4), (86, 2)])
def test_slopes_that_underflow_leave_the_search_finite(seed, width, monkeypatch):
    """Under gelu a unit far below zero has a slope of 1e-78 and less, and the square of its
    gradient underflows."""
    monkeypatch.setattr(dense, "NARROW", 0)
    X = ws.gaussian_text(5, 6, seed=seed).rows.clone()
    X[1] *= 100
    phi = ws.RandomFeatures(5, 6, width, "gelu", seed=seed)
    found = ws.word_sensitivity(phi, X, certificate=False)
    points = torch.randn(5, 400, 6, generator=generator(seed, "points"), dtype=torch.float64)
    points = 6**0.5 * torch.nn.functional.normalize(points, dim=2)
    base = phi(X)
    for word in range(5):
        texts = X.expand(400, -1, -1).clone()
        texts[:, word] += points[word]
        changes = torch.linalg.vector_norm(phi(texts) - base, dim=1) / torch.linalg.vector_norm(
            base
        )
        assert float(found.per_word[word]) >= float(changes.max())


def test_converged_words_rise_by_less_than_two_per_cent_per_radius():
    """The gradient of f on the sphere of each witness, by autograd through the whole map."""
    n, d = 12, 20
    phi, X = ws.RandomFeatures(n, d, activation="tanh", gaussian="dense"), gaussian_text(n, d)
    shares, converged = [], []
    for steps in (1, 3, 40):
        found = ws.word_sensitivity(phi, X, search=ws.SearchPlan(starts=1, steps=steps))
        converged += found.converged.tolist()
        for word, delta in zip(found.words.tolist(), found.perturbations, strict=True):
            moved = delta.clone().requires_grad_(True)
            text = X.rows.clone()
            text[word] += moved
            f = (phi(text) - phi(X)).square().sum()
            (slope,) = torch.autograd.grad(f, moved)
            outward = delta / delta.norm()
            rest = slope - slope @ outward * outward
            shares.append(float(rest.norm() * math.sqrt(d) / f.detach()))
    # On the way from the point short steps decide: shares between the two may go either way.
    assert all(answer for share, answer in zip(shares, converged, strict=True) if share < 0.02)
    assert not any(answer for share, answer in zip(shares, converged, strict=True) if share > 0.03)
    assert 5 < sum(converged) < len(converged) - 5


def test_conjugate_directions_find_the_largest_eigenvalue_in_few_steps():
    """Of 80 eigenvalues, the largest two 1 % apart: 80 steps along gradients come nowhere near."""
    d = 80
    phi = ws.RandomFeatures(2, d, width=d, activation="identity", gaussian="dense")
    values = torch.linspace(0.5, 0.99, d, dtype=torch.float64)
    values[-1] = 1.0
    stream = generator(1, "frame")
    frame = torch.linalg.qr(torch.randn(d, d, generator=stream, dtype=torch.float64)).Q
    phi.layers[0].matrix[:, :d] = values.sqrt().unsqueeze(1) * frame.T
    change = word_change(phi, gaussian_text(2, d).rows)
    entry = change.entry(torch.arange(1), torch.ones(1, dtype=torch.float64))
    point = torch.randn(1, 5, d, generator=stream, dtype=torch.float64)
    point = torch.nn.functional.normalize(point, dim=2)
    circles = climb_great_circles(
        change, entry, point, entry.forward(point), CircleLimits(d + 10, 0.0)
    )
    torch.testing.assert_close(circles.squared, torch.ones(1, 5).double(), rtol=1e-5, atol=0)
