"""The choice of a search: over great circles where Delta enters linearly, the general one elsewhere, or both."""

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ball import Ball
from wordsens.search.krylov import krylov_search
from wordsens.search.linear_entry import LinearEntryObjective
from wordsens.search.objective import Objective
from wordsens.search.plan import SearchPlan
from wordsens.search.population import search
from wordsens.search.result import Progress, SearchResult


def find_witnesses(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """The best Delta found for each word: by the Krylov search where Delta enters linearly, else by the general one.

    By the better of both where the objective has stages for that, unless the plan is quick or names numbers; in fewer
    coordinates where no others matter to the objective.
    """
    narrow = objective.narrowed()
    if narrow is not None:
        found = find_witnesses(narrow[0], words, ball, plan, generator=generator, progress=progress)
        return replace(found, perturbations=found.perturbations @ narrow[1])
    stages = plan.stages(objective.plan)
    if not isinstance(objective, LinearEntryObjective):
        return search(objective, words, ball, stages, generator=generator, progress=progress)
    found = krylov_search(objective, words, ball, stages, generator=generator, progress=progress)
    if objective.wide_plan is None or plan.named or plan.effort == "quick":
        return found
    return _better(found, search(objective, words, ball, plan.stages(objective.wide_plan), generator=generator))


def _better(first: SearchResult, second: SearchResult) -> SearchResult:
    """Word by word the result with the larger objective."""
    better = second.squared > first.squared
    return SearchResult(
        perturbations=torch.where(better.unsqueeze(1), second.perturbations, first.perturbations),
        squared=torch.maximum(first.squared, second.squared),
        spent=first.spent + second.spent,
        converged=torch.where(better, second.converged, first.converged),
    )
