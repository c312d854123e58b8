"""Which search looks for the witnesses of a change."""

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.ball import Ball
from wordsens.feature_map import WordChange
from wordsens.linear_entry import LinearEntryChange
from wordsens.search.krylov import krylov_search
from wordsens.search.population import search
from wordsens.search.result import Progress, SearchResult
from wordsens.search_plan import SearchPlan


def find_witnesses(
    change: WordChange,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """The best Delta found for each word: by the Krylov search where Delta enters linearly, else by the general one."""
    if isinstance(change, LinearEntryChange):
        return krylov_search(change, words, ball, plan, generator=generator, progress=progress)
    return search(change, words, ball, plan, generator=generator, progress=progress)
