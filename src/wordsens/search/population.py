"""Searches of all words of one text or of several: as many words at once as the memory allows."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from wordsens.search.ball import Ball
from wordsens.search.group_search import GroupSearch
from wordsens.search.objective import WordChange
from wordsens.search.plan import SearchPlan
from wordsens.search.result import Progress, SearchResult
from wordsens.search.stationary import settled

_COPIES = 24
"""About how many numbers a search keeps for each coordinate of each point: the rule's memory and the trials."""


def search(
    change: WordChange,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    blocks: int = 1,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """Maximise ‖phi(X^i(Delta)) - phi(X)‖² over the ball of each word, or the `blocks` balls of each group.

    Words are searched together, in groups that fit the change's memory budget; crossing stays within a group.
    Cost: about starts * climb_steps + generations * children * (climb_steps + kick_steps) + finalists * steps
    evaluations a word.
    """
    size = words_at_once(change, plan)
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    total = plan.rounds() * len(groups)
    results = []
    for done, (group, radius) in enumerate(groups):
        tick = _Ticker(progress, done * plan.rounds(), total)
        results.append(GroupSearch(change, group, radius, blocks, plan, [generator], tick).run())
    if progress is not None:
        progress(total, total)
    points, squared, evaluations, converged = (torch.cat(part) for part in zip(*results, strict=True))
    inside = ball.project(points.unflatten(1, (blocks, -1)).transpose(0, 1)).transpose(0, 1)
    found = SearchResult(inside.reshape(len(points), *change.shape), squared, int(evaluations.sum()), converged)
    return settled(change, words, ball, found, blocks=blocks, generator=generator)


def search_together(
    change: WordChange,
    ball: Ball,
    plan: SearchPlan,
    *,
    generators: Sequence[torch.Generator],
    progress: Progress | None = None,
) -> list[SearchResult]:
    """`search` on all words of several texts of equal length, step by step at once; one result a text.

    Crossing stays within a text and every text has a generator of its own, so each result is that of `search` on that
    text alone, to rounding; a long text under attention is explored in all coordinates here, alone in fewer. All words
    must fit the memory budget: see `words_at_once`.

    Args:
        change: of all words, those of the first text first.
        ball: their balls.
        generators: one a text.
    """
    texts = len(generators)
    words = torch.arange(len(ball.radius), device=change.rows.device)
    found = GroupSearch(change, words, ball.radius, 1, plan, generators, _Ticker(progress, 0, plan.rounds())).run()
    if progress is not None:
        progress(plan.rounds(), plan.rounds())
    points, squared, spent, converged = found
    by_text = zip(
        *(part.chunk(texts) for part in (words, ball.radius, ball.project(points), squared, spent, converged)),
        generators,
        strict=True,
    )
    return [
        settled(change, own, Ball(radius), SearchResult(mine, value, int(count.sum()), done), generator=generator)
        for own, radius, mine, value, count, done, generator in by_text
    ]


def words_at_once(change: WordChange, plan: SearchPlan) -> int:
    """How many words a search takes at a time, by the change's memory budget."""
    numbers = max(plan.starts, plan.population + plan.children) * math.prod(change.shape) * _COPIES
    return max(1, change.memory_budget // (numbers * change.rows.element_size()))


class _Ticker:
    def __init__(self, progress: Progress | None, done: int, total: int):
        self._progress, self._done, self._total = progress, done, total

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)
