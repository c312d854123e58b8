"""The search: climb from several starts, cross the best witnesses within and between words, polish the winners.

The squared change of attention has many local maxima, each drawing other rows to the changed word. Which rows can be
drawn together is nearly the same for every word of a text, so a mixture of two good witnesses, the second perhaps of
another word, is a far better start than a random point (benchmarks/attention_search.py holds the comparison).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.ball import Ball
from wordsens.feature_map import WordChange
from wordsens.search.climb import PATIENCE, RULES, Climb
from wordsens.search_plan import SearchPlan
from wordsens.seeds import gaussian_on

Progress = Callable[[int, int], None]
"""Called with (steps done, steps at most)."""

_COPIES = 24
"""About how many numbers a search keeps for each coordinate of each point: the rule's memory and the trials."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found, word by word.

    Attributes:
        perturbations: (w, *shape), the best Delta of each word (or group), inside its balls.
        squared: (w,), the searcher's own ‖phi(X^i(Delta)) - phi(X)‖²; recompute it before you trust it.
        evaluations: how many (word, Delta) pairs were evaluated.
        converged: (w,), whether the winner stopped gaining before its steps ran out.
    """

    perturbations: Float[Tensor, "w ..."]
    squared: Float[Tensor, " w"]
    evaluations: int
    converged: Bool[Tensor, " w"]


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
    Cost: about starts * climb_steps + generations * children * climb_steps + finalists * steps evaluations a word.
    """
    numbers = max(plan.starts, plan.population + plan.children) * math.prod(change.shape) * _COPIES
    size = max(1, change.memory_budget // (numbers * change.rows.element_size()))
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    total = plan.rounds() * len(groups)
    results = []
    for done, (group, radius) in enumerate(groups):
        tick = _Ticker(progress, done * plan.rounds(), total)
        results.append(_GroupSearch(change, group, radius, blocks, plan, generator, tick).run())
    if progress is not None:
        progress(total, total)
    points = torch.cat([result.perturbations for result in results])
    inside = ball.project(points.unflatten(1, (blocks, -1)).transpose(0, 1)).transpose(0, 1)
    return SearchResult(
        perturbations=inside.reshape(len(points), *change.shape),
        squared=torch.cat([result.squared for result in results]),
        evaluations=sum(result.evaluations for result in results),
        converged=torch.cat([result.converged for result in results]),
    )


class _Ticker:
    def __init__(self, progress: Progress | None, done: int, total: int):
        self._progress, self._done, self._total = progress, done, total

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)


