"""The search: on great circles where Delta enters linearly, a multistart ascent elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ascent import ascend, texts_at_once
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
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    blocks: int = 1,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """The best Delta of each word (w,), in its ball, or in the `blocks` balls of a group, one for
    each equal part.

    Lower bounds of the maxima; map the perturbations again before you trust the values. Cost: see
    `Stages`. `generator` draws the random starts; `progress` is called with (steps done, steps at
    most).
    """
    return _searched(objective, words, ball, plan, blocks, [generator], progress)


def maximize_each(
    objectives: Sequence[Objective],
    words: Sequence[Int[Tensor, " w"]],
    balls: Sequence[Ball],
    plan: SearchPlan,
    *,
    generators: Sequence[torch.Generator],
    progress: Progress | None = None,
) -> list[SearchResult]:
    """`maximize` of each objective; those that are alike as one problem, so many at once as fit
    (`texts_at_once`).

    A result is the same, to rounding, as alone; `progress` is called with thousandths of an
    objective.
    """
    results: dict[int, SearchResult] = {}
    while len(results) < len(objectives):
        first, *others = (place for place in range(len(objectives)) if place not in results)
        most = texts_at_once(
            objectives[first], len(words[first]), plan.runs(objectives[first].stages)[-1]
        )
        same = [
            place
            for place in others[: max(0, most - 1)]
            if len(words[place]) == len(words[first]) and objectives[first].alike(objectives[place])
        ]
        chosen = [first, *same] if most > 1 else [first]
        finished = len(results)

        def report(
            done: int, total: int, finished: int = finished, count: int = len(chosen)
        ) -> None:
            if progress is not None:
                progress(
                    1000 * finished + 1000 * count * done // max(1, total), 1000 * len(objectives)
                )

        if len(chosen) == 1:
            results[first] = maximize(
                objectives[first],
                words[first],
                balls[first],
                plan,
                generator=generators[first],
                progress=report,
            )
            continue
        joined = objectives[first].together([objectives[place] for place in chosen])
        numbered = torch.cat(
            [words[place] + text * joined.stride for text, place in enumerate(chosen)]
        )
        ball = Ball(torch.cat([balls[place].radius for place in chosen]))
        streams = [generators[place] for place in chosen]
        found = _searched(joined, numbered, ball, plan, 1, streams, report).of_texts(len(chosen))
        results.update(zip(chosen, found, strict=True))
    return [results[place] for place in range(len(objectives))]


def _searched(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    blocks: int,
    generators: Sequence[torch.Generator],
    progress: Progress | None,
) -> SearchResult:
    reduced = objective.narrowed()
    if reduced is not None:
        result = _searched(reduced[0], words, ball, plan, blocks, generators, progress)
        return replace(result, perturbations=result.perturbations @ reduced[1])
    results: list[SearchResult] = []
    runs = plan.runs(objective.stages)
    for turn, stages in enumerate(runs):
        report = part_of(progress, turn, len(runs))
        if isinstance(objective, LinearEntryObjective):
            results.append(
                krylov_search(
                    objective, words, ball, stages, generator=generators[0], progress=report
                )
            )
            if objective.also_ascend and plan.effort != "quick":
                results.append(
                    ascend(objective, words, ball, objective.ascent_stages, generators=generators)
                )
        else:
            results.append(
                ascend(
                    objective,
                    words,
                    ball,
                    stages,
                    blocks=blocks,
                    generators=generators,
                    progress=report,
                )
            )
    return reduce(SearchResult.merge_best, results)
