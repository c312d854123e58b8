"""The search: on great circles where Delta enters linearly, a multistart ascent elsewhere."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import reduce

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ascent import ascend, texts_at_once
from wordsens.search.climb import BallProblem
from wordsens.search.krylov import krylov_search
from wordsens.search.objective import (
    Ball,
    LinearEntryObjective,
    Objective,
    Progress,
    SearchResult,
    part_of,
)
from wordsens.search.plan import SearchPlan


def maximize(
    objective: Objective,
    places: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    joint: bool = False,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """The best Delta of each place (w,), in its ball (w,), or in the ball of each row that moves,
    (w, g).

    Lower bounds of the maxima; map the perturbations again before you trust the values. Cost: see
    `Stages`.

    Args:
        joint: whether the rows of a place share one ball, sum_i ‖Delta_i‖² / radius_i² <= 1.
        generator: draws the random starts.
        progress: called with (steps done, steps at most).
    """
    radius = ball.radius if ball.radius.ndim > 1 else ball.radius.unsqueeze(1)
    problem = BallProblem(objective, places, radius, [generator], joint)
    return _searched(problem, plan, progress)


def maximize_each(
    problems: Sequence[BallProblem], plan: SearchPlan, progress: Progress | None = None
) -> list[SearchResult]:
    """The search of each problem. Problems whose objectives can be joined are searched as one
    problem, as many at a time as fit (`texts_at_once`).

    A result is the same, to rounding, as alone.
    """
    results: dict[int, SearchResult] = {}
    batches = _batches(problems, plan)
    for number, batch in enumerate(batches):
        parts = [problems[place] for place in batch]
        problem = parts[0]
        if len(parts) > 1:
            problem = replace(
                problem,
                objective=problem.objective.joined([part.objective for part in parts]),
                places=torch.cat([part.places for part in parts]),
                radius=torch.cat([part.radius for part in parts]),
                streams=[part.streams[0] for part in parts],
            )
        found = _searched(problem, plan, part_of(progress, number, len(batches)))
        results.update(zip(batch, found.of_texts(len(parts)), strict=True))
    return [results[place] for place in range(len(problems))]


def _batches(problems: Sequence[BallProblem], plan: SearchPlan) -> list[list[int]]:
    """The problems by number, those that are searched as one in one list."""
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for number, problem in enumerate(problems):
        joins = problem.objective.joins if len(problems) > 1 else None
        alike[number if joins is None else (joins, len(problem.places))].append(number)
    batches = []
    for numbers in alike.values():
        objective = problems[numbers[0]].objective
        stages = plan.runs(objective.stages)[-1]
        most = texts_at_once(objective, len(problems[numbers[0]].places), stages)
        batches += [numbers[first : first + most] for first in range(0, len(numbers), most)]
    return batches


def _searched(problem: BallProblem, plan: SearchPlan, progress: Progress | None) -> SearchResult:
    objective = problem.objective
    if (reduced := objective.narrowed()) is not None:
        result = _searched(replace(problem, objective=reduced[0]), plan, progress)
        return replace(result, perturbations=result.perturbations @ reduced[1])
    results: list[SearchResult] = []
    runs = plan.runs(objective.stages)
    for turn, stages in enumerate(runs):
        report = part_of(progress, turn, len(runs))
        search = krylov_search if isinstance(objective, LinearEntryObjective) else ascend
        results.append(search(problem, stages, report))
    return reduce(SearchResult.merge_best, results)
