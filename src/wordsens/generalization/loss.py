"""The losses that Delta is chosen by: an alignment of -1, an error of 0, or an error of 0 at a small gamma."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.new_text import NewText
from wordsens.regression import TRAININGS

OBJECTIVE_NAMES = ("alignment", "fine-tuned-alignment", "retrained-alignment", "error", "penalized-error")
"""alignment: (F + 1)² of the training's own F; the next two: of the named one; error: Err; penalized-error:
Err + penalty gamma²."""


@dataclass(frozen=True)
class OneWordLoss:
    """A loss that depends on (delta, F) alone, to be minimised over Delta.

    Attributes:
        name: one of OBJECTIVE_NAMES.
        kind: whose alignment F is: "fine-tuned" or "retrained".
        label: y.
        surprise: y - f(X).
        own: F of X itself, 1 unless there is a ridge.
        penalty: the weight of gamma² in penalized-error.
    """

    name: str
    kind: str
    label: float
    surprise: float
    own: float
    penalty: float

    def loss(self, values: Float[Tensor, "b 2"]) -> tuple[Float[Tensor, " b"], Float[Tensor, "b 2"]]:
        """The losses and their derivatives in (delta, F - F(X)), the two functionals of `NewText`."""
        shift, alignment = values[:, 0], values[:, 1] + self.own
        if self.name.endswith("alignment"):
            slope = 2 * (alignment + 1)
            return (alignment + 1).square(), torch.stack([torch.zeros_like(slope), slope], dim=1)
        miss = self.miss(values)
        loss, on_shift = miss.square(), 2 * miss
        slopes = torch.stack([on_shift, on_shift * self.surprise], dim=1)
        if self.name == "penalized-error":
            loss = loss + self.penalty * shift.square()
            slopes[:, 0] += 2 * self.penalty * shift
        return loss, slopes

    def miss(self, values: Float[Tensor, "b 2"]) -> Float[Tensor, " b"]:
        """The changed model's output on X^i(Delta) minus -y: 2 y + delta + (F - 1)(y - f(X)); Err is its square."""
        return 2 * self.label + values[:, 0] + (values[:, 1] + self.own - 1) * self.surprise

    def wanted(self) -> tuple[float, float]:
        """The signs in which delta and F should move: 0 where it does not matter."""
        if self.name.endswith("alignment"):
            return 0.0, -1.0
        return -self.label, -self.label * (1.0 if self.surprise >= 0 else -1.0)


def loss_for(new: NewText, training: str, name: str, penalty: float | int = 1.0) -> OneWordLoss:
    """The loss of that name for a model that learns (X, y) by `training`."""
    require_choice("training", training, TRAININGS)
    require_choice("objective", name, OBJECTIVE_NAMES)
    if not (isinstance(penalty, (int, float)) and 0 <= penalty < float("inf")):
        raise InputError(f"`penalty` (={penalty!r}) must be a finite number, at least 0")
    kind = name.removesuffix("-alignment") if name.endswith("-alignment") else training
    return OneWordLoss(name, kind, new.label, new.surprise, new.update(kind).alignment, float(penalty))
