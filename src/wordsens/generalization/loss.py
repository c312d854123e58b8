"""The losses that Delta is chosen by: an alignment of -1, an error of 0, or an error of 0 at a small gamma."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.new_text import NewText
from wordsens.maps.word_change import MovedRows
from wordsens.maps.word_functionals import WordFunctionals
from wordsens.regression import TRAININGS
from wordsens.search.ball import unit
from wordsens.search.plan import Stages

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


Loss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From the functionals (b, m) and the items (b,) to losses (b,), at least 0, and their derivatives (b, m)."""

Observer = Callable[[Tensor, Tensor, Tensor], None]
"""Told of every evaluation: functionals (b, m), words (b,), perturbations (b, d)."""

FEW_WORDS = 4
"""Up to this many words are looked at closely; of more, those that come out best of a first look."""

CLOSE_LOOK = Stages(starts=16, steps=60, generations=3, population=6, children=8, finish=80, tolerance=1e-8)
FIRST_LOOK = Stages(
    starts=12, steps=15, generations=2, population=4, children=4, child_steps=12, finish=30, tolerance=1e-7
)
# Fully connected features are nearly linear in one word: the first gradient points to the optimum.
CLOSE_LOOK_LINEAR = Stages(starts=4, steps=8, finish=30, tolerance=1e-7)
FIRST_LOOK_LINEAR = Stages(starts=3, steps=3, finalists=1, finish=0, tolerance=1e-7)

# Many losses of one text, whose points count for each other.
TOGETHER = Stages(starts=12, steps=30, generations=3, population=3, children=4, finalists=1, finish=30, tolerance=1e-7)
TOGETHER_LINEAR = Stages(starts=4, steps=8, finalists=1, finish=10, tolerance=1e-7)


def stages_for(functionals: WordFunctionals) -> tuple[Stages, Stages]:
    """The stages of a first look at many words, and of a close look at a few."""
    linear = functionals.one_word_at_a_time
    return (FIRST_LOOK_LINEAR, CLOSE_LOOK_LINEAR) if linear else (FIRST_LOOK, CLOSE_LOOK)


def stages_together(functionals: WordFunctionals) -> Stages:
    """The stages of a search of many losses at once."""
    return TOGETHER_LINEAR if functionals.one_word_at_a_time else TOGETHER


class LossObjective(MovedRows):
    """Items, each a word and a loss of its own; what is climbed is 1 / (1 + loss).

    Args:
        functionals: evaluates delta, then F - F(X) of one alignment or of several.
        words: (items,), the word of each item.
        loss: of the functionals and the items; that of an item depends on delta and on its own F alone.
        wanted: the signs in which delta and F should move, for the starting points; a pair, or one for each item.
        alignments: (items,), which of the functionals is the item's F; None for the first after delta.
        observe: told of every evaluation.
        stages: of the search.
    """

    inward = True

    def __init__(
        self,
        functionals: WordFunctionals,
        words: Int[Tensor, " m"],
        loss: Loss,
        *,
        wanted: tuple[float, float] | Float[Tensor, "items 2"] = (0.0, 0.0),
        alignments: Int[Tensor, " items"] | None = None,
        observe: Observer | None = None,
        stages: Stages,
    ):
        super().__init__(functionals.rows, functionals.memory_budget)
        self._functionals, self._item_words, self._loss = functionals, words, loss
        signs = torch.as_tensor(wanted, dtype=self.rows.dtype, device=self.rows.device).expand(len(words), 2)
        self._toward = torch.where(signs == 0, 1.0, signs)
        self._alignments = torch.ones_like(words) if alignments is None else alignments
        self._observe = observe
        self.stages, self.kinked = stages, functionals.kinked

    def bytes_per_pair(self) -> int:
        return self._functionals.bytes_per_pair()

    def functionals(self, perturbations: Float[Tensor, "b d"], items: Int[Tensor, " b"]) -> Float[Tensor, "b m"]:
        """delta and every F - F(X) of each pair of an item and a Delta."""
        return self._functionals.values(perturbations, self._item_words[items])

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w d"]:
        """Down the loss at Delta = 0; towards the wanted F with delta unchanged; each functional; the map's own."""
        different, index = self._item_words[words].unique(return_inverse=True)
        zero = self.rows.new_zeros(len(different), self.rows.shape[1])
        slopes = torch.stack([self._gradient(zero, different, at) for at in range(self._functionals.count)])[:, index]
        own = self._alignments[words]
        shift, alignment = slopes[0], slopes[own, torch.arange(len(words), device=words.device)]
        at_zero = self.rows.new_zeros(len(words), self._functionals.count)
        weights = self._loss(at_zero, words)[1]
        down = -(weights[:, :1] * shift + weights.gather(1, own.unsqueeze(1)) * alignment)
        toward_shift, toward = self._toward[words].T.unsqueeze(2)
        along = (alignment * shift).sum(dim=1, keepdim=True)
        squared = shift.square().sum(dim=1, keepdim=True)
        apart = alignment - torch.where(squared > 0, along / torch.where(squared > 0, squared, 1.0), 0.0) * shift
        of_map = self._functionals.starting_directions().unsqueeze(1).expand(-1, len(words), -1)
        return unit(torch.cat([torch.stack([down, toward * apart, toward * alignment, toward_shift * shift]), of_map]))

    def _gradient(self, zero: Tensor, words: Tensor, which: int) -> Float[Tensor, "w d"]:
        def pull(values: Tensor) -> Tensor:
            weights = torch.zeros_like(values)
            weights[:, which] = 1
            return weights

        return self._functionals.values_and_gradient(zero, words, pull)[1]

    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        moved = self._item_words[words]
        if not gradient:
            values = self._functionals.values(perturbations, moved)
            slope = None
        else:
            # The chunk is already as small as the functionals want it: `pull` sees all of it.
            def pull(values: Tensor) -> Tensor:
                loss, slopes = self._loss(values, words)
                return -slopes / (1 + loss).square().unsqueeze(1)

            values, slope = self._functionals.values_and_gradient(perturbations, moved, pull)
        if self._observe is not None:
            self._observe(values, moved, perturbations)
        return 1 / (1 + self._loss(values, words)[0]), slope
