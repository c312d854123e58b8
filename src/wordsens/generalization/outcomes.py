"""All trainings, objectives and limits of the one-word experiment in one search: every point counts for each."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.frontier import (
    DEFAULT_GAMMAS,
    ROUND_STEPS,
    ROUNDS,
    OneWordFrontier,
    frontier_at,
    limits_of,
    losses_under,
)
from wordsens.generalization.loss import (
    OBJECTIVE_NAMES,
    BestPoints,
    Loss,
    Losses,
    LossObjective,
    climb_within_limits,
)
from wordsens.generalization.new_text import Learner, NewText, as_new_text
from wordsens.generalization.one_word import Effort, OneWordGeneralization, Witness, ball_of, result_at, words_of
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET
from wordsens.regression import TRAININGS
from wordsens.regression.features import Texts
from wordsens.results import Result, ResultTable
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.plan import Search, SearchPlan, Stages
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

_ALIGNMENTS = tuple(f"{training}-alignment" for training in TRAININGS)
_CHOICES = [(name.removesuffix("-alignment"), name) for name in _ALIGNMENTS] + [
    (training, name) for training in TRAININGS for name in ("error", "penalized-error")
]
"""The trainings and objectives that have a loss of their own; an alignment is the same for both trainings."""

_STAGES = Stages(starts=12, steps=30, generations=3, population=3, children=4, finalists=1, finish=30, tolerance=1e-7)
_STAGES_LINEAR = Stages(starts=4, steps=8, finalists=1, finish=10, tolerance=1e-7)
_LINEAR_ROUNDS, _LINEAR_ROUND_STEPS = 3, 6
"""Of maps that are nearly linear in one word: a few steps suffice."""


@dataclass(frozen=True, eq=False, repr=False)
class OneWordOutcomes(Result):
    """The results of one search for every training and objective, and both frontiers.

    Attributes:
        chosen: of each training, for "fine-tuned-alignment", "retrained-alignment", "error" and "penalized-error".
        frontiers: of each training.
    """

    chosen: tuple[OneWordGeneralization, ...]
    frontiers: tuple[OneWordFrontier, ...]

    def of(self, training: str, objective: str) -> OneWordGeneralization:
        """The result for the objective; "alignment" is the training's own."""
        require_choice("training", training, TRAININGS)
        require_choice("objective", objective, OBJECTIVE_NAMES)
        name = f"{training}-alignment" if objective == "alignment" else objective
        return next(one for one in self.chosen if (one.training, one.objective) == (training, name))

    def frontier(self, training: str) -> OneWordFrontier:
        """The least errors under each limit on gamma."""
        return self.frontiers[TRAININGS.index(require_choice("training", training, TRAININGS))]

    def result_table(self) -> ResultTable:
        """A row for each training and objective."""
        columns = {
            name: [getattr(one, name) for one in self.chosen]
            for name in ("training", "objective", "error", "gamma", "alignment", "bound")
        }
        name = self.chosen[0].map_name
        return ResultTable(f"{name}: one word changes, the label flips; every training and objective", columns)


