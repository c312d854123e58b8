"""The training loop: AdamW, a schedule, early stopping."""

import time
from dataclasses import dataclass

import torch
from torch.nn.functional import softplus

from wordsens.errors import InputError
from wordsens.search.objective import Progress
from wordsens.seeds import generator
from wordsens.studies.control.controls.contract import Control
from wordsens.studies.control.judge import judged
from wordsens.studies.control.networks.contract import TextNetwork
from wordsens.studies.control.plan import TrainingPlan
from wordsens.studies.control.tasks.contract import Task


@dataclass(frozen=True)
class Validation:
    """One look at the validation texts: the steps done, the mean training loss since the last look, and the loss and
    accuracy there."""

    step: int
    training_loss: float
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
        network: the network that was given, trained in place.
        looks: at the validation texts, in order.
        steps: how many were taken; fewer than the plan's where training stopped early.
        best: the step whose weights the network has.
        cpu_seconds: of processor time.
    """

    network: TextNetwork
    looks: tuple[Validation, ...]
    steps: int
    best: int
    cpu_seconds: float


def train(
    network: TextNetwork,
    task: Task,
    plan: TrainingPlan = TrainingPlan(),  # noqa: B008 - frozen
    control: Control | None = None,
    *,
    progress: Progress | None = None,
) -> Training:
    """Train a network on a task: the logistic loss ln(1 + exp(-label logit)), and the control's term.

    The network is changed in place. Batches and the controls' random numbers are functions of the plan's seed and the
    step.

    Args:
        network: with the weights to start from.
        task: what to learn.
        plan: steps, rates, early stopping.
        control: of word sensitivity; None for none.
        progress: called with (steps done, steps at most).

    Raises:
        InputError: a loss that is no number.
    """
    started, control = time.process_time(), control or Control()
    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=plan.weight_decay)
    looks: list[Validation] = []
    best, best_state, losses, step = 0, None, 0.0, 0
    while step < plan.steps and not _stale(looks, best, plan.patience):
        losses += _take_step(network, task, plan, control, optimiser, step)
        step += 1
        if step % plan.every == 0 or step == plan.steps:
            loss, accuracy = judged(network, task.validation)
            if plan.patience is not None and all(loss < look.loss for look in looks):
                best, best_state = step, {name: value.clone() for name, value in network.state_dict().items()}
            looks.append(Validation(step, losses / (step - (looks[-1].step if looks else 0)), loss, accuracy))
            losses = 0.0
        if progress is not None:
            progress(step, plan.steps)
    if best_state is not None:
        network.load_state_dict(best_state)
    return Training(network, tuple(looks), step, best if best_state else step, time.process_time() - started)


def _stale(looks: list[Validation], best: int, patience: int | None) -> bool:
    """Whether the validation loss has not fallen for as many looks as the plan's patience."""
    return patience is not None and sum(look.step > best for look in looks) >= patience


def _take_step(
    network: TextNetwork, task: Task, plan: TrainingPlan, control: Control, optimiser: torch.optim.Optimizer, step: int
) -> float:
    """One step of AdamW on one batch; its logistic loss."""
    learned, weight = task.training, network.head.weight
    chosen = torch.randint(len(learned), (plan.batch,), generator=generator(plan.seed, "training batch", step))
    rows, labels = learned.rows(chosen).to(weight), learned.labels[chosen].to(weight)
    for group in optimiser.param_groups:
        group["lr"] = plan.rate_at(step)
    loss = softplus(-labels * network(control.texts(network, rows, labels, step))).mean()
    logistic = float(loss.detach())
    term = control.term(network, rows)
    if term is not None:
        loss = loss + term
    if not bool(torch.isfinite(loss)):
        raise InputError(f"the loss is {loss.item()} at step {step}; lower `rate` or the control's weight")
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), plan.clip)
    optimiser.step()
    return logistic
