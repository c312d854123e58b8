"""The training itself: batches, steps, and what a run that was stopped goes on from."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from wordsens.seeds import Seed, derive_seed
from wordsens.training.adapter.examples import Example
from wordsens.training.adapter.loss import Batch, batch_loss
from wordsens.training.adapter.plan import TunePlan
from wordsens.training.adapter.trainee import Trainee

Progress = Callable[[int, int], None]

_EVERY = 50
"""Steps between two checkpoints: about a minute of MiniLM on one core."""

_NEAREST, _TOGETHER = 6, 3
"""Neighbours of a plain sentence, and how many stand together in a batch: itself and two of them."""

_DECAY, _LARGEST_GRADIENT = 0.01, 1.0
"""Weight decay and gradient norm as fine-tuning of transformers usually has them."""


@dataclass(frozen=True)
class Material:
    """All that batches are drawn from.

    Attributes:
        made: examples from frames and plain sentences.
        real: examples from pairs.
        plain: sentences whose cosines are to stay.
    """

    made: Sequence[Example]
    real: Sequence[Example]
    plain: Sequence[str]


@dataclass(frozen=True)
class Checkpoint:
    """The file that a stopped run goes on from.

    Attributes:
        path: of the file.
        run: a digest of all that the run depends on; a file of another run is not used.
    """

    path: Path
    run: str

    def read(self, trainee: Trainee, optimizer: torch.optim.Optimizer) -> int:
        """Put back what the file holds; the steps that are done, 0 where there is none of this run."""
        if not self.path.is_file():
            return 0
        found = torch.load(self.path, weights_only=True)
        if found["run"] != self.run:
            return 0
        with torch.no_grad():
            for weight, kept in zip(trainee.parameters(), found["weights"], strict=True):
                weight.copy_(kept)
        optimizer.load_state_dict(found["optimizer"])
        return int(found["step"])

    def write(self, trainee: Trainee, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Write aside, then rename."""
        aside = self.path.with_suffix(".new")
        weights = [weight.detach() for weight in trainee.parameters()]
        kept = {"run": self.run, "step": step, "weights": weights, "optimizer": optimizer.state_dict()}
        torch.save(kept, aside)
        aside.replace(self.path)


def train(
    trainee: Trainee, material: Material, plan: TunePlan, checkpoint: Checkpoint, *, seed: Seed, progress: Progress
) -> None:
    """Train the adapter with AdamW; `progress` is called with the steps done and all steps.

    A step's batch depends on the seed and the step's number alone, so that a run that was stopped goes on as it would
    have gone.
    """
    near = _neighbours(trainee, material.plain)
    optimizer = torch.optim.AdamW(trainee.parameters(), lr=plan.rate, weight_decay=_DECAY)
    done = checkpoint.read(trainee, optimizer)
    for step in range(done, plan.steps):
        chance = random.Random(derive_seed(seed, "batch", step))
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, plan)
        loss = _loss(trainee, material, near, plan, chance)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainee.parameters(), _LARGEST_GRADIENT)
        optimizer.step()
        if (step + 1) % _EVERY == 0:
            checkpoint.write(trainee, optimizer, step + 1)
        progress(step + 1, plan.steps)


def _rate(step: int, plan: TunePlan) -> float:
    """Up over the first twentieth of the steps, then down to a twentieth of the largest."""
    return plan.rate * min(1.0, 20 * (step + 1) / plan.steps, max(0.05, 1 - step / plan.steps))


def _neighbours(trainee: Trainee, plain: Sequence[str]) -> list[list[int]]:
    """The numbers of each sentence's nearest before training: the cosines that a search rests on."""
    trainee.keep(plain)
    vectors = trainee.before(plain)
    cosines = (vectors @ vectors.T).fill_diagonal_(-1)
    return cosines.topk(min(_NEAREST, len(plain) - 1), dim=1).indices.tolist()


def _loss(
    trainee: Trainee, material: Material, near: Sequence[Sequence[int]], plan: TunePlan, chance: random.Random
) -> torch.Tensor:
    drawn = [
        *chance.sample(material.made, min(plan.batch, len(material.made))),
        *chance.sample(material.real, min(plan.real, len(material.real))),
    ]
    flipped = [at for at, example in enumerate(drawn) if example.other is not None]
    firsts = chance.sample(range(len(near)), min(plan.plain // _TOGETHER, len(near)))
    places = [place for at in firsts for place in (at, *chance.sample(near[at], min(_TOGETHER - 1, len(near[at]))))]
    texts = [
        *(example.text for example in drawn),
        *(example.same for example in drawn),
        *(drawn[at].other or "" for at in flipped),
        *(material.plain[place] for place in dict.fromkeys(places)),
    ]
    trainee.keep(texts)
    with trainee.quickly():
        vectors = trainee.vectors(texts)
    now, before = (Batch.of(each, len(drawn), len(flipped)) for each in (vectors, trainee.before(texts)))
    return batch_loss(now, before, flipped, plan.loss)
