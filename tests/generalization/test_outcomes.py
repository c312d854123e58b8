"""One search for all objectives, against the definition, a map whose optimum is known, and searches
one by one."""

from itertools import product

import pytest
import torch

import wordsens as ws
from tests.generalization.test_frontier import GAMMAS, data, linear_frontier
from wordsens.generalization import TRAININGS
from wordsens.generalization.loss import Loss, Losses
from wordsens.generalization.new_text import losses_under
from wordsens.maps.function import FunctionFeatures

OBJECTIVES = ("fine-tuned-alignment", "retrained-alignment", "error", "penalized-error")


def new_text(name, seed=0, d=6, y=-1):
    texts, labels, x = data(seed)
    phi = ws.RandomFeatures(4, d, 40) if name == "rf" else ws.RandomAttentionFeatures(d, name)
    return ws.NewText(ws.fit_min_norm(phi, texts, labels), x, y)


@pytest.mark.parametrize("radius", [0.2, 0.6])
def test_the_linear_map_reaches_its_known_frontiers_and_errors(radius):
    texts, labels, x = data(2)
    phi = FunctionFeatures(lambda X: X, batched=True, name="identity")
    new = ws.NewText(ws.fit_min_norm(phi, texts, labels), x, 1)
    found = new.outcomes(1, gammas=GAMMAS, radius=radius)
    for training in TRAININGS:
        known = [linear_frontier(new, training, 1, radius, limit) for limit in GAMMAS]
        assert found.frontier(training).errors.tolist() == pytest.approx(known, abs=2e-3)
        least = linear_frontier(new, training, 1, radius, 1e6)
        assert found.of(training, "error").error == pytest.approx(least, abs=2e-3)
        # F + 1 of a linear map is least along the part of its direction that the word sees.
        direction = new.update(training).direction.view(*new.rows.shape)
        least = float((direction * new.rows.double()).sum()) - radius * float(direction[1].norm())
        aligned = found.of(training, "alignment")
        assert aligned.alignment == pytest.approx(max(least, -1.0), abs=2e-3)


@pytest.mark.parametrize("name", ["softmax", "relu", "rf"])
def test_every_number_is_that_of_its_witness(name):
    new = new_text(name)
    found = new.outcomes(2, gammas=GAMMAS, penalty=0.5)
    assert {(one.training, one.objective) for one in found.chosen} == set(
        product(TRAININGS, OBJECTIVES)
    )
    assert len(found.chosen) == 8
    for one in found.chosen:
        training, objective = one.training, one.objective
        assert found.of(training, objective) is one and one.word == 2
        assert float(one.perturbation.norm()) <= one.radius * (1 + 1e-6)
        rows = new.rows.clone()
        rows[2] += one.perturbation
        features = new.fit.map(rows)
        shift = float((features - new.features) @ new.fit.theta)
        align = {kind: float(features @ new.update(kind).direction) for kind in TRAININGS}
        assert one.gamma == pytest.approx(abs(shift)) and one.alignment == pytest.approx(
            align[training]
        )
        after = float(features @ new.fit.theta) + align[training] * new.surprise
        assert one.error == pytest.approx((after + new.label) ** 2, abs=1e-9)
        kind = objective.removesuffix("-alignment")
        expected = (align[kind] + 1) ** 2 if kind in TRAININGS else one.error
        if objective == "penalized-error":
            expected += 0.5 * shift**2
        assert one.loss == pytest.approx(expected, abs=1e-9)
    for training in TRAININGS:
        frontier = found.frontier(training)
        assert frontier.training == training and frontier.gammas.tolist() == list(GAMMAS)
        assert bool((frontier.attained_gammas <= frontier.gammas).all())
        assert bool((frontier.errors.diff() <= 0).all())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "relu", "rf"])
def test_losses_are_on_average_no_higher_than_in_searches_of_their_own(name):
    gaps = []
    for seed in (3, 4, 5):
        new = new_text(name, seed)
        found = new.outcomes(1, gammas=GAMMAS)
        for one in found.chosen:
            alone = new.generalization(1, training=one.training, objective=one.objective)
            gaps.append(one.loss - alone.loss)
        for frontier in found.frontiers:
            alone = new.frontier(1, training=frontier.training, gammas=GAMMAS)
            gaps += (frontier.errors - alone.errors).tolist()
    assert len(gaps) == 48
    assert max(gaps) < 0.03 and sum(gaps) / len(gaps) < 0.002


def test_derivatives_agree_with_autograd():
    new = new_text("softmax")
    named = [
        Loss.of(training, objective, 0.7) for training, objective in product(TRAININGS, OBJECTIVES)
    ]
    limits = torch.tensor(GAMMAS, dtype=torch.float64)
    losses = Losses(
        new, [*named, *(loss for training in TRAININGS for loss in losses_under(training, limits))]
    )
    values = torch.randn(len(losses), 3, generator=torch.Generator().manual_seed(1)).to(
        new.rows.dtype
    )
    losses.raise_multipliers(values[:, 0])
    assert bool((losses.multipliers[: len(named)] == 0).all()) and bool(
        (losses.multipliers > 0).any()
    )
    values = values.double().requires_grad_()
    items = torch.arange(len(values))
    loss, slopes = losses.loss(values, items)
    (expected,) = torch.autograd.grad(loss.sum(), values)
    torch.testing.assert_close(slopes.detach(), expected, rtol=1e-6, atol=1e-6)
    reached = losses.reached(values.detach())
    free = len(named)
    torch.testing.assert_close(
        reached[items, items][:free], loss.detach()[:free], rtol=1e-6, atol=1e-9
    )
    outside = values[:, :1].abs() > losses.limit
    assert bool(
        (reached.isinf() == outside)[(values[:, :1].abs() / losses.limit - 1).abs() > 1e-3].all()
    )