class _GroupSearch:
    """The search on w words at once. Points are kept rank by rank: point r * w + j is the r-th of word j."""

    def __init__(
        self,
        change: WordChange,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        blocks: int,
        plan: SearchPlan,
        generator: torch.Generator,
        tick: _Ticker,
    ):
        self._change, self._words, self._radius, self._blocks = change, words, radius, blocks
        self._plan, self._generator, self._tick = plan, generator, tick
        self._evaluations = 0

    def run(self) -> SearchResult:
        plan = self._plan
        best = self._climb(self._starting_points())
        for _ in range(plan.generations):
            best = self._fittest(best, plan.population)
            best = best.joined(self._climb(self._children(best)))
        best = self._fittest(best, plan.finalists)
        converged = self._polish(best)
        winner = best.squared.view(-1, len(self._words)).argmax(dim=0)
        chosen = winner * len(self._words) + torch.arange(len(winner), device=winner.device)
        return SearchResult(
            perturbations=best.x[chosen] * best.radius[chosen].to(best.x.dtype).unsqueeze(1),
            squared=best.squared[chosen],
            evaluations=self._evaluations,
            converged=converged[chosen],
        )

    def _starting_points(self) -> Float[Tensor, "starts w size"]:
        informed = self._change.starting_directions(self._words)[: self._plan.starts].flatten(start_dim=2)
        random = self._gaussian(self._plan.starts - len(informed))
        return self._unit(torch.cat([informed, random]))

    def _children(self, parents: Climb) -> Float[Tensor, "children w size"]:
        """Mixtures of two points, the second in half of them another word's; a point mixed with itself is kicked."""
        w = len(self._words)
        ranks = len(parents) // w
        points = self._unit(parents.x.view(ranks, w, -1))
        shape = (self._plan.children, w)
        own = torch.arange(w, device=points.device).expand(shape)
        first, second = self._integers(ranks, shape), self._integers(ranks, shape)
        elsewhere = self._uniform(shape) < 0.5
        partner = torch.where(elsewhere, self._integers(w, shape), own)
        share = (0.25 + 0.5 * self._uniform(shape)).unsqueeze(-1).to(points.dtype)
        child = share * points[first, own] + (1 - share) * points[second, partner]
        same = ((first == second) & (partner == own)).unsqueeze(-1)
        kick = self._unit(self._gaussian(self._plan.children))
        return self._unit(torch.where(same, child + 0.7 * kick, child))

    def _unit(self, points: Float[Tensor, "ranks w size"]) -> Float[Tensor, "ranks w size"]:
        """The points with every block scaled to the unit sphere; a zero block stays zero."""
        blocks = points.unflatten(-1, (self._blocks, -1))
        smallest = torch.finfo(points.dtype).tiny
        return torch.nn.functional.normalize(blocks, dim=-1, eps=smallest).flatten(start_dim=2)

    def _climb(self, points: Float[Tensor, "ranks w size"]) -> Climb:
        ranks = len(points)
        words, radius = self._words.repeat(ranks), self._radius.repeat(ranks)
        climb = Climb(self._change, words, radius, points.flatten(end_dim=1), self._blocks)
        self._evaluations += len(climb)
        rule = RULES[self._plan.rule](climb)
        for _ in range(self._plan.climb_steps):
            rule.step(climb, self._plan.tolerance)
            self._evaluations += len(climb)
            self._tick()
        return climb

    def _fittest(self, climb: Climb, ranks: int) -> Climb:
        w = len(self._words)
        squared = climb.squared.view(-1, w)
        top = squared.topk(min(ranks, len(squared)), dim=0).indices
        return climb.select((top * w + torch.arange(w, device=top.device)).flatten())

    def _polish(self, climb: Climb) -> Bool[Tensor, " b"]:
        """Climb until every ascent idles or the steps run out; ascents that idle drop out of the batch."""
        climb.idle.zero_()
        running = torch.arange(len(climb), device=climb.idle.device)
        part, rule = climb.select(running), None
        for _ in range(self._plan.steps):
            rule = rule if rule is not None else RULES[self._plan.rule](part, first=0.1)
            rule.step(part, self._plan.tolerance)
            self._evaluations += len(part)
            self._tick()
            going = part.idle < PATIENCE
            if not bool(going.all()):
                climb.store(running, part)
                kept = going.nonzero().squeeze(1)
                running, part = running[kept], part.select(kept)
                rule.select(kept)
                if len(running) == 0:
                    break
        climb.store(running, part)
        return climb.idle >= PATIENCE

    def _gaussian(self, count: int) -> Float[Tensor, "count w size"]:
        rows, size = self._change.rows, math.prod(self._change.shape)
        return gaussian_on(
            count, len(self._words), size, generator=self._generator, dtype=rows.dtype, device=rows.device
        )

    def _integers(self, below: int, shape: tuple[int, ...]) -> Int[Tensor, "..."]:
        drawn = torch.randint(below, shape, generator=self._generator, device=self._generator.device)
        return drawn.to(self._words.device)

    def _uniform(self, shape: tuple[int, ...]) -> Float[Tensor, "..."]:
        drawn = torch.rand(shape, generator=self._generator, dtype=torch.float64, device=self._generator.device)
        return drawn.to(self._words.device)
