"""The training loop: it learns, stops early, and a resumed training has the bits of one that was never interrupted."""

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
    assert [look.step for look in found.looks] == [50, 100, 150]
    assert found.looks[-1].loss < found.looks[0].loss
    assert (found.steps, found.best) == (150, 150)


class StoppedError(Exception):
    """The end of a training from outside."""


@pytest.mark.parametrize("name", controls())
@pytest.mark.parametrize("patience", [None, 5])
def test_a_resumed_training_has_the_bits_of_an_uninterrupted_one(tmp_path, name, patience):
    plan = ws.training.TrainingPlan(steps=30, every=10, rate=1e-2, patience=patience)

    def stop(done, most):
        if done == 17:
            raise StoppedError

    def run(folder, progress=None):
        net = network()
        found = ws.training.train(net, TASK, plan, controls()[name](net), folder=folder, progress=progress)
        return net.state_dict(), found

    whole, found = run(None)
    with pytest.raises(StoppedError):
        run(tmp_path, stop)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]
    resumed, again = run(tmp_path)
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)
    assert (found.looks, found.steps, found.best) == (again.looks, again.steps, again.best)
    finished, once_more = run(tmp_path)  # nothing is left to do
    assert all(torch.equal(whole[key], finished[key]) for key in whole)
    assert once_more.looks == found.looks


def test_a_loss_that_is_no_number_ends_the_training():
    net = network()
    net.head.weight.data.fill_(float("nan"))
    with pytest.raises(InputError, match="the loss is nan at step 0; lower `rate`"):
        ws.training.train(net, TASK, PLAN)
