"""Which search looks for the witnesses of a change."""

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ball import Ball
from wordsens.search.krylov import krylov_search
from wordsens.search.linear_entry import LinearEntryChange
from wordsens.search.objective import WordChange
from wordsens.search.plan import SearchPlan
from wordsens.search.population import search
from wordsens.search.result import Progress, SearchResult


def find_witnesses(
    change: WordChange,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """The best Delta found for each word: by the Krylov search where Delta enters linearly, else by the general one.

    By the better of both where the change has a plan for that. The caller's wishes are those of `plan`.
    """
    if not isinstance(change, LinearEntryChange):
        return search(change, words, ball, plan, generator=generator, progress=progress)
    found = krylov_search(change, words, ball, plan, generator=generator, progress=progress)
    if change.wide_plan is None or plan is not change.plan:
        return found
    return _better(found, search(change, words, ball, change.wide_plan, generator=generator))


def _better(first: SearchResult, second: SearchResult) -> SearchResult:
    """Word by word the result with the larger squared change."""
    better = second.squared > first.squared
    return SearchResult(
        perturbations=torch.where(better.unsqueeze(1), second.perturbations, first.perturbations),
        squared=torch.maximum(first.squared, second.squared),
        evaluations=first.evaluations + second.evaluations,
        converged=torch.where(better, second.converged, first.converged),
    )
