"""The search: on great circles where Delta enters linearly, a multistart ascent elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ascent import ascend, texts_at_once
from wordsens.search.climb import Problem
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
    problem = Problem(objective, places, radius, [generator], joint)
    return _searched(problem, plan, progress)


def maximize_each(
    problems: Sequence[Problem], plan: SearchPlan, progress: Progress | None = None
) -> list[SearchResult]:
    """The search of each problem; those of one text each whose objectives can be joined are
    searched as one problem, so many at once as fit (`texts_at_once`).

    A result is the same, to rounding, as alone.
    """
    results: dict[int, SearchResult] = {}
    waiting = list(range(len(problems)))
    while waiting:
        first = problems[waiting[0]]
        chosen, finished = _together(problems, waiting, plan), len(results)

        def report(
            done: int, total: int, finished: int = finished, count: int = len(chosen)
        ) -> None:
            if progress is not None:
                share = 1000 * count * done // max(1, total)
                progress(1000 * finished + share, 1000 * len(problems))

        parts = [problems[place] for place in chosen]
        problem = first
        if len(parts) > 1:
            problem = replace(
                first,
                objective=first.objective.joined([part.objective for part in parts]),
                places=torch.cat([part.places for part in parts]),
                radius=torch.cat([part.radius for part in parts]),
                streams=[part.streams[0] for part in parts],
            )
        found = _searched(problem, plan, report).of_texts(len(parts))
        results.update(zip(chosen, found, strict=True))
        waiting = [place for place in waiting if place not in results]
    return [results[place] for place in range(len(problems))]


def _together(problems: Sequence[Problem], waiting: list[int], plan: SearchPlan) -> list[int]:
    """The first problem that waits, and those that are searched with it."""
    first = problems[waiting[0]]
    if len(waiting) == 1 or first.objective.joins is None:
        return waiting[:1]
    stages = plan.runs(first.objective.stages)[-1]
    alike = [
        place
        for place in waiting
        if problems[place].objective.joins == first.objective.joins
        and len(problems[place].places) == len(first.places)
    ]
    return alike[: texts_at_once(first.objective, len(first.places), stages)]


def _searched(problem: Problem, plan: SearchPlan, progress: Progress | None) -> SearchResult:
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
