"""The training loop: it learns, and its seeds decide all."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.studies import control

TASK = control.one_word_task(6, 8, parts=(256, 64, 128))
PLAN = control.TrainingPlan(steps=150, rate=1e-2)


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
    before = control.judged(net, TASK.test)[1]
    losses = control.train(net, TASK, PLAN)
    assert before < 0.7
    assert control.judged(net, TASK.test)[1] > 0.95
    assert len(losses) == 150
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])


@pytest.mark.parametrize("name", controls())
def test_the_seeds_alone_decide(name):
    plan = control.TrainingPlan(steps=12, rate=1e-2)
    first, second = network(), network()
    losses, again = (
        control.train(net, TASK, plan, controls()[name](net)) for net in (first, second)
    )
    assert losses == again
    assert all(
        torch.equal(one, other)
        for one, other in zip(first.parameters(), second.parameters(), strict=True)
    )


def test_a_text_is_robust_if_no_word_alone_turns_its_label():
    """The logit is the first coordinate of the first word, and the radius is 2: of the margins 1
    and 3 the first alone can be turned, by that word alone."""

    class FirstNumber(torch.nn.Module):
        head = torch.nn.Linear(1, 1)

        def forward(self, rows):
            return rows[:, 0, 0]

    margins = torch.tensor([1.0, 3.0]).repeat(16)
    labels = torch.tensor([1.0, 1.0, -1.0, -1.0]).repeat(8)
    table = (margins * labels).unsqueeze(1).expand(32, 4)
    part = control.tasks.Labelled(table, torch.arange(32).unsqueeze(1).expand(32, 3), labels)
    found = control.training.robust_accuracy(FirstNumber(), part, texts=32, words=3)
    assert found == 0.5


def test_a_loss_that_is_no_number_ends_the_training():
    net = network()
    net.head.weight.data.fill_(float("nan"))
    with pytest.raises(InputError, match="the loss is nan at step 0; lower `rate`"):
        control.train(net, TASK, PLAN)
