"""The training of a small network, its controls, which raise or lower word sensitivity, and the
judgement on held-out texts."""

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from wordsens.errors import InputError, require_count, require_positive
from wordsens.search.objective import Progress
from wordsens.seeds import Seed, generator
from wordsens.studies.control.networks import TextNetwork
from wordsens.studies.control.tasks import Labelled, Pairs, Task
from wordsens.training.penalty import SensitivityPenalty, ascend, move_words

# Texts that are judged in one batch: at 256 words the scores of as many take 34 MB.
TEXTS_AT_ONCE = 128

# Steps of ascent against a label. More may find more: the robust accuracy is an upper bound.
ATTACK_STEPS = 5


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """AdamW with a weight decay of 0.01: the learning rate rises linearly over the first tenth of
    the steps, then falls to zero as a cosine; gradients are scaled down to a norm of 1.

    Attributes:
        steps: of the optimiser.
        batch: texts per step, drawn with replacement.
        rate: the largest learning rate.
        shuffle: whether the words of each text are in another random order at every step.
        seed: of the batches and orders.
    """

    steps: int = 400
    batch: int = 32
    rate: float = 3e-3
    shuffle: bool = False
    seed: Seed = 0

    def __post_init__(self) -> None:
        require_count("steps", self.steps, least=0)
        require_count("batch", self.batch)
        require_positive("rate", self.rate)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, 0, 1, ...

        >>> plan = TrainingPlan(steps=20, rate=1.0)
        >>> [round(plan.rate_at(step), 3) for step in (0, 1, 2, 11, 19)]
        [0.5, 1.0, 1.0, 0.5, 0.008]
        """
        rising = math.ceil(0.1 * self.steps)
        if step < rising:
            return self.rate * (step + 1) / rising
        done = (step - rising) / max(1, self.steps - rising)
        return self.rate * 0.5 * (1 + math.cos(math.pi * done))


@dataclass(eq=False)
class Control:
    """A control of word sensitivity during training, which changes the texts that the network is
    shown, or adds a term to the loss. By itself it does neither."""

    def __post_init__(self) -> None:
        rules = dict.fromkeys(("weight", "share", "margin"), require_positive)
        rules |= dict.fromkeys(("steps", "batch"), require_count)
        for name in rules.keys() & vars(self).keys():
            rules[name](name, getattr(self, name))

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        """The texts that the network is shown in that step instead of these."""
        return rows

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"], step: int) -> Tensor | None:
        """A differentiable number that is added to the loss of a step; None for nothing."""
        return None


@dataclass(eq=False)
class SensitivityControl(Control):
    """weight * penalty(X) is added to the loss of every step."""

    penalty: SensitivityPenalty
    weight: float = 1.0

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"], step: int) -> Tensor:
        return self.weight * self.penalty(rows)


@dataclass(eq=False)
class AdversarialWords(Control):
    """A random word of every training text is moved so that the loss rises most; the label stays.

    The Delta, ‖Delta‖ <= share sqrt(d), is what a few steps of projected ascent find: the
    adversarial training of Madry and others (2018), in the ball of one word.

    Attributes:
        share: of the paper's radius sqrt(d).
        steps: of ascent.
        seed: of the words and the starts.
    """

    share: float = 0.5
    steps: int = 3
    seed: Seed = 0

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        stream = generator(self.seed, "adversarial words", step)
        words = torch.randint(rows.shape[1], (len(rows), 1), generator=stream).to(rows.device)
        radius = self.share * math.sqrt(rows.shape[2])
        delta = worst_words(network, rows, labels, words, radius, self.steps, stream)
        return move_words(rows, words, delta)


def worst_words(
    network: TextNetwork,
    rows: Float[Tensor, "b n d"],
    labels: Float[Tensor, " b"],
    words: Tensor,
    radius: float,
    steps: int,
    stream: torch.Generator,
) -> Float[Tensor, "p d"]:
    """For each of the words (b, w) the Delta that short ascent finds to raise -label logit most; p
    = b w."""
    signs = labels.repeat_interleave(words.shape[1])

    def against(delta: Tensor) -> Tensor:
        return -signs * network(move_words(rows, words, delta))

    drawn = torch.randn(words.numel(), rows.shape[2], generator=stream).to(rows)
    return ascend(against, radius * normalize(drawn, dim=1), radius, steps)


@dataclass(eq=False)
class WordDropout(Control):
    """Every word of a training text becomes a row of zeros with probability `share`; one word of
    each text is kept."""

    share: float = 0.1
    seed: Seed = 0

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        stream = generator(self.seed, "word dropout", step)
        drawn = torch.rand(rows.shape[:2], generator=stream).to(rows.device)
        keep_mask = (drawn >= self.share) | (drawn == drawn.amax(dim=1, keepdim=True))
        return rows * keep_mask.unsqueeze(2)


@dataclass(eq=False)
class SupervisedPairs(Control):
    """weight * the contrastive loss of some pairs is added to the loss of every step.

    With the relative change delta = ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a pair (A, B), as in word
    sensitivity, a pair that means the same adds delta², a flipped one max(0, margin - delta)² (the
    loss of Hadsell, Chopra and LeCun, 2006, on relative changes); the term is the mean over the
    pairs. A penalty on S moves the features' response to every word; this one tells words that
    matter from those that do not. Pairs with phi(A) = 0 are left out of a step.

    Attributes:
        pairs: to learn from; those of different labels are flipped.
        weight: of the term.
        margin: the relative change beyond which a flipped pair adds nothing.
        batch: pairs per step, drawn with replacement.
        seed: of the choice.
    """

    pairs: Pairs
    weight: float = 1.0
    margin: float = 1.0
    batch: int = 16
    seed: Seed = 0

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"], step: int) -> Tensor | None:
        stream = generator(self.seed, "supervised pairs", step)
        chosen = torch.randint(len(self.pairs[0]), (self.batch,), generator=stream)
        first, second = (texts.part(chosen) for texts in self.pairs)
        texts = torch.cat([first.rows(), second.rows()]).to(rows)
        before, after = network.features(texts).chunk(2)
        change, lengths = (
            torch.linalg.vector_norm(part, dim=1) for part in (after - before, before)
        )
        defined = lengths > 0
        if not bool(defined.any()):
            return None
        relative = change[defined] / lengths[defined]
        flipped = (first.labels != second.labels).to(rows.device)[defined]
        short = (self.margin - relative).clamp(min=0)
        return self.weight * torch.where(flipped, short, relative).square().mean()


@dataclass(eq=False)
class SpectralPenalty(Control):
    """weight * sum over linear layers of sigma(W)², sigma the largest singular value.

    sigma is u^T W v with the vectors of one power iteration per step, which continue from the last
    step's and are held fixed in the gradient: a lower bound of the operator norm that follows it
    (spectral norm regularisation, Yoshida and Miyato, 2017).
    """

    weight: float = 0.01
    seed: Seed = 0
    _vectors: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"], step: int) -> Tensor:
        largest = [
            self._largest(name, module.weight)
            for name, module in network.named_modules()
            if isinstance(module, nn.Linear)
        ]
        return self.weight * sum((value.square() for value in largest), rows.new_zeros(()))

    def _largest(self, name: str, weight: Float[Tensor, "out in"]) -> Tensor:
        with torch.no_grad():
            if name not in self._vectors:
                stream = generator(self.seed, "spectral penalty", name)
                self._vectors[name] = torch.randn(weight.shape[1], generator=stream).to(weight)
            left = normalize(weight @ self._vectors[name], dim=0)
            self._vectors[name] = right = normalize(weight.T @ left, dim=0)
        return left @ weight @ right


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
    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=0.01)
    learned, weight = task.training, network.head.weight
    for step in range(plan.steps):
        batch = torch.randint(
            len(learned), (plan.batch,), generator=generator(plan.seed, "training batch", step)
        )
        rows, labels = learned.rows(batch).to(weight), learned.labels[batch].to(weight)
        if plan.shuffle:
            stream = generator(plan.seed, "order of words", step)
            order = torch.rand(rows.shape[:2], generator=stream).argsort(dim=1)
            rows = rows.take_along_dim(order.unsqueeze(2).to(rows.device), dim=1)
        for group in optimiser.param_groups:
            group["lr"] = plan.rate_at(step)
        loss = softplus(-labels * network(control.texts(network, rows, labels, step))).mean()
        losses.append(float(loss.detach()))
        term = control.term(network, rows, step)
        if term is not None:
            loss = loss + term
        if not bool(torch.isfinite(loss)):
            raise InputError(
                f"the loss is {loss.item()} at step {step}; lower `rate` or the control's weight"
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        if progress is not None:
            progress(step + 1, plan.steps)
    return losses


@torch.no_grad()
def judged(network: TextNetwork, part: Labelled) -> tuple[float, float]:
    """The mean logistic loss and the accuracy on a part of a task; a logit of 0 counts half."""
    weight = network.head.weight
    logits = [network(rows.to(weight)) for rows in part.rows().split(TEXTS_AT_ONCE)]
    margins = (part.labels.to(weight) * torch.cat(logits)).double()
    return float(softplus(-margins).mean()), share_right(margins)


def share_right(margins: Float[Tensor, " m"]) -> float:
    """The share of margins, label times logit, that are positive; a margin of 0 counts half."""
    return float(((margins > 0).double() + 0.5 * (margins == 0)).mean())


@torch.no_grad()
def robust_accuracy(
    network: TextNetwork, part: Labelled, *, texts: int, words: int, seed: Seed = 0
) -> float:
    """The share of texts whose label stays right while one word moves in the ball of radius
    sqrt(d), at most.

    Of each of the first `texts` texts, `words` random words are moved against the label one after
    another by a short ascent: an upper bound of the share that no single word can turn.
    """
    few, weight = part.part(slice(texts)), network.head.weight
    rows, labels = few.rows().to(weight), few.labels.to(weight)
    stream = generator(seed, "robust accuracy", rows.shape[1])
    chosen = torch.rand(rows.shape[:2], generator=stream).argsort(dim=1)[:, :words].to(rows.device)
    right, radius = labels * network(rows) > 0, math.sqrt(rows.shape[2])
    for word in chosen.split(1, dim=1):
        delta = worst_words(network, rows, labels, word, radius, ATTACK_STEPS, stream)
        right &= labels * network(move_words(rows, word, delta)) > 0
    return float(right.double().mean())
