"""The training loop: it learns, stops early, and its seeds decide all."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.training.judge import judged

TASK = ws.training.one_word_task(ws.training.TaskSize(n=6, d=8, training=256, validation=64, test=128))
PLAN = ws.training.TrainingPlan(steps=150, every=50, rate=1e-2)


def network(layer="softmax"):
    return ws.training.build_network(ws.training.Architecture(layer=layer, hidden=16), 6, 8)


def controls():
    penalty = ws.training.SensitivityPenalty
    return {
        "none": lambda net: None,
        "hold": lambda net: ws.training.SensitivityControl(penalty(net.features, target=0.5)),
        "spectral": lambda net: ws.training.SpectralPenalty(),
        "dropout": lambda net: ws.training.WordDropout(0.3),
        "adversarial": lambda net: ws.training.AdversarialWords(0.3),
    }


def test_attention_learns_the_word_that_decides():
    net = network()
    before = judged(net, TASK.test)[1]
    found = ws.training.train(net, TASK, PLAN)
    assert before < 0.7
    assert judged(net, TASK.test)[1] > 0.95
    assert [table.step for table in found.looks] == [50, 100, 150]
    assert found.looks[-1].loss < found.looks[0].loss
    assert (found.steps, found.best) == (150, 150)


@pytest.mark.parametrize("name", controls())
def test_the_seeds_alone_decide(name):
    plan = ws.training.TrainingPlan(steps=12, every=6, rate=1e-2)
    first, second = network(), network()
    trainings = [ws.training.train(net, TASK, plan, controls()[name](net)) for net in (first, second)]
    assert trainings[0].looks == trainings[1].looks
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))


def test_training_stops_early_and_keeps_the_best_weights():
    few = ws.training.one_word_task(ws.training.TaskSize(n=6, d=8, training=8, validation=64, test=8))
    net = network("dense")
    found = ws.training.train(net, few, ws.training.TrainingPlan(steps=400, every=10, patience=2, rate=1e-2))
    losses = [table.loss for table in found.looks]
    assert found.steps < 400
    assert losses.index(min(losses)) == len(losses) - 3
    assert found.best == found.looks[-3].step
    assert judged(net, few.validation)[0] == min(losses)


def test_a_loss_that_is_no_number_ends_the_training():
    net = network()
    net.head.weight.data.fill_(float("nan"))
    with pytest.raises(InputError, match="the loss is nan at step 0; lower `rate`"):
        ws.training.train(net, TASK, PLAN)