@torch.inference_mode(False)
def one_word_outcomes(
    phi: Learner,
    texts: Texts | None = None,
    y: Iterable[Any] | None = None,
    x: TextMatrix | Tensor | None = None,
    y_x: float | int | None = None,
    *,
    word: int = 0,
    gammas: Iterable[Any] = DEFAULT_GAMMAS,
    seed: Seed = 0,
    penalty: float | int = 1.0,
    radius: float | int | None = None,
    ridge: float | int = 0.0,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> OneWordOutcomes:
    """`one_word_generalization` and `one_word_frontier` of one word, for both trainings and all objectives.

    The losses all depend on delta and on the two alignments alone. Each is climbed from a few starts of its own, all at
    once; every point that is evaluated counts for every loss (and for every limit on gamma that it obeys); from the
    best of them the climbs go on. A fraction of the cost of one search a loss: O(L s (n d + d²)) for L losses (22 with
    eight limits) and s steps of a few points. Every number is attained and recomputed through the map (ours).

    Args:
        phi, texts, y, x, y_x, seed, radius, ridge, memory_budget: as for one_word_generalization.
        word: the word that changes.
        gammas: the limits of the frontiers.
        penalty: of penalized-error.
        search: "quick", "normal", "thorough" or a SearchPlan: what the search spends on each loss.

    Raises:
        InputError: no limit, or one that is not positive; a bad word, penalty or radius.
        SingularGramError: X lies in the span of the training texts, so that it cannot be retrained on.

    >>> texts, x = torch.eye(8, dtype=torch.float64).view(8, 2, 4)[:2], torch.ones(2, 4, dtype=torch.float64)
    >>> outcomes = one_word_outcomes(lambda X: X, texts, [1, -1], x, 1, radius=1.0)
    >>> round(outcomes.of("fine-tuned", "error").error, 3), round(outcomes.frontier("fine-tuned").at(0.5), 3)
    (0.318, 1.603)
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    new = as_new_text(phi, texts, y, x, y_x, ridge=ridge, memory_budget=memory_budget)
    words = words_of(word, len(new.text)).to(new.rows.device)
    if len(words) != 1:
        raise InputError(f"`word` (={word!r}) must be an index here; for all words search one objective at a time")
    limits, ball = limits_of(gammas), ball_of(new, words, radius)
    under = [loss for training in TRAININGS for loss in losses_under(training, limits)]
    losses = Losses(new, [*(Loss.of(*choice, penalty) for choice in _CHOICES), *under])
    best = BestPoints(losses, new)
    linear = losses.functionals.one_word_at_a_time

    def objective(of: Losses) -> LossObjective:
        return LossObjective(of, words.expand(len(of)), _STAGES_LINEAR if linear else _STAGES, observe=best.see)

    items = torch.arange(len(losses), device=words.device)
    reach, stream = ball.radius.expand(len(items)), generator(seed, "together")
    points = maximize(objective(losses), items, Ball(reach), plan, generator=stream).perturbations
    # Points inside a limit and, beside them, those that the stiffness of the limits leaves a little outside.
    both, reach = losses.repeated(2), reach.repeat(2)
    points = torch.cat([points, best.perturbations]) / reach.to(points.dtype).unsqueeze(1)
    rounds, steps = (_LINEAR_ROUNDS, _LINEAR_ROUND_STEPS) if linear else (ROUNDS, ROUND_STEPS)
    idle = climb_within_limits(objective(both), both, reach, points, rounds=rounds, steps=steps)
    converged = idle.view(2, -1).any(dim=0)
    effort = Effort(str(plan), best.evaluations, time.perf_counter() - started, int(seed))
    deltas = best.perturbations[len(_CHOICES) :].chunk(len(TRAININGS))
    return OneWordOutcomes(
        _choices(new, losses, int(words[0]), float(ball.radius[0]), best.perturbations, converged, effort),
        tuple(
            frontier_at(new, training, limits, words.expand(len(limits)), delta, effort)
            for training, delta in zip(TRAININGS, deltas, strict=True)
        ),
    )


def _choices(
    new: NewText,
    losses: Losses,
    word: int,
    radius: float,
    perturbations: Float[Tensor, "m d"],
    converged: Bool[Tensor, " m"],
    effort: Effort,
) -> tuple[OneWordGeneralization, ...]:
    """Every witness mapped through phi."""
    results = []
    for at, (kind, name) in enumerate(_CHOICES):
        loss = losses.at(new.outputs(word, perturbations[at], kind), at)
        witness = Witness(word, perturbations[at], loss, radius, bool(converged[at]))
        for training in TRAININGS if name in _ALIGNMENTS else (kind,):
            results.append(result_at(new, witness, effort, training=training, objective=name))
    return tuple(results)
