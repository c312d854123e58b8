"""The search: on great circles where Delta enters linearly, a multistart ascent elsewhere."""

from dataclasses import replace
from functools import reduce

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ascent import ascend
from wordsens.search.krylov import krylov_search
from wordsens.search.objective import Ball, LinearEntryObjective, Objective, Progress, SearchResult
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
    """The best Delta of each word (w,), in its ball, or in the `blocks` balls of a group, one for each equal part.

    Lower bounds of the maxima; map the perturbations again before you trust the values. Cost: see `Stages`.
    `generator` draws the random starts; `progress` is called with (steps done, steps at most).
    """
    reduced = objective.narrowed()
    if reduced is not None:
        result = maximize(reduced[0], words, ball, plan, blocks=blocks, generator=generator, progress=progress)
        return replace(result, perturbations=result.perturbations @ reduced[1])
    results: list[SearchResult] = []
    for stages in plan.runs(objective.stages):
        if isinstance(objective, LinearEntryObjective):
            results.append(krylov_search(objective, words, ball, stages, generator=generator, progress=progress))
            if objective.also_ascend and plan.effort != "quick":
                results.append(ascend(objective, words, ball, objective.ascent_stages, generator=generator))
        else:
            results.append(
                ascend(objective, words, ball, stages, blocks=blocks, generator=generator, progress=progress)
            )
    return reduce(SearchResult.merge_best, results)
