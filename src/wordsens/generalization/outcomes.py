"""All trainings, objectives and limits of the one-word experiment in one search: every point counts for each."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.frontier import (
    DEFAULT_GAMMAS,
    INSIDE,
    ROUND_STEPS,
    ROUNDS,
    STIFFNESS,
    BestUnderLimits,
    OneWordFrontier,
    frontier_at,
    limits_of,
)
from wordsens.generalization.loss import OBJECTIVE_NAMES, LossObjective, OneWordLoss, loss_for, stages_together
from wordsens.generalization.new_text import NewText
from wordsens.generalization.one_word import Effort, OneWordGeneralization, Witness, ball_of, result_at, words_of
from wordsens.regression import TRAININGS
from wordsens.results import Look, Result
from wordsens.search.ball import Ball
from wordsens.search.climb import PATIENCE, Climb, Momentum, QuasiNewton
from wordsens.search.maximize import maximize
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator

_ALIGNMENTS = tuple(f"{training}-alignment" for training in TRAININGS)
_OF_ERROR = ("error", "penalized-error")

_LINEAR_ROUNDS, _LINEAR_ROUND_STEPS = 3, 6
"""Of maps that are nearly linear in one word, which a few steps bring within 1e-3 of many."""


@dataclass(frozen=True, eq=False, repr=False)
class OneWordOutcomes(Result):
    """What one search found for every training and objective, and both frontiers.

    Attributes:
        chosen: of each training, for "fine-tuned-alignment", "retrained-alignment", "error" and "penalized-error".
        frontiers: of each training.
    """

    chosen: tuple[OneWordGeneralization, ...]
    frontiers: tuple[OneWordFrontier, ...]

    def of(self, training: str, objective: str) -> OneWordGeneralization:
        """What was chosen for the objective; "alignment" is the training's own."""
        require_choice("training", training, TRAININGS)
        require_choice("objective", objective, OBJECTIVE_NAMES)
        name = f"{training}-alignment" if objective == "alignment" else objective
        return next(one for one in self.chosen if (one.training, one.objective) == (training, name))

    def frontier(self, training: str) -> OneWordFrontier:
        """The least errors under each limit on gamma."""
        return self.frontiers[TRAININGS.index(require_choice("training", training, TRAININGS))]

    def look(self) -> Look:
        """A row for each training and objective."""
        columns = {
            name: [getattr(one, name) for one in self.chosen]
            for name in ("training", "objective", "error", "gamma", "alignment", "bound")
        }
        name = self.chosen[0].map_name
        return Look(f"{name}: one word changes, the label flips; every training and objective", columns)


