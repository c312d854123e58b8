"""The training loop: it learns, stops early, and its seeds decide all."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.studies import control
from wordsens.studies.control.judge import judged

TASK = control.one_word_task(control.TaskSize(n=6, d=8, training=256, validation=64, test=128))
PLAN = control.TrainingPlan(steps=150, every=50, rate=1e-2)


def network(layer="softmax"):
    return control.build_network(control.Architecture(layer=layer, hidden=16), 6, 8)


def controls():
    penalty = ws.training.SensitivityPenalty
    return {
        "none": lambda net: None,
        "hold": lambda net: control.SensitivityControl(penalty(net.features, target=0.5)),
        "spectral": lambda net: control.SpectralPenalty(),
        "dropout": lambda net: control.WordDropout(0.3),
        "adversarial": lambda net: control.AdversarialWords(0.3),
    }


def test_attention_learns_the_word_that_decides():
    net = network()
    before = judged(net, TASK.test)[1]
    found = control.train(net, TASK, PLAN)
    assert before < 0.7
    assert judged(net, TASK.test)[1] > 0.95
    assert [table.step for table in found.looks] == [50, 100, 150]
    assert found.looks[-1].loss < found.looks[0].loss
    assert (found.steps, found.best) == (150, 150)


@pytest.mark.parametrize("name", controls())
def test_the_seeds_alone_decide(name):
    plan = control.TrainingPlan(steps=12, every=6, rate=1e-2)
    first, second = network(), network()
    trainings = [control.train(net, TASK, plan, controls()[name](net)) for net in (first, second)]
    assert trainings[0].looks == trainings[1].looks
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))


def test_training_stops_early_and_keeps_the_best_weights():
    few = control.one_word_task(control.TaskSize(n=6, d=8, training=8, validation=64, test=8))
    net = network("dense")
    found = control.train(net, few, control.TrainingPlan(steps=400, every=10, patience=2, rate=1e-2))
    losses = [table.loss for table in found.looks]
    assert found.steps < 400
    assert losses.index(min(losses)) == len(losses) - 3
    assert found.best == found.looks[-3].step
    assert judged(net, few.validation)[0] == min(losses)


def test_a_loss_that_is_no_number_ends_the_training():
    net = network()
    net.head.weight.data.fill_(float("nan"))
    with pytest.raises(InputError, match="the loss is nan at step 0; lower `rate`"):
        control.train(net, TASK, PLAN)
