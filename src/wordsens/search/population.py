"""Searches of all words of one text or of several: as many words at once as the memory allows."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.ball import Ball
from wordsens.search.group_search import Found, GroupSearch
from wordsens.search.objective import Objective
from wordsens.search.plan import Stages, evenly_spaced
from wordsens.search.result import Progress, SearchResult
from wordsens.search.stationary import settled

_SMOOTHER = 10
"""Times as smooth a relative is explored by a second run where the first had none. Scores under a tanh, temperature
.07, 7 words: .94 to 1 of an attack's values after the first run, 1.03 to 1.07 after the second."""

_LEADING = 4
"""One of so many words, at most, leads a text."""

_COPIES = 24
"""About how many numbers a search keeps for each coordinate of each point: the rule's memory and the trials."""


def search(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: Stages,
    *,
    blocks: int = 1,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """Maximise the objective over the ball of each word, or the `blocks` balls of each group.

    Words are searched together, in groups that fit the objective's memory budget; crossing stays within a group.
    Cost: see `SearchPlan`.
    """
    size = words_at_once(objective, plan)
    plan = plan if plan.contenders + plan.sampled <= size else replace(plan, contenders=0, sampled=0)
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    tick = _Ticker(progress, plan.all_rounds(len(groups), len(words)))
    race = plan.race(len(words))

    def run(
        group: Int[Tensor, " g"], radius: Float[Tensor, " g"], plan: Stages = plan, of: Objective = objective
    ) -> Found:
        return GroupSearch(of, group, radius, blocks, plan, [generator], tick).run()

    stages = plan.heat() if race else plan
    found, squared, evaluations, converged = zip(*(run(group, radius, stages) for group, radius in groups), strict=True)
    first = torch.cat(found), torch.cat(squared), torch.cat(evaluations), torch.cat(converged)
    if race:
        first = _raced(objective, run, words, ball.radius, first, 1, plan)
    plan = replace(plan, again=min(plan.again, size), leaders=min(plan.leaders, size))
    points, squared, evaluations, converged = _again(objective, run, words, ball.radius, first, 1, plan)
    tick.end()
    inside = ball.project(points.unflatten(1, (blocks, -1)).transpose(0, 1)).transpose(0, 1)
    found = SearchResult(inside.reshape(len(points), *objective.shape), squared, evaluations, converged)
    if plan.steps == 0 and bool((squared > 0).all()):
        return found  # what was not polished did not converge
    return settled(objective, words, ball, found, blocks=blocks, generator=generator)


def search_together(
    objective: Objective,
    ball: Ball,
    plan: Stages,
    *,
    generators: Sequence[torch.Generator],
    progress: Progress | None = None,
) -> list[SearchResult]:
    """`search` on all words of several texts of equal length, step by step at once; one result a text.

    Crossing stays within a text and every text has a generator of its own, so each result is that of `search` on that
    text alone, to rounding; a long text under attention is explored in all coordinates here, alone in fewer. All words
    must fit the memory budget: see `words_at_once`.

    Args:
        objective: of all words, those of the first text first.
        ball: their balls.
        generators: one a text.
    """
    texts = len(generators)
    words = torch.arange(len(ball.radius), device=objective.device)
    each = len(words) // texts
    tick = _Ticker(progress, plan.all_rounds(1, each))

    def run(
        group: Int[Tensor, " g"], radius: Float[Tensor, " g"], plan: Stages = plan, of: Objective = objective
    ) -> Found:
        return GroupSearch(of, group, radius, 1, plan, generators, tick).run()

    first = run(words, ball.radius, plan.heat() if plan.race(each) else plan)
    if plan.race(each):
        first = _raced(objective, run, words, ball.radius, first, texts, plan)
    points, squared, spent, converged = _again(objective, run, words, ball.radius, first, texts, plan)
    tick.end()
    by_text = zip(
        *(part.chunk(texts) for part in (words, ball.radius, ball.project(points), squared, spent, converged)),
        generators,
        strict=True,
    )
    return [
        settled(objective, own, Ball(radius), SearchResult(mine, value, count, done), generator=generator)
        for own, radius, mine, value, count, done, generator in by_text
    ]


def words_at_once(objective: Objective, plan: Stages) -> int:
    """The number of words that a search takes at a time, by the objective's memory budget."""
    numbers = max(plan.starts, plan.population + plan.children) * objective.coordinates * _COPIES
    return max(1, objective.memory_budget // (numbers * objective.dtype.itemsize))


def _again(
    objective: Objective,
    run: Callable[[Tensor, Tensor, Stages, Objective], Found],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    first: Found,
    texts: int,
    plan: Stages,
) -> Found:
    """The first findings, bettered by further runs on the words of each text that have the largest values.

    A run misses a word's best hill now and then; that two miss it is rare. Where the first had no relative to explore,
    the second has a smoother one; where the objective has a second look, that is searched too. The few words that lead
    are searched longest: one of them is the text's.
    """
    race = plan.race(len(words) // texts)
    if race:
        plan = replace(plan, again=min(plan.again, plan.contenders), leaders=min(plan.leaders, plan.contenders))
    if plan.again:
        smoother = plan
        if not objective.softened(radius, [plan.explored_share]):
            smoother = replace(plan, explored_share=_SMOOTHER * plan.explored_share)
        first = _bettered(run, words, radius, first, _leading(first, texts, plan.again), smoother, objective)
    second = objective.second_look(radius) if plan.explored_share else None
    if second is not None:
        most = min(plan.contenders if race else len(words), words_at_once(objective, plan) // texts)
        first = _bettered(run, words, radius, first, _leading(first, texts, most), plan, second)
    if plan.leaders:
        few = -(-len(words) // (texts * _LEADING))
        leading = _leading(first, texts, min(plan.leaders, few))
        first = _bettered(run, words, radius, first, leading, plan.of_leaders(), objective)
    return first


def _raced(
    objective: Objective,
    run: Callable[[Tensor, Tensor, Stages, Objective], Found],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    first: Found,
    texts: int,
    plan: Stages,
) -> Found:
    """The findings of the heat, bettered by the plan's stages on each text's sampled words and its contenders."""
    # What was not polished was compared in the precision of the exploration.
    first = first[0], first[1].to(first[0].dtype), *first[2:]
    sampled = torch.tensor(evenly_spaced(len(words) // texts, plan.sampled), dtype=torch.long, device=words.device)
    leading = _leading(first, texts, plan.contenders, besides=sampled)
    return _bettered(run, words, radius, first, leading, plan, objective)


def _leading(
    found: Found, texts: int, most: int, besides: Int[Tensor, " count"] | None = None
) -> Int[Tensor, " leading"]:
    """Places of the words of each text with the largest values, at most so many, and of those `besides`."""
    values = found[1].view(texts, -1)
    own = values.shape[1]
    if besides is not None:
        values = values.index_fill(1, besides, -torch.inf)
    places = values.topk(min(most, own), dim=1).indices
    if besides is not None:
        places = torch.cat([places, besides.expand(texts, -1)], dim=1)
    places = places.sort(dim=1).values
    return (places + torch.arange(texts, device=places.device).unsqueeze(1) * own).flatten()


def _bettered(
    run: Callable[[Tensor, Tensor, Stages, Objective], Found],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    first: Found,
    leading: Int[Tensor, " leading"],
    plan: Stages,
    objective: Objective,
) -> Found:
    """The findings after another run on the words at these places."""
    points, squared, spent, converged = run(words[leading], radius[leading], plan, objective)
    better = squared > first[1][leading]
    at = leading[better]
    for old, new in zip((first[0], first[1], first[3]), (points, squared, converged), strict=True):
        old[at] = new[better]
    first[2][leading] += spent
    return first


class _Ticker:
    def __init__(self, progress: Progress | None, total: int):
        self._progress, self._done, self._total = progress, 0, total

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def end(self) -> None:
        """Tells that all is done."""
        if self._progress is not None:
            self._progress(self._total, self._total)
