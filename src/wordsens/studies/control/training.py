"""The training of a small network: AdamW with a warm-up, then a cosine to zero; and the judgement
on held-out texts."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from wordsens.errors import InputError, require_count, require_positive
from wordsens.search.objective import Progress
from wordsens.seeds import Seed, generator
from wordsens.studies.control.controls import Control, worst_words
from wordsens.studies.control.networks import TextNetwork
from wordsens.studies.control.tasks import Labelled, Task
from wordsens.training.penalty import MovedTexts

_TEXTS_AT_ONCE = 128
"""Texts that are judged in one batch: at 256 words the scores of as many take 34 MB."""

ATTACK_STEPS = 5
"""Steps of ascent against a label. More may find more: the robust accuracy is an upper bound."""


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """AdamW with a warm-up, then a cosine to zero; the usual names.

    Attributes:
        steps: of the optimiser.
        batch: texts a step, drawn with replacement.
        rate: the largest learning rate.
        warmup: the share of the steps in which the rate rises linearly to it.
        weight_decay: AdamW's.
        clip: gradients are scaled down to this norm.
        seed: of the batches and of the controls' random numbers.
    """

    steps: int = 400
    batch: int = 32
    rate: float = 3e-3
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        require_count("steps", self.steps, least=0)
        require_count("batch", self.batch)
        for name in ("rate", "clip"):
            require_positive(name, getattr(self, name))
        for name in ("warmup", "weight_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"`{name}` (={getattr(self, name)!r}) must be between 0 and 1")

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, 0, 1, ...

        >>> plan = TrainingPlan(steps=10, warmup=0.2, rate=1.0)
        >>> [round(plan.rate_at(step), 3) for step in (0, 1, 2, 6, 9)]
        [0.5, 1.0, 1.0, 0.5, 0.038]
        """
        rising = math.ceil(self.warmup * self.steps)
        if step < rising:
            return self.rate * (step + 1) / rising
        done = (step - rising) / max(1, self.steps - rising)
        return self.rate * 0.5 * (1 + math.cos(math.pi * done))


def train(
    network: TextNetwork,
    task: Task,
    plan: TrainingPlan = TrainingPlan(),
    control: Control | None = None,
    *,
    progress: Progress | None = None,
) -> list[float]:
    """Train a network on a task, in place: the logistic loss ln(1 + exp(-label logit)), and the
    control's term.

    Batches and the controls' random numbers are functions of the plan's seed and the step.

    Args:
        network: with the weights to start from.
        task: what to learn.
        plan: steps and rates.
        control: of word sensitivity; None for none.
        progress: called with (steps done, steps in all).

    Returns:
        The logistic loss of each step, on its batch.

    Raises:
        InputError: a loss that is no number.
    """
    control, losses = control or Control(), []
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=plan.rate, weight_decay=plan.weight_decay
    )
    learned, weight = task.training, network.head.weight
    for step in range(plan.steps):
        batch = torch.randint(
            len(learned), (plan.batch,), generator=generator(plan.seed, "training batch", step)
        )
        rows, labels = learned.rows(batch).to(weight), learned.labels[batch].to(weight)
        for group in optimiser.param_groups:
            group["lr"] = plan.rate_at(step)
        loss = softplus(-labels * network(control.texts(network, rows, labels, step))).mean()
        losses.append(float(loss.detach()))
        term = control.term(network, rows)
        if term is not None:
            loss = loss + term
        if not bool(torch.isfinite(loss)):
            raise InputError(
                f"the loss is {loss.item()} at step {step}; lower `rate` or the control's weight"
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), plan.clip)
        optimiser.step()
        if progress is not None:
            progress(step + 1, plan.steps)
    return losses


@torch.no_grad()
def judged(network: TextNetwork, part: Labelled) -> tuple[float, float]:
    """The mean logistic loss and the accuracy on a part of a task; a logit of 0 counts half."""
    weight = network.head.weight
    margins = torch.cat(
        [
            part.labels[at].to(weight) * network(part.rows(at).to(weight))
            for at in torch.arange(len(part)).split(_TEXTS_AT_ONCE)
        ]
    ).double()
    return float(softplus(-margins).mean()), share_right(margins)


def share_right(margins: Float[Tensor, " m"]) -> float:
    """The share of margins, label times logit, that are positive; a margin of 0 counts half."""
    return float(((margins > 0).double() + 0.5 * (margins == 0)).mean())


def robust_accuracy(
    network: TextNetwork, part: Labelled, *, texts: int, words: int, seed: Seed = 0
) -> float:
    """The share of texts whose label stays right while one word moves in the ball of radius
    sqrt(d), at most.

    Of each of the first `texts` texts, `words` random words are moved against the label one after
    another by a short ascent: an upper bound of the share that no single word can turn.
    """
    few = torch.arange(min(texts, len(part)))
    weight = network.head.weight
    rows, labels = part.rows(few).to(weight), part.labels[few].to(weight)
    stream = generator(seed, "robust accuracy", rows.shape[1])
    chosen = (
        torch.rand(rows.shape[:2], generator=stream).argsort(dim=1)[:, :words].to(weight.device)
    )
    with torch.no_grad():
        right = labels * network(rows) > 0
    for at in range(chosen.shape[1]):
        one = chosen[:, at : at + 1]
        delta = worst_words(
            network, rows, labels, one, math.sqrt(rows.shape[2]), ATTACK_STEPS, stream
        )
        with torch.no_grad():
            right &= labels * network(MovedTexts(rows, one)(delta)) > 0
    return float(right.double().mean())