@torch.inference_mode(False)
def one_word_outcomes(
    new: NewText,
    word: int = 0,
    gammas: Iterable[Any] = DEFAULT_GAMMAS,
    seed: Seed = 0,
    *,
    penalty: float | int = 1.0,
    radius: float | int | None = None,
    search: Search = "normal",
) -> OneWordOutcomes:
    """What `one_word_generalization` and `one_word_frontier` tell, of one word, for both trainings and all objectives.

    The losses all depend on delta and on the two alignments alone. Each is climbed from a few starts of its own, all at
    once; every point that is evaluated counts for every loss (and for every limit on gamma that it obeys); from the
    best of them the climbs go on. A fraction of the cost of one search a loss: O(L s (n d + d²)) for L losses (22 with
    eight limits) and s steps of a few points. Every number is attained and recomputed through the map (ours).

    Args:
        new: the text that is learned, and the model before.
        word: its word that changes.
        gammas: the limits of the frontiers.
        seed: of the random starts.
        penalty: of penalized-error.
        radius: of the ball; None for the map's default, sqrt(d).
        search: "quick", "normal", "thorough" or a SearchPlan: what the search spends on each loss.

    Raises:
        InputError: no limit, or one that is not positive; a bad word, penalty or radius.
        SingularGramError: X lies in the span of the training texts, so that it cannot be retrained on.

    >>> from wordsens.maps.function import FunctionFeatures
    >>> from wordsens.regression import fit_min_norm
    >>> phi, texts = FunctionFeatures(lambda X: X), torch.eye(8, dtype=torch.float64).view(8, 2, 4)[:2]
    >>> new = NewText(fit_min_norm(phi, texts, [1, -1]), torch.ones(2, 4, dtype=torch.float64), 1)
    >>> found = one_word_outcomes(new, radius=1.0)
    >>> round(found.of("fine-tuned", "error").error, 3), round(found.frontier("fine-tuned").at(0.5), 3)
    (0.318, 1.603)
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    words = words_of(word, len(new.text)).to(new.rows.device)
    if len(words) != 1:
        raise InputError(f"`word` (={word!r}) must be an index here; for all words search one objective at a time")
    limits = limits_of(gammas).to(new.rows.device)
    ball = ball_of(new, words, radius)
    losses = _Losses(new, penalty, limits)
    best = _Best(losses, new)
    functionals = new.functionals(*TRAININGS)

    def objective(of: _Losses) -> LossObjective:
        return LossObjective(
            functionals,
            words.expand(len(of.own)),
            of.loss,
            wanted=of.wanted,
            alignments=1 + of.training,
            observe=best.see,
            stages=stages_together(functionals),
        )

    climbed = objective(losses)
    items = torch.arange(len(losses.own), device=words.device)
    reach = ball.radius.expand(len(items))
    found = maximize(climbed, items, Ball(reach), plan, generator=generator(seed, "together")).perturbations
    # Points inside a limit and, beside them, those that the stiffness of the limits leaves a little outside.
    both = losses.repeated(2)
    climbed, items, reach = objective(both), torch.arange(len(both.own), device=words.device), reach.repeat(2)
    scale = reach.to(found.dtype).unsqueeze(1)
    points = torch.cat([found, best.perturbations]) / scale
    idle = torch.zeros(len(items), dtype=torch.bool, device=words.device)
    linear = functionals.one_word_at_a_time
    rounds, steps = (_LINEAR_ROUNDS, _LINEAR_ROUND_STEPS) if linear else (ROUNDS, ROUND_STEPS)
    for _ in range(rounds):
        both.raise_multipliers(climbed.functionals(points * scale, items)[:, 0])
        climb = Climb(climbed, items, reach, points)
        rule = (Momentum if climbed.kinked else QuasiNewton)(climb, first=0.05)
        for _ in range(steps):
            rule.step(climb, climbed.stages.tolerance)
        points, idle = climb.x, climb.idle >= PATIENCE
    converged = idle.view(2, -1).any(dim=0)
    effort = Effort(str(plan), best.evaluations, time.perf_counter() - started, int(seed))
    return losses.outcomes(new, int(words[0]), float(ball.radius[0]), best.perturbations, converged, effort)


class _Losses:
    """Losses of (delta, F_fine-tuned, F_retrained): two alignments, four errors, and an error under each limit, twice.

    loss = a Err + b (F + 1)² + c delta² + max(0, multiplier + stiffness (|delta| - limit))² / (2 stiffness), each with
    coefficients, a limit and an F of its own.
    """

    def __init__(self, new: NewText, penalty: float | int, limits: Float[Tensor, " g"]):
        named = [(name.removesuffix("-alignment"), name) for name in _ALIGNMENTS]
        named += list(product(TRAININGS, _OF_ERROR))
        self.names, self.limits = named, limits
        self._of = [loss_for(new, training, name, penalty) for training, name in named]
        under = [loss_for(new, training, "error") for training in TRAININGS for _ in limits]
        every: list[OneWordLoss] = [*self._of, *under]
        kind = {"dtype": new.rows.dtype, "device": new.rows.device}
        self.label, self.surprise = new.label, new.surprise
        self.training = torch.tensor([TRAININGS.index(one.kind) for one in every], device=new.rows.device)
        self.own = torch.tensor([one.own for one in every], **kind)
        aligned = torch.tensor([one.name.endswith("alignment") for one in every], device=new.rows.device)
        self.on_alignment, self.on_error = aligned.to(new.rows.dtype), (~aligned).to(new.rows.dtype)
        self.on_shift = torch.tensor([one.penalty if one.name == "penalized-error" else 0.0 for one in every], **kind)
        self.wanted = torch.tensor([one.wanted() for one in every], **kind)
        none = torch.full((len(named),), torch.inf, **kind)
        self.limit = torch.cat([none, limits.to(**kind).repeat(len(TRAININGS))])
        self.multipliers = torch.zeros_like(self.limit)

    def repeated(self, times: int) -> "_Losses":
        """The same losses over again, with multipliers of their own."""
        other = object.__new__(_Losses)
        vars(other).update(vars(self))
        for name in ("training", "own", "on_alignment", "on_error", "on_shift", "limit", "multipliers"):
            setattr(other, name, getattr(self, name).repeat(times))
        other.wanted = self.wanted.repeat(times, 1)
        return other

    def raise_multipliers(self, shift: Float[Tensor, " m"]) -> None:
        """A step of the multipliers, at these delta."""
        self.multipliers = (self.multipliers + STIFFNESS * (shift.abs() - self._aim())).clamp(min=0)

    def _aim(self) -> Float[Tensor, " m"]:
        return self.limit * (1 - INSIDE)

    def loss(self, values: Float[Tensor, "b 3"], items: Int[Tensor, " b"]) -> tuple[Tensor, Tensor]:
        """The losses and their derivatives in (delta, F_fine-tuned - F(X), F_retrained - F(X))."""
        shift = values[:, 0]
        alignment, miss = self._seen(values, items)
        on_error, on_alignment, on_shift = self.on_error[items], self.on_alignment[items], self.on_shift[items]
        force = (self.multipliers[items] + STIFFNESS * (shift.abs() - self._aim()[items])).clamp(min=0)
        loss = on_error * miss.square() + on_alignment * (alignment + 1).square() + on_shift * shift.square()
        slopes = torch.zeros_like(values)
        slopes[:, 0] = 2 * on_error * miss + 2 * on_shift * shift + force * shift.sign()
        along = 2 * on_error * miss * self.surprise + 2 * on_alignment * (alignment + 1)
        slopes.scatter_(1, 1 + self.training[items].unsqueeze(1), along.unsqueeze(1))
        return loss + force.square() / (2 * STIFFNESS), slopes

    def reached(self, values: Float[Tensor, "b 3"]) -> Float[Tensor, "b m"]:
        """What every evaluated point attains of every loss without limit, and Err under each limit that it obeys."""
        b, m = len(values), len(self.own)
        items = torch.arange(m, device=values.device).repeat(b)
        rows = values.repeat_interleave(m, dim=0)
        alignment, miss = self._seen(rows, items)
        shift = rows[:, 0]
        loss = self.on_error[items] * miss.square() + self.on_alignment[items] * (alignment + 1).square()
        loss = loss + self.on_shift[items] * shift.square()
        # A point on the limit itself could lie past it when it is recomputed, and then would not count at all.
        inside = shift.abs() <= self.limit[items] * (1 - INSIDE / 2)
        return torch.where(inside, loss, torch.inf).view(b, m)

    def _seen(self, values: Float[Tensor, "b 3"], items: Int[Tensor, " b"]) -> tuple[Tensor, Tensor]:
        """Each item's F, and the output of its model on the changed text minus -y."""
        alignment = values.gather(1, 1 + self.training[items].unsqueeze(1)).squeeze(1) + self.own[items]
        return alignment, 2 * self.label + values[:, 0] + (alignment - 1) * self.surprise

    def outcomes(
        self,
        new: NewText,
        word: int,
        radius: float,
        perturbations: Float[Tensor, "m d"],
        converged: Bool[Tensor, " m"],
        effort: Effort,
    ) -> OneWordOutcomes:
        """Every witness mapped through phi."""
        chosen = []
        for at, (kind, name) in enumerate(self.names):
            for training in TRAININGS if name in _ALIGNMENTS else (kind,):
                outputs = new.outputs(word, perturbations[at], kind)
                values = torch.tensor([[outputs.shift, outputs.alignment - self._of[at].own]], dtype=torch.float64)
                loss = float(self._of[at].loss(values)[0])
                witness = Witness(word, perturbations[at], loss, radius, bool(converged[at]))
                chosen.append(result_at(new, witness, effort, training=training, objective=name))
        frontiers = []
        for kind, own in zip(TRAININGS, perturbations[len(self.names) :].chunk(len(TRAININGS)), strict=True):
            best = BestUnderLimits(new, loss_for(new, kind, "error"), self.limits)
            best.take(word, own)
            frontiers.append(frontier_at(new, kind, best, effort))
        return OneWordOutcomes(tuple(chosen), tuple(frontiers))


class _Best:
    """The best point seen of every loss; Delta = 0 before any is."""

    def __init__(self, losses: _Losses, new: NewText):
        self._losses, self.evaluations = losses, 0
        self._least = losses.reached(new.rows.new_zeros(1, 1 + len(TRAININGS)))[0]
        self.perturbations = new.rows.new_zeros(len(self._least), new.rows.shape[1])

    def see(self, values: Float[Tensor, "b 3"], words: Int[Tensor, " b"], perturbations: Float[Tensor, "b d"]) -> None:
        """Take what is better than before."""
        self.evaluations += len(words)
        least, at = self._losses.reached(values).min(dim=0)
        better = least < self._least
        self._least = torch.where(better, least, self._least)
        self.perturbations = torch.where(better.unsqueeze(1), perturbations[at], self.perturbations)
