"""The plan of a training: steps, batches, rates, early stopping."""

import math
from dataclasses import dataclass

from wordsens.errors import InputError, require_count, require_positive
from wordsens.seeds import Seed


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """AdamW with a warm-up, then a cosine to zero; the usual names.

    Attributes:
        steps: of the optimiser, at most.
        batch: texts a step, drawn with replacement.
        rate: the largest learning rate.
        warmup: the share of the steps in which the rate rises linearly to it.
        weight_decay: AdamW's.
        clip: gradients are scaled down to this norm.
        every: steps between two looks at the validation texts.
        patience: looks without a smaller validation loss after which training stops; the weights of the best look are
            then taken. None: all steps, and the last weights.
        seed: of the batches and of the controls' random numbers.
    """

    steps: int = 400
    batch: int = 32
    rate: float = 3e-3
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    every: int = 50
    patience: int | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        require_count("steps", self.steps, least=0)
        for name in ("batch", "every"):
            require_count(name, getattr(self, name))
        for name in ("rate", "clip"):
            require_positive(name, getattr(self, name))
        for name in ("warmup", "weight_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"`{name}` (={getattr(self, name)!r}) must be between 0 and 1")
        if self.patience is not None:
            require_count("patience", self.patience)

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
