"""The frontier against a map whose frontier is known, and its own rules."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.generalization import TRAININGS
from wordsens.generalization.loss import Loss
from wordsens.maps.function import FunctionFeatures
from wordsens.seeds import generator

WORDS, D, N_TEXTS = 4, 6, 9
GAMMAS = (0.1, 0.5, 1.0, 1.5)
SHORT = {"search": ws.SearchPlan("quick", starts=8, steps=5)}


def data(seed=0):
    texts = [ws.gaussian_text(WORDS, D, seed=100 * seed + index) for index in range(N_TEXTS + 1)]
    labels = torch.randn(N_TEXTS, generator=generator(seed, "labels")).sign().tolist()
    return texts[:-1], labels, texts[-1]


def linear_frontier(new, training, word, radius, limit):
    """min over ‖Delta‖ <= radius, |a.Delta| <= limit of (2 + (a + b).Delta)² for y = +1, on a fine
    grid."""
    a = new.fit.theta.view(WORDS, D)[word]
    b = new.direction(training).view(WORDS, D)[word] * new.surprise
    # Only the span of a and b matters: Delta = s e1 + t e2, e1 along a.
    e1 = a / a.norm()
    rest = b - (b @ e1) * e1
    along, across = float(b @ e1) + float(a.norm()), float(rest.norm())
    s = torch.linspace(-1, 1, 200_001, dtype=torch.float64) * min(radius, limit / float(a.norm()))
    least = s * along - (radius**2 - s.square()).clamp(min=0).sqrt() * across
    return float((2 + least).clamp(min=0).min() ** 2)


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("radius", [0.2, 0.6])
def test_the_linear_map_reaches_its_known_frontier(training, radius):
    texts, labels, x = data(2)
    phi = FunctionFeatures(lambda X: X, batched=True, name="identity")
    new = ws.NewText(ws.fit_min_norm(phi, texts, labels), x, 1)
    frontier = new.frontier(1, training=training, gammas=GAMMAS, radius=radius, **SHORT)
    found = new.outcomes(1, gammas=GAMMAS, radius=radius)
    known = [linear_frontier(new, training, 1, radius, limit) for limit in GAMMAS]
    for errors in (frontier.errors, found.frontiers[training].errors):
        assert errors.tolist() == pytest.approx(known, abs=2e-3)
    least = linear_frontier(new, training, 1, radius, 1e6)
    assert found.chosen[training]["error"].error == pytest.approx(least, abs=2e-3)
    # F + 1 of a linear map is least along the part of its direction that the word sees.
    direction = new.direction(training).view(WORDS, D)
    least = float((direction * new.rows.double()).sum()) - radius * float(direction[1].norm())
    aligned = found.chosen[training][f"{training}-alignment"]
    assert aligned.alignment == pytest.approx(max(least, -1.0), abs=2e-3)
    of_words = [
        [linear_frontier(new, training, word, radius, limit) for word in range(WORDS)]
        for limit in GAMMAS
    ]
    best = new.frontier("all", training=training, gammas=GAMMAS, radius=radius, **SHORT)
    assert best.errors.tolist() == pytest.approx([min(values) for values in of_words], abs=2e-3)


@pytest.mark.parametrize(
    ("name", "word"), [("softmax", "all"), ("relu", 0), ("rf", 1), ("rf", "all")]
)
def test_the_frontier_obeys_its_limits_and_never_rises(name, word):
    texts, labels, x = data()
    phi = ws.RandomFeatures(WORDS, D, 40) if name == "rf" else ws.RandomAttentionFeatures(D, name)
    new = ws.NewText(ws.fit_min_norm(phi, texts, labels), x, -1)
    frontier = new.frontier(word, training="retrained", gammas=reversed(GAMMAS), **SHORT)
    assert frontier.gammas.tolist() == list(GAMMAS)
    assert bool((frontier.attained_gammas <= frontier.gammas).all())
    assert bool((frontier.errors.diff() <= 0).all())
    assert float(frontier.errors[0]) <= frontier.error_unchanged == pytest.approx(4.0)
    for index, limit in enumerate(GAMMAS):
        at, delta = int(frontier.words[index]), frontier.perturbations[index]
        outputs = new.outputs(at, delta, "retrained")
        assert (outputs.after - 1) ** 2 == pytest.approx(float(frontier.errors[index]), abs=1e-9)
        assert float(delta.norm()) <= math.sqrt(D) * (1 + 1e-12)
        assert frontier.at(limit) == float(frontier.errors[index])
    assert frontier.at(0.01) == frontier.error_unchanged
    assert frontier.columns()["(2 - limit)^2"] == pytest.approx(
        [(2 - limit) ** 2 for limit in GAMMAS]
    )


def test_a_point_on_its_limit_does_not_push_out_one_inside():
    # Recomputed, the point on the limit may lie past it and not count: then the limit would be left
    # with nothing.
    texts, labels, x = data()
    new = ws.NewText(ws.fit_min_norm(ws.RandomAttentionFeatures(D), texts, labels), x, -1)
    objective = new.objective("all", [Loss("retrained", "error", limit=1.0)])
    on_it, inside = torch.full((1, 1, D), 2.0), torch.full((1, 1, D), 3.0)
    for shift, point in ((1.0 - 1e-6, on_it), (1.0 - 1e-4, inside), (1.0, on_it)):
        values = torch.tensor([[shift, 0.0]], dtype=torch.float64)
        objective.remember(values, torch.tensor([2]), point.double())
    assert objective.points.tolist() == inside.tolist()
    assert objective.groups.tolist() == [2]
