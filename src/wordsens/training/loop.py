"""The training loop: AdamW, a schedule, early stopping, checkpoints from which it resumes bit for bit."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from wordsens.errors import InputError
from wordsens.search.result import Progress
from wordsens.seeds import generator
from wordsens.training.checkpoint import load_checkpoint, save_checkpoint
from wordsens.training.controls.contract import Control
from wordsens.training.judge import judged
from wordsens.training.networks.contract import TextNetwork
from wordsens.training.plan import TrainingPlan
from wordsens.training.tasks.contract import Task


@dataclass(frozen=True)
class Look:
    """One look at the validation texts: the steps done, the mean loss of the steps since the last look, and what was
    seen."""

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
        cpu_seconds: of processor time in this process, without what came before an interruption.
    """

    network: TextNetwork
    looks: tuple[Look, ...]
    steps: int
    best: int
    cpu_seconds: float


def train(
    network: TextNetwork,
    task: Task,
    plan: TrainingPlan = TrainingPlan(),  # noqa: B008 - frozen
    control: Control | None = None,
    *,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Training:
    """Train a network on a task: the logistic loss ln(1 + exp(-label logit)), and the control's term.

    The network is changed in place. Batches and the controls' random numbers are functions of the plan's seed and the
    step, and a checkpoint has everything else: a training that is killed and started again with the same arguments ends
    with the same bits as one that was not.

    Args:
        network: with the weights to start from.
        task: what to learn.
        plan: steps, rates, early stopping.
        control: of word sensitivity; None for none.
        folder: for the checkpoint; None for none.
        progress: called with (steps done, steps at most).

    Raises:
        InputError: a checkpoint of another plan or network; a loss that is no number.
    """
    started = time.process_time()
    run = _Run(network, task, plan, control or Control(), folder)
    run.resume()
    while not run.finished:
        run.take_step()
        if run.step % plan.every == 0 or run.step == plan.steps:
            run.look()
        if progress is not None:
            progress(run.step, plan.steps)
    if run.best_state is not None:
        network.load_state_dict(run.best_state)
    best = run.step if run.best_state is None else run.best
    return Training(network, tuple(run.looks), run.step, best, time.process_time() - started)


class _Run:
    """A training between two steps: everything that a checkpoint has to hold."""

    def __init__(
        self, network: TextNetwork, task: Task, plan: TrainingPlan, control: Control, folder: str | Path | None
    ):
        self.network, self.task, self.plan, self.control, self.folder = network, task, plan, control, folder
        self.optimiser = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=plan.weight_decay)
        self.step, self.best, self.losses = 0, 0, 0.0
        self.looks: list[Look] = []
        self.best_state: dict[str, Tensor] | None = None

    @property
    def finished(self) -> bool:
        """True after the last step, or where the validation loss has not fallen for as long as the plan's patience."""
        patience = self.plan.patience
        stale = patience is not None and sum(look.step > self.best for look in self.looks) >= patience
        return stale or self.step >= self.plan.steps

    def take_step(self) -> None:
        """One step of AdamW on one batch."""
        learned, weight = self.task.training, self.network.head.weight
        stream = generator(self.plan.seed, "training batch", self.step)
        chosen = torch.randint(len(learned), (self.plan.batch,), generator=stream)
        rows, labels = learned.rows(chosen).to(weight), learned.labels[chosen].to(weight)
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate_at(self.step)
        shown = self.control.texts(self.network, rows, labels, self.step)
        loss = softplus(-labels * self.network(shown)).mean()
        self.losses += float(loss.detach())
        term = self.control.term(self.network, rows)
        if term is not None:
            loss = loss + term
        if not bool(torch.isfinite(loss)):
            raise InputError(f"the loss is {loss.item()} at step {self.step}; lower `rate` or the control's weight")
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.plan.clip)
        self.optimiser.step()
        self.step += 1

    def look(self) -> None:
        """Judge the network on the validation texts, keep the best weights, write a checkpoint."""
        loss, accuracy = judged(self.network, self.task.validation)
        since = self.step - (self.looks[-1].step if self.looks else 0)
        if self.plan.patience is not None and all(loss < look.loss for look in self.looks):
            self.best, self.best_state = self.step, {k: v.clone() for k, v in self.network.state_dict().items()}
        self.looks.append(Look(self.step, self.losses / since, loss, accuracy))
        self.losses = 0.0
        if self.folder is not None:
            self._save(self.folder)

    def _save(self, folder: str | Path) -> None:
        moments = {
            f"{at}.{name}": value
            for at, own in self.optimiser.state_dict()["state"].items()
            for name, value in own.items()
        }
        tensors = {
            "network": self.network.state_dict(),
            "optimiser": moments,
            "control": self.control.state(),
            "best": self.best_state or {},
        }
        facts = {"looks": [asdict(look) for look in self.looks], "step": self.step, "best": self.best}
        save_checkpoint(folder, tensors, {**facts, "of": self._of()})

    def _of(self) -> dict[str, Any]:
        """The things that a checkpoint must agree on."""
        shapes = {name: list(one.shape) for name, one in self.network.state_dict().items()}
        task = [self.task.name, *self.task.shape, len(self.task.training)]
        return {"plan": asdict(self.plan), "network": shapes, "control": type(self.control).__name__, "task": task}

    def resume(self) -> None:
        """Take up the checkpoint of the folder, where there is one."""
        found = None if self.folder is None else load_checkpoint(self.folder)
        if found is None:
            return
        tensors, facts = found
        for name, value in self._of().items():
            if facts["of"][name] != value:
                raise InputError(
                    f"`folder` (={str(self.folder)!r}) has a checkpoint of another {name}; give another folder, or the "
                    f"same {name} again"
                )
        self.network.load_state_dict(tensors["network"])
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.get("optimiser", {}).items():
            at, _, name = key.partition(".")
            state.setdefault(int(at), {})[name] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.control.restore(tensors.get("control", {}))
        self.step, self.best = facts["step"], facts["best"]
        self.looks = [Look(**look) for look in facts["looks"]]
        self.best_state = tensors.get("best")
