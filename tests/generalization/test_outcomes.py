"""One search for all objectives, against the definition, a map whose optimum is known, and searches
one by one."""

from itertools import product

import pytest
import torch

import wordsens as ws
from tests.generalization.test_frontier import GAMMAS, data
from wordsens.generalization import TRAININGS
from wordsens.generalization.loss import INSIDE, Loss
from wordsens.maps.function import FunctionFeatures

OBJECTIVES = ("fine-tuned-alignment", "retrained-alignment", "error", "penalized-error")


def new_text(name, seed=0, d=6, y=-1, ridge=0.0):
    texts, labels, x = data(seed)
    phi = ws.RandomFeatures(4, d, 40) if name == "rf" else ws.RandomAttentionFeatures(d, name)
    return ws.NewText(ws.fit_min_norm(phi, texts, labels, ridge=ridge), x, y)


@pytest.mark.parametrize("name", ["softmax", "relu", "rf"])
def test_every_number_is_that_of_its_witness(name):
    new = new_text(name)
    found = new.outcomes(2, gammas=GAMMAS, penalty=0.5)
    for training, objective in product(TRAININGS, OBJECTIVES):
        one = found.chosen[training][objective]
        assert (one.training, one.objective, one.word) == (training, objective, 2)
        assert float(one.perturbation.norm()) <= one.radius * (1 + 1e-6)
        outputs = {kind: new.outputs(2, one.perturbation, kind) for kind in TRAININGS}
        own = outputs[training]
        assert (one.gamma, one.alignment, one.error) == (own.gamma, own.alignment, own.error)
        expected = {
            "error": own.error,
            "penalized-error": own.error + 0.5 * own.gamma**2,
            **{f"{kind}-alignment": (read.alignment + 1) ** 2 for kind, read in outputs.items()},
        }
        assert one.loss == pytest.approx(expected[objective], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "relu", "rf"])
def test_losses_are_on_average_no_higher_than_in_searches_of_their_own(name):
    gaps = []
    for seed in (3, 4, 5):
        new = new_text(name, seed)
        found = new.outcomes(1, gammas=GAMMAS)
        for training, objective in product(TRAININGS, OBJECTIVES):
            one = found.chosen[training][objective]
            alone = new.generalization(1, training=training, objective=objective)
            gaps.append(one.loss - alone.loss)
        for frontier in found.frontiers.values():
            alone = new.frontier(1, training=frontier.training, gammas=GAMMAS)
            gaps += (frontier.errors - alone.errors).tolist()
    assert len(gaps) == 48
    assert max(gaps) < 0.03 and sum(gaps) / len(gaps) < 0.002


@pytest.mark.parametrize("word", [2, (0, 3)])
def test_derivatives_agree_with_differences_and_values_with_the_definition(word):
    """Of every loss, before and after a step of the multipliers; each item is a loss. With a ridge
    F of the unchanged text is not 1."""
    new = new_text("softmax", ridge=0.5)
    losses = [Loss(*choice, 0.7) for choice in product(TRAININGS, OBJECTIVES)]
    losses += [Loss(kind, "error", limit=limit) for kind in TRAININGS for limit in GAMMAS]
    objective = new.objective(word, losses)
    items = objective.items(torch.tensor([0]))[0]
    stream = torch.Generator().manual_seed(1)
    delta, step = torch.randn(2, len(items), *objective.shape, generator=stream).double()
    outputs = [
        [new.outputs(word, point.squeeze(0), kind) for kind in (loss.training, loss.kind)]
        for loss, point in zip(losses, delta, strict=True)
    ]
    past = [
        own.gamma - loss.limit * (1 - INSIDE)
        for loss, (own, _) in zip(losses, outputs, strict=True)
    ]
    plain = torch.tensor(
        [
            (read.alignment + 1) ** 2
            if loss.objective.endswith("alignment")
            else own.error + 0.7 * own.gamma**2 * (loss.objective == "penalized-error")
            for loss, (own, read) in zip(losses, outputs, strict=True)
        ]
    )
    multiplier = torch.zeros(len(losses))
    for _ in range(2):
        force = (multiplier + 50 * torch.tensor(past)).clamp(min=0)
        value, slope = objective.value_and_gradient(delta, items)
        expected = 1 / (1 + plain + force.square() / 100)
        torch.testing.assert_close(value, expected.double(), rtol=1e-5, atol=1e-7)
        above, below = (objective.value(delta + h * step, items) for h in (1e-5, -1e-5))
        along = (slope * step).flatten(start_dim=1).sum(dim=1)
        torch.testing.assert_close(along, (above - below) / 2e-5, rtol=1e-4, atol=1e-7)
        objective.raise_multipliers(delta, items)
        multiplier = force
    assert float(force.max()) > 0 and bool((force[: 2 * len(OBJECTIVES)] == 0).all())


def test_two_words_of_the_linear_map_reach_the_known_optimum_in_their_joint_ball():
    texts, labels, x = data(2)
    phi = FunctionFeatures(lambda X: X, batched=True, name="identity")
    new = ws.NewText(ws.fit_min_norm(phi, texts, labels), x, 1)
    for training in TRAININGS:
        theta = (new.fit.theta + new.direction(training) * new.surprise).view(*new.rows.shape)
        least = max(0.0, 2 - 0.3 * float(theta[[3, 1]].norm())) ** 2
        alone = new.generalization([3, 1], training=training, objective="error", radius=0.3)
        assert alone.error == pytest.approx(least, abs=1e-4)
        assert alone.word == (3, 1) and alone.radius == (0.3, 0.3)
        assert alone.perturbation.shape == (2, 6) and float(alone.perturbation.norm()) <= 0.3
        outcomes = new.outcomes((3, 1), gammas=GAMMAS, radius=0.3)
        assert outcomes.chosen[training]["error"].error == pytest.approx(least, abs=2e-3)
        frontier = outcomes.frontiers[training]
        assert frontier.words.tolist() == [[3, 1]] * len(GAMMAS)
        for limit, error, delta in zip(
            GAMMAS, frontier.errors.tolist(), frontier.perturbations, strict=True
        ):
            outputs = new.outputs((3, 1), delta, training)
            assert outputs.error == pytest.approx(error, abs=1e-9) and outputs.gamma <= limit


def test_the_group_of_one_word_is_that_word():
    new = new_text("relu")
    word, group = (new.generalization(one, search="quick") for one in (2, [2]))
    assert word.to_dict() | {"seconds": 0} == group.to_dict() | {"seconds": 0}
