"""Multistart ascent: every word climbs from many starts, its best points are crossed, and the best few are finished.

An ascent takes steps of falling length along the average of past gradients' directions,

    m <- .8 m + g / ‖g‖,    x <- P(x + eta (1 - t / T) m / ‖m‖),    t = 0, ..., T - 1,

P the projection into the ball, x = Delta / radius, and keeps the highest point it met: steps that need not gain pass
over small hills and kinks. What moves one word far moves most words of a text far, so a mixture of two good points, the
second of this or another word, is a better start than a random one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.climb import PATIENCE, Climb, Momentum, QuasiNewton, evaluated, verify_stationary
from wordsens.search.objective import Ball, Objective, Progress, SearchResult, into_ball, unit
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on

_MOMENTUM = 0.8
_CHILD_STEP, _FINISH_STEP = 0.3, 0.1
"""eta of a child, and of a finalist of a kinked objective."""

_LAST_KINKED, _KINKED_TOLERANCE = 30, 1e-5
"""Steps of a kinked objective in its own precision at most, and the relative gain that counts there: from kink to kink
an ascent gains a little for ever."""

_INNER = 4
"""One of so many random starts lies inside the ball: a maximum may."""

_ALIKE = 0.98
"""Two points of a word whose cosine exceeds this are taken for one hill: the second ranks after all others."""

_TINY = 1e-3
"""Radii below this share of the typical length are explored in the objective's own precision: in float32 changes
cancel."""

_COPIES = 8
"""About how many numbers an ascent holds for each coordinate of each point."""


class Points(NamedTuple):
    """Points of w words in units of their radii, ranks first, and the objective there."""

    x: Float[Tensor, "ranks w blocks size"]
    squared: Float[Tensor, "ranks w"]

    def take(self, ranks: Int[Tensor, "count w"]) -> "Points":
        """The points at these ranks of each word."""
        index = ranks[..., None, None].expand(-1, -1, *self.x.shape[2:])
        return Points(self.x.gather(0, index), self.squared.gather(0, ranks))

    def joined(self, other: "Points") -> "Points":
        return Points(torch.cat([self.x, other.x]), torch.cat([self.squared, other.squared]))

    def fittest(self, count: int) -> "Points":
        """The best points of each word, best first; those like a better one after all others."""
        by_value = self.take(self.squared.argsort(dim=0, descending=True))
        directions = unit(by_value.x.flatten(start_dim=2).transpose(0, 1))
        copies = (torch.tril(directions @ directions.mT, diagonal=-1) > _ALIKE).any(dim=2).T
        return by_value.take(copies.to(torch.int8).argsort(dim=0, stable=True)[:count])


def ascend(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    stages: Stages,
    *,
    blocks: int = 1,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """Maximise the objective over the ball of each word, or the `blocks` balls of each group.

    All words climb together, in groups that fit the objective's memory budget; crossing stays within a group.
    """
    numbers = max(stages.starts, stages.population + stages.children) * objective.coordinates * _COPIES
    size = max(1, objective.memory_budget // (numbers * objective.dtype.itemsize))
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    total, done = stages.rounds() * len(groups), 0

    def tick(steps: int = 1) -> None:
        nonlocal done
        done = min(total, done + steps)
        if progress is not None:
            progress(done, total)

    results = [_Ascent(objective, group, radius, blocks, stages, generator, tick).run() for group, radius in groups]
    tick(total)
    x, squared, spent, converged = (torch.cat(parts) for parts in zip(*results, strict=True))
    scaled = ball.project((x * ball.radius.to(x.dtype).view(-1, 1, 1)).transpose(0, 1)).transpose(0, 1)
    result = SearchResult(scaled.reshape(len(x), *objective.shape), squared, spent, converged)
    return verify_stationary(objective, words, ball, result, blocks=blocks, generator=generator)


class _Ascent:
    """The search on w words at once."""

    def __init__(
        self,
        objective: Objective,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        blocks: int,
        stages: Stages,
        generator: torch.Generator,
        tick: Callable[[], None],
    ):
        self.objective, self.words, self.radius, self.blocks = objective, words, radius, blocks
        self.stages, self.generator, self.tick = stages, generator, tick
        tiny = float(radius.max()) < _TINY * objective.typical_length
        self.coarse = objective if tiny else objective.coarse()
        self.spent = torch.zeros_like(words)

    def run(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The best point of every word, its value, the evaluations spent on it, and whether it converged."""
        stages = self.stages
        points = self._climb(self._starts(), stages.steps, stages.first_step, stages.halvings)
        points = self._crossed(points, stages.generations, stages.children)
        leaders = min(stages.leaders, len(self.words) // 2)
        if leaders:
            chosen = points.squared.amax(dim=0).topk(leaders).indices
            few = _Ascent(
                self.objective, self.words[chosen], self.radius[chosen], self.blocks, stages, self.generator, self.tick
            )
            led = Points(points.x[:, chosen], points.squared[:, chosen])
            led = few._crossed(led, stages.generations, 2 * stages.children).fittest(stages.finalists)
            points = points.fittest(stages.finalists)
            points.x[:, chosen], points.squared[:, chosen] = led.x, led.squared
            self.spent[chosen] += few.spent
        return self._finished(points.fittest(stages.finalists))

    def _starts(self) -> Float[Tensor, "starts w blocks size"]:
        """The objective's own starts, the highest where they are many, and random ones for at least a quarter."""
        count, informed = self.stages.starts, self.coarse.starts(self.words, self.radius)
        informed, most = into_ball(self._in_blocks(informed.flatten(start_dim=2))), count - count // 4
        if len(informed) > most:
            squared = torch.stack([self._value(x) for x in informed])
            informed = Points(informed, squared).take(squared.topk(most, dim=0).indices).x
        shape = (count - len(informed), len(self.words), self.blocks, self.coarse.coordinates // self.blocks)
        kind = {"dtype": self.coarse.dtype, "device": self.coarse.device}
        random = unit(gaussian_on(*shape, generator=self.generator, **kind))
        inner = len(random) // _INNER
        random[:inner] *= ((torch.arange(inner) + 0.5) / max(1, inner)).to(random).view(-1, 1, 1, 1)
        return torch.cat([informed, random])

    def _climb(
        self, x: Float[Tensor, "ranks w blocks size"], steps: int, first: float, halvings: tuple[int, ...] = ()
    ) -> Points:
        """The highest point that an ascent from each one meets; after `halvings` steps the lower half ends."""
        memory, best = torch.zeros_like(x), Points(x, torch.full_like(x[..., 0, 0], -torch.inf))
        for step in range(steps + 1):
            squared, slope = self._evaluate(x)
            better = squared > best.squared
            best = Points(torch.where(better[..., None, None], x, best.x), torch.where(better, squared, best.squared))
            if step == steps:
                break
            if step in halvings and len(x) > 1:
                ranks = best.squared.topk((len(x) + 1) // 2, dim=0).indices
                best, x = best.take(ranks), Points(x, squared).take(ranks).x
                memory, slope = Points(memory, squared).take(ranks).x, Points(slope, squared).take(ranks).x
            memory = _MOMENTUM * memory + unit(slope)
            x = into_ball(x + first * (1 - step / steps) * unit(memory))
            self.tick()
        return best

    def _crossed(self, points: Points, generations: int, children: int) -> Points:
        """The points, and what ascents from mixtures of the best of them meet, generation after generation."""
        for _ in range(generations):
            points = points.fittest(self.stages.population)
            points = points.joined(
                self._climb(self._children(points.x, children), self.stages.child_steps, _CHILD_STEP)
            )
        return points

    def _children(self, parents: Float[Tensor, "ranks w blocks size"], count: int) -> Tensor:
        """Mixtures of two points, the second in half of them another word's, and of their lengths."""
        ranks, w = parents.shape[:2]
        word = torch.arange(w, device=parents.device).expand(count, w)
        first, second, elsewhere = self._integers(ranks, word), self._integers(ranks, word), self._integers(w, word)
        partner = torch.where(self._uniform(word) < 0.5, word, elsewhere)
        share = self._uniform(word)[..., None, None].to(parents.dtype)
        mother, father = parents[first, word], parents[second, partner]
        lengths = [torch.linalg.vector_norm(parent, dim=-1, keepdim=True) for parent in (mother, father)]
        return unit(share * mother + (1 - share) * father) * (share * lengths[0] + (1 - share) * lengths[1])

    def _finished(self, points: Points) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Every word's best point after the last steps, the end of them in the objective's own precision."""
        stages, kinked = self.stages, self.objective.kinked
        if kinked:
            points = points.joined(self._climb(points.x, stages.finish, _FINISH_STEP))
        elif self.coarse is not self.objective:
            noise = 4 * torch.finfo(self.coarse.dtype).eps
            climb = self._as_climb(self.coarse, points.x)
            self._polish(climb, replace(stages, tolerance=max(stages.tolerance, noise)))
            points = points.joined(self._of_climb(climb))
        points = points.take(points.squared.topk(min(2, len(points.x)), dim=0).indices)
        climb = self._as_climb(self.objective, points.x.to(self.objective.dtype))
        if kinked:
            stages = replace(stages, finish=min(stages.finish, _LAST_KINKED), tolerance=_KINKED_TOLERANCE)
        converged = self._polish(climb, stages)
        points = self._of_climb(climb)
        best = points.squared.argmax(dim=0, keepdim=True)
        chosen = points.take(best)
        return chosen.x[0], chosen.squared[0], self.spent, converged.view(points.squared.shape).gather(0, best)[0]

    def _polish(self, climb: Climb, stages: Stages) -> Bool[Tensor, " b"]:
        """Climb until no ascent gains or the steps run out; those that gain no more drop out of the batch."""
        running, part = torch.arange(len(climb), device=climb.idle.device), climb
        rule = (Momentum if self.objective.kinked else QuasiNewton)(part, first=_FINISH_STEP)
        self._spend(len(climb) // len(self.words))
        for _ in range(stages.finish):
            rule.step(part, stages.tolerance)
            self.spent.index_add_(0, running % len(self.words), torch.ones_like(running))
            self.tick()
            going = part.idle < PATIENCE
            if not bool(going.all()):
                if part is not climb:
                    climb.store(running, part)
                still = going.nonzero().squeeze(1)
                if len(still) == 0:
                    return climb.idle >= PATIENCE
                running, part = running[still], part.select(still)
                rule.select(still)
        if part is not climb:
            climb.store(running, part)
        return climb.idle >= PATIENCE

    def _as_climb(self, objective: Objective, x: Float[Tensor, "ranks w blocks size"]) -> Climb:
        flat = x.flatten(end_dim=1).flatten(start_dim=1)
        return Climb(objective, self.words.repeat(len(x)), self.radius.repeat(len(x)), flat, self.blocks)

    def _of_climb(self, climb: Climb) -> Points:
        x = self._in_blocks(climb.x.view(-1, len(self.words), climb.x.shape[1]))
        return Points(x, climb.squared.view(-1, len(self.words)))

    def _evaluate(self, x: Float[Tensor, "ranks w blocks size"]) -> tuple[Float[Tensor, "ranks w"], Tensor]:
        ranks = len(x)
        self._spend(ranks)
        flat = x.flatten(end_dim=1).flatten(start_dim=1)
        squared, slope = evaluated(self.coarse, flat, self.words.repeat(ranks), self.radius.repeat(ranks))
        return squared.view(ranks, -1), slope.view_as(x)

    def _value(self, x: Float[Tensor, "w blocks size"]) -> Float[Tensor, " w"]:
        self._spend(1)
        scaled = (x.flatten(start_dim=1) * self.radius.to(x.dtype).unsqueeze(1)).unflatten(1, self.coarse.shape)
        return self.coarse.value(scaled, self.words).nan_to_num(-1.0, torch.inf)

    def _in_blocks(self, points: Float[Tensor, "*ranks coordinates"]) -> Float[Tensor, "*ranks blocks size"]:
        return points.unflatten(-1, (self.blocks, -1))

    def _spend(self, count: int) -> None:
        self.spent += count

    def _integers(self, below: int, like: Int[Tensor, "count w"]) -> Int[Tensor, "count w"]:
        drawn = torch.randint(below, like.shape, generator=self.generator, device=self.generator.device)
        return drawn.to(like.device)

    def _uniform(self, like: Int[Tensor, "count w"]) -> Float[Tensor, "count w"]:
        drawn = torch.rand(like.shape, generator=self.generator, device=self.generator.device, dtype=torch.float64)
        return drawn.to(like.device)
