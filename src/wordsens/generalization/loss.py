"""The losses that Delta is chosen by, many at once, as functions of (delta, F); and how a search
climbs down them."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.min_norm import TRAININGS
from wordsens.generalization.result import OBJECTIVE_NAMES
from wordsens.generalization.setting import OneWordSetting, Outputs
from wordsens.maps.functionals import WordFunctionals
from wordsens.search.climb import PATIENCE, BallProblem, Climb, QuasiNewton
from wordsens.search.objective import Deltas, Evaluated, Objective, Places, unit
from wordsens.search.plan import Stages

INSIDE = 1e-4
"""The search aims at limits that are smaller by this much, relative, so that its points end inside
the true ones."""

_STIFFNESS = 50.0
"""Weight of the squared excess of gamma over its limit. A round of multipliers divides the excess
by 1 + this / 2."""

FEW_WORDS = 4
"""Up to this many words are searched closely; of more, those that come out best of a first
search."""

_CLOSE = Stages(
    starts=16, steps=60, generations=3, population=6, children=8, finish=80, tolerance=1e-8
)
_CLOSE_SHORT = replace(_CLOSE, starts=64, halvings=(8, 16))
_SHORT_TEXT = 1024
"""Coordinates of a text up to which a close search has many starts: an evaluation costs less there
than the calls that make it, and one word moves the features far from what its gradient says."""

_FIRST = Stages(
    starts=12,
    steps=15,
    generations=2,
    population=4,
    children=4,
    child_steps=12,
    finish=30,
    tolerance=1e-7,
)
# Fully connected features of a long text are nearly linear in one word: the first gradient points
# to the optimum.
_CLOSE_LINEAR = Stages(starts=4, steps=8, finish=30, tolerance=1e-7)
_FIRST_LINEAR = Stages(starts=3, steps=3, finalists=1, finish=0, tolerance=1e-7)


def stages_for(functionals: WordFunctionals) -> tuple[Stages, Stages]:
    """The stages of a first search of many words, and of a close one of a few."""
    if functionals.one_word_at_a_time:
        return _FIRST_LINEAR, _CLOSE_LINEAR
    return _FIRST, _CLOSE_SHORT if functionals.rows.numel() <= _SHORT_TEXT else _CLOSE


@dataclass(frozen=True)
class Loss:
    """One loss.

    Attributes:
        objective: one of OBJECTIVE_NAMES.
        kind: whose alignment F is: "fine-tuned" or "retrained".
        penalty: the weight of gamma² in penalized-error.
        limit: on gamma.
    """

    objective: str
    kind: str
    penalty: float = 1.0
    limit: float = math.inf

    @classmethod
    def of(cls, training: str, objective: str, penalty: float | int = 1.0) -> "Loss":
        """The loss of that name for a model that learns (X, y) by `training`."""
        require_choice("training", training, TRAININGS)
        require_choice("objective", objective, OBJECTIVE_NAMES)
        if not (isinstance(penalty, (int, float)) and 0 <= penalty < math.inf):
            raise InputError(f"`penalty` (={penalty!r}) must be a finite number, at least 0")
        named = objective.removesuffix("-alignment")
        return cls(objective, named if named in TRAININGS else training, float(penalty))

    @property
    def aligns(self) -> bool:
        return self.objective.endswith("alignment")


class Losses:
    """Losses of (delta, F_1 - F_1(X), ...), to be minimised over Delta; each of a model that learns
    one text (X, y).

    a Err + b (F + 1)² + c delta² + max(0, multiplier + stiffness (|delta| - limit))² / (2
    stiffness), each with coefficients, a limit and an F of its own: an augmented Lagrangian of
    |delta| <= limit.

    Attributes:
        functionals: evaluates delta, and F - F(X) for the F of each kind.
        column: (m,), which of the functionals is the loss's F.
        limit: (m,), on gamma.
        multipliers: (m,), of the limits.
        wanted: (m, 2), the signs in which delta and F should move: 0 where it does not matter.
    """

    def __init__(self, new: OneWordSetting, losses: Sequence[Loss]):
        kinds = [kind for kind in TRAININGS if any(loss.kind == kind for loss in losses)]

        def each(values: Sequence[float]) -> Float[Tensor, " m"]:
            return torch.tensor(values, dtype=new.rows.dtype, device=new.rows.device)

        self.functionals = new.functionals(*kinds)
        self.column = torch.tensor(
            [1 + kinds.index(loss.kind) for loss in losses], device=new.rows.device
        )
        self.limit = each([loss.limit for loss in losses])
        self.multipliers = torch.zeros_like(self.limit)
        toward = -new.label * (1.0 if new.surprise >= 0 else -1.0)
        wanted = [(0.0, -1.0) if loss.aligns else (-new.label, toward) for loss in losses]
        self.wanted = each([sign for signs in wanted for sign in signs]).view(-1, 2)
        self._label, self._surprise = new.label, new.surprise
        self._at_rest = each(
            [new.update(loss.kind).alignment for loss in losses]
        )  # F(X): 1 unless there is a ridge
        self._on_alignment = each([float(loss.aligns) for loss in losses])
        self._on_error = 1 - self._on_alignment
        self._on_shift = each(
            [loss.penalty if loss.objective == "penalized-error" else 0.0 for loss in losses]
        )

    def __len__(self) -> int:
        return len(self.limit)

    def repeated(self, times: int) -> "Losses":
        """The same losses over again, with multipliers of their own."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(other, name, torch.cat([value] * times))
        return other

    def raise_multipliers(self, shift: Float[Tensor, " m"]) -> None:
        """A step of the multipliers, at these delta."""
        excess = shift.abs() - self.limit * (1 - INSIDE)
        self.multipliers = (self.multipliers + _STIFFNESS * excess).clamp(min=0)

    def loss(
        self, values: Float[Tensor, "b f"], items: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b f"]]:
        """The losses and their derivatives in the functionals."""
        shift, (alignment, miss) = values[:, 0], self._alignment_and_miss(values, items)
        excess = shift.abs() - self.limit[items] * (1 - INSIDE)
        force = (self.multipliers[items] + _STIFFNESS * excess).clamp(min=0)
        on_error, on_alignment, on_shift = (
            self._on_error[items],
            self._on_alignment[items],
            self._on_shift[items],
        )
        slopes = torch.zeros_like(values)
        slopes[:, 0] = 2 * on_error * miss + 2 * on_shift * shift + force * shift.sign()
        along = 2 * on_error * miss * self._surprise + 2 * on_alignment * (alignment + 1)
        slopes.scatter_(1, self.column[items].unsqueeze(1), along.unsqueeze(1))
        return self._without_limit(values, items) + force.square() / (2 * _STIFFNESS), slopes

    def reached(self, values: Float[Tensor, "b f"]) -> Float[Tensor, "b m"]:
        """What every evaluated point attains of every loss; infinite outside the loss's limit."""
        b, m = len(values), len(self)
        items = torch.arange(m, device=values.device).repeat(b)
        rows = values.repeat_interleave(m, dim=0)
        # A point on the limit itself could lie past it when it is recomputed, and then would not
        # count at all.
        inside = rows[:, 0].abs() <= self.limit[items] * (1 - INSIDE / 2)
        return torch.where(inside, self._without_limit(rows, items), torch.inf).view(b, m)

    def at(self, outputs: Outputs, item: int = 0) -> float:
        """The loss at one recomputed point, its limit aside."""
        miss = 2 * self._label + outputs.shift + (outputs.alignment - 1) * self._surprise
        loss = (
            float(self._on_error[item]) * miss**2
            + float(self._on_alignment[item]) * (outputs.alignment + 1) ** 2
        )
        return loss + float(self._on_shift[item]) * outputs.shift**2

    def _without_limit(
        self, values: Float[Tensor, "b f"], items: Int[Tensor, " b"]
    ) -> Float[Tensor, " b"]:
        alignment, miss = self._alignment_and_miss(values, items)
        loss = (
            self._on_error[items] * miss.square()
            + self._on_alignment[items] * (alignment + 1).square()
        )
        return loss + self._on_shift[items] * values[:, 0].square()

    def _alignment_and_miss(
        self, values: Float[Tensor, "b f"], items: Int[Tensor, " b"]
    ) -> tuple[Tensor, Tensor]:
        """Each item's F; and the output of its model on the changed text minus -y, whose square is
        Err."""
        alignment = (
            values.gather(1, self.column[items].unsqueeze(1)).squeeze(1) + self._at_rest[items]
        )
        return alignment, 2 * self._label + values[:, 0] + (alignment - 1) * self._surprise


class BestPoints:
    """The best point evaluated for each loss; Delta = 0 before any is."""

    def __init__(self, losses: Losses, new: OneWordSetting):
        self._losses, self.evaluations = losses, 0
        self._least = losses.reached(new.rows.new_zeros(1, losses.functionals.count))[0]
        self.words = torch.zeros(len(losses), dtype=torch.long, device=new.rows.device)
        self.perturbations = new.rows.new_zeros(len(losses), new.rows.shape[1])

    def see(
        self,
        values: Float[Tensor, "b f"],
        words: Int[Tensor, " b"],
        perturbations: Float[Tensor, "b d"],
    ) -> None:
        """Take what is better than before."""
        self.evaluations += len(words)
        least, point = self._losses.reached(values).min(dim=0)
        better = least < self._least
        self._least = torch.where(better, least, self._least)
        self.words = torch.where(better, words[point], self.words)
        self.perturbations = torch.where(
            better.unsqueeze(1), perturbations[point], self.perturbations
        )


class LossObjective(Objective):
    """Items, each a word and a loss of its own; what is climbed is 1 / (1 + loss).

    `observe` is called with every evaluation: functionals (b, f), words (b,), perturbations (b, d).
    """

    inward = True

    def __init__(
        self,
        losses: Losses,
        words: Int[Tensor, " m"],
        stages: Stages,
        observe: Callable[[Tensor, Tensor, Tensor], None] | None = None,
    ):
        functionals = losses.functionals
        rows = functionals.rows
        super().__init__(
            tuple(rows.shape[1:]),
            dtype=rows.dtype,
            device=rows.device,
            memory_budget=functionals.memory_budget,
            typical_length=float(torch.linalg.vector_norm(rows, dim=1).median()),
        )
        self._functionals, self._losses, self._item_words, self._observe = (
            functionals,
            losses,
            words,
            observe,
        )
        self.stages, self.kinked = stages, functionals.kinked

    def bytes_per_pair(self) -> int:
        return self._functionals.bytes_per_pair()

    def starts(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w 1"]
    ) -> Float[Tensor, "count w *shape"]:
        """Down the loss at Delta = 0; towards the wanted F with delta unchanged; each functional;
        the map's own."""
        different, index = self._item_words[places].unique(return_inverse=True)
        zero = self._functionals.rows.new_zeros(len(different), self._functionals.rows.shape[1])
        slopes = torch.stack(
            [self._gradient(zero, different, which) for which in range(self._functionals.count)]
        )[:, index]
        column = self._losses.column[places]
        shift, alignment = (
            slopes[0],
            slopes[column, torch.arange(len(places), device=places.device)],
        )
        at_zero = self._functionals.rows.new_zeros(len(places), self._functionals.count)
        weights = self._losses.loss(at_zero, places)[1]
        down = -(weights[:, :1] * shift + weights.gather(1, column.unsqueeze(1)) * alignment)
        signs = self._losses.wanted[places]
        toward_shift, toward = torch.where(signs == 0, 1.0, signs).T.unsqueeze(2)
        along = (alignment * shift).sum(dim=1, keepdim=True)
        squared = shift.square().sum(dim=1, keepdim=True)
        apart = (
            alignment
            - torch.where(squared > 0, along / torch.where(squared > 0, squared, 1.0), 0.0) * shift
        )
        of_map = self._functionals.starting_directions().unsqueeze(1).expand(-1, len(places), -1)
        return unit(
            torch.cat(
                [
                    torch.stack([down, toward * apart, toward * alignment, toward_shift * shift]),
                    of_map,
                ]
            )
        )

    def _gradient(self, zero: Tensor, words: Tensor, which: int) -> Float[Tensor, "w d"]:
        def pull(values: Tensor) -> Tensor:
            weights = torch.zeros_like(values)
            weights[:, which] = 1
            return weights

        return self._functionals.values_and_gradient(zero, words, pull)[1]

    def _evaluate(self, perturbations: Deltas, places: Places, *, gradient: bool) -> Evaluated:
        moved, slope = self._item_words[places], None
        if not gradient:
            values = self._functionals.values(perturbations, moved)
        else:
            # The chunk already fits the functionals' memory budget: `pull` gets all of it.
            def pull(values: Tensor) -> Tensor:
                loss, slopes = self._losses.loss(values, places)
                return -slopes / (1 + loss).square().unsqueeze(1)

            values, slope = self._functionals.values_and_gradient(perturbations, moved, pull)
        if self._observe is not None:
            self._observe(values, moved, perturbations)
        return 1 / (1 + self._losses.loss(values, places)[0]), slope


def climb_within_limits(
    objective: LossObjective,
    losses: Losses,
    words: Int[Tensor, " m"],
    radius: Float[Tensor, " m"],
    points: Float[Tensor, "m d"],
    *,
    rounds: int,
    steps: int,
) -> Bool[Tensor, " m"]:
    """Climb on from one point an item, raising the multipliers before each round; returns which
    items are stationary.

    `objective` observes the points that are evaluated on the way. `points` are in units of the
    radius.
    """
    items, scale = (
        torch.arange(len(points), device=points.device),
        radius.to(points.dtype).unsqueeze(1),
    )
    idle = torch.zeros(len(points), dtype=torch.bool, device=points.device)
    for _ in range(rounds):
        losses.raise_multipliers(losses.functionals.values(points * scale, words)[:, 0])
        climb = Climb(BallProblem(objective, items, radius.unsqueeze(1), ()), points)
        rule = QuasiNewton(climb, first=0.05)
        for _ in range(steps):
            rule.step(climb, objective.stages.tolerance)
        points, idle = climb.x, climb.idle >= PATIENCE
    return idle
