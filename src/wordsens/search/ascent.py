"""Multistart ascent: every place climbs from many starts, its best points are crossed, and the best
few are finished.

An ascent takes steps of falling length along the average of past gradients' directions,

    m <- .8 m + g / ‖g‖,    x <- P(x + eta (1 - t / T) m / ‖m‖),    t = 0, ..., T - 1,

P the projection into the ball, x = Delta / radius, and keeps the highest point it met: steps that
need not gain pass over small hills and kinks. What moves one word far moves most words of a text
far, so a mixture of two good points, the second of this or another word, is a better start than a
random one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.climb import (
    PATIENCE,
    BallProblem,
    Climb,
    Flat,
    Momentum,
    QuasiNewton,
    Values,
    verified,
)
from wordsens.search.objective import Objective, Progress, SearchResult, unit
from wordsens.search.plan import Stages

_MOMENTUM = 0.8

# eta of a child, and of a finalist of a kinked objective.
_CHILD_STEP, _FINISH_STEP = 0.3, 0.1

# Steps of a kinked objective in its own precision at most, and the relative gain that counts there:
# from kink to kink an ascent gains a little for ever.
_LAST_KINKED, _KINKED_TOLERANCE = 30, 1e-5

# One of so many random starts lies inside the ball: a maximum may.
_INNER = 4

# Two points of a place whose cosine exceeds this are taken for one hill: the second ranks last.
_ALIKE = 0.98

# Radii below this share of the typical length are explored in the objective's own precision: in
# float32 changes cancel.
_TINY = 1e-3

# About how many numbers an ascent holds for each coordinate of each point.
_COPIES = 8

# Of the points that climb together on a CPU, where they are several texts'.
_CACHED_NUMBERS = 1 << 19

# After so many steps the host looks which ascents gain no more, and drops them where no more than
# this share goes on: a look waits for the device.
_LOOK_EVERY, _FEW = 5, 0.9


class Points(NamedTuple):
    """Points of w places, place first, and the objective there."""

    x: Flat
    squared: Values

    def take(self, ranks: Int[Tensor, "w count"]) -> "Points":
        """The points at these ranks of each place."""
        return Points(_at_ranks(self.x, ranks), self.squared.gather(1, ranks))

    def joined(self, other: "Points") -> "Points":
        return Points(*(torch.cat(parts, dim=1) for parts in zip(self, other, strict=True)))

    def fittest(self, count: int) -> "Points":
        """The best points of each place, best first; those like a better one after all others."""
        by_value = self.take(self.squared.argsort(dim=1, descending=True))
        directions = unit(by_value.x)
        copies = (torch.tril(directions @ directions.mT, diagonal=-1) > _ALIKE).any(dim=2)
        return by_value.take(copies.to(torch.int8).argsort(dim=1, stable=True)[:, :count])


def _at_ranks(x: Flat, ranks: Int[Tensor, "w count"]) -> Tensor:
    return x.gather(1, ranks.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


def ascend(problem: BallProblem, stages: Stages, progress: Progress | None = None) -> SearchResult:
    """Maximise the objective over the balls of each place.

    All places climb together, those of one text in batches that fit the objective's memory budget;
    crossing stays within a batch. Of several texts all are one batch (`texts_at_once`).
    """
    objective = problem.objective
    size = max(1, objective.memory_budget // _bytes_per_place(objective, stages))
    if objective.texts > 1:
        size = len(problem.places)
    batches = torch.arange(len(problem.places), device=problem.places.device).split(size)
    total, done = stages.rounds() * len(batches), 0

    def tick(steps: int = 1) -> None:
        nonlocal done
        done = min(total, done + steps)
        if progress is not None:
            progress(done, total)

    results = [_Ascent(problem.select(batch), stages, tick).run() for batch in batches]
    tick(total)
    return SearchResult.joined(results)


def texts_at_once(objective: Objective, places: int, stages: Stages) -> int:
    """How many texts of so many places, one of which has this objective, are searched together: as
    many as fit the memory budget, and on a CPU its cache, past which a batch gains nothing."""
    pairs = places * max(stages.starts, stages.population + stages.children)
    if objective.device.type == "cpu":
        return max(1, _CACHED_NUMBERS // (pairs * objective.coordinates))
    bytes_per_text = _bytes_per_place(objective, stages) * places
    return max(1, objective.memory_budget // max(bytes_per_text, objective.bytes_per_pair()))


def _bytes_per_place(objective: Objective, stages: Stages) -> int:
    points = max(stages.starts, stages.population + stages.children)
    return points * objective.coordinates * _COPIES * objective.dtype.itemsize


class _Ascent:
    """The search on w places at once, as many of each text."""

    def __init__(self, problem: BallProblem, stages: Stages, tick: Callable[[], None]):
        self.problem, self.stages, self.tick = problem, stages, tick
        objective = problem.objective
        tiny = float(problem.radius.max()) < _TINY * objective.typical_length
        self.coarse = replace(problem, objective=objective if tiny else objective.coarse())
        self.spent = torch.zeros_like(problem.places)

    def run(self) -> SearchResult:
        """The best point of every place."""
        stages, texts = self.stages, self.problem.objective.texts
        points = self._climb(self._starts(), stages.steps, stages.first_step, stages.halvings)
        points = self._crossed(points, stages.generations, stages.children)
        leaders = min(stages.leaders, len(points.x) // texts // 2)
        if leaders:
            chosen = _largest(points.squared.amax(dim=1), leaders, texts)
            few = _Ascent(self.problem.select(chosen), stages, self.tick)
            led = Points(points.x[chosen], points.squared[chosen])
            led = few._crossed(led, stages.leader_generations, stages.leader_children)
            points, led = points.fittest(stages.finalists), led.fittest(stages.finalists)
            points.x[chosen], points.squared[chosen] = led.x, led.squared
            self.spent[chosen] += few.spent
        result = verified(self._finished(points.fittest(stages.finalists)))
        return replace(result, spent=result.spent + self.spent)

    def _starts(self) -> Flat:
        """The objective's own starts, the highest where they are many, and random ones for at least
        a quarter."""
        count, problem = self.stages.starts, self.coarse
        informed = problem.objective.starts(problem.places, problem.radius)
        informed = problem.into_ball(informed.flatten(start_dim=2).transpose(0, 1))
        most = count - count // 4
        if informed.shape[1] > most:
            self.spent += informed.shape[1]
            informed = _at_ranks(informed, problem.value(informed).topk(most, dim=1).indices)
        random = problem.directions(count - informed.shape[1], problem.objective.dtype)
        inner = random.shape[1] // _INNER
        lengths = (torch.arange(inner, device=random.device) + 0.5) / max(1, inner)
        random[:, :inner] *= lengths.to(random).unsqueeze(1)
        return torch.cat([informed, random], dim=1)

    def _climb(
        self,
        x: Flat,
        steps: int,
        first: float,
        halvings: tuple[int, ...] = (),
    ) -> Points:
        """The highest point that an ascent from each one meets; after `halvings` steps the lower
        half ends."""
        problem, memory = self.coarse, torch.zeros_like(x)
        best = Points(x, x.new_full(x.shape[:2], -torch.inf))
        for step in range(steps + 1):
            if step in halvings and x.shape[1] > 1:
                ranks = best.squared.topk((x.shape[1] + 1) // 2, dim=1).indices
                x, memory, best = _at_ranks(x, ranks), _at_ranks(memory, ranks), best.take(ranks)
            self.spent += x.shape[1]
            squared, slope = problem.evaluate(x)
            better = squared > best.squared
            best = Points(
                torch.where(better.unsqueeze(-1), x, best.x),
                torch.where(better, squared, best.squared),
            )
            if step < steps:
                memory = _MOMENTUM * memory + problem.unit(slope)
                length = first * (1 - step / steps)
                x = problem.into_ball(x + length * problem.unit(memory))
                self.tick()
        return best

    def _crossed(self, points: Points, generations: int, children: int) -> Points:
        """The points, and what ascents from mixtures of the best of them meet, generation after
        generation."""
        for _ in range(generations):
            points = points.fittest(self.stages.population)
            mixed = self._children(points.x, children)
            points = points.joined(self._climb(mixed, self.stages.child_steps, _CHILD_STEP))
        return points

    def _children(self, parents: Flat, count: int) -> Flat:
        """Mixtures of two points, the second in half of them another word's, and of their
        lengths."""
        problem, (w, ranks) = self.coarse, parents.shape[:2]
        per_text = w // problem.objective.texts

        def below(most: int) -> Tensor:
            return problem.drawn(
                lambda stream, w: torch.randint(
                    most, (w, count), generator=stream, device=stream.device
                )
            )

        def uniform() -> Tensor:
            return problem.drawn(
                lambda stream, w: torch.rand(
                    w, count, generator=stream, device=stream.device, dtype=torch.float64
                )
            )

        place = torch.arange(w, device=parents.device).unsqueeze(1).expand(w, count)
        first, second, another = below(ranks), below(ranks), below(per_text)
        partner = torch.where(uniform() < 0.5, place, another + place // per_text * per_text)
        share = uniform()[..., None, None].to(parents.dtype)
        mother = problem.blocks(parents[place, first])
        father = problem.blocks(parents[partner, second])
        mixture, length = (
            share * of(mother) + (1 - share) * of(father) for of in (lambda point: point, _length)
        )
        return (unit(mixture) * length).flatten(start_dim=2)

    def _finished(self, points: Points) -> Climb:
        """Every place's best ascent after the last steps, the end of them in the objective's own
        precision."""
        stages, objective = self.stages, self.problem.objective
        if objective.kinked:
            points = points.joined(self._climb(points.x, stages.finish, _FINISH_STEP))
        elif self.coarse.objective is not objective:
            noise = 4 * torch.finfo(self.coarse.objective.dtype).eps
            climb = self._polished(self.coarse, points.x, stages.finish, stages.tolerance + noise)
            points = points.joined(
                Points(climb.x.view_as(points.x), climb.squared.view_as(points.squared))
            )
        points = points.take(points.squared.topk(min(2, points.x.shape[1]), dim=1).indices)
        finish, tolerance = stages.finish, stages.tolerance
        if objective.kinked:
            finish, tolerance = min(finish, _LAST_KINKED), _KINKED_TOLERANCE
        climb = self._polished(self.problem, points.x.to(objective.dtype), finish, tolerance)
        by_place = climb.squared.view(len(points.x), -1)
        first = torch.arange(len(by_place), device=by_place.device) * by_place.shape[1]
        return climb.select(first + by_place.argmax(dim=1))

    def _polished(self, problem: BallProblem, x: Flat, finish: int, tolerance: float) -> Climb:
        """Climbs until no ascent gains or the steps run out; those that gain no more drop out of
        the batch in time."""
        of_each = torch.arange(len(x), device=x.device).repeat_interleave(x.shape[1])
        climb = part = Climb(problem.select(of_each), x.flatten(end_dim=1))
        texts, running = problem.objective.texts, torch.arange(len(climb), device=x.device)
        rule_of = Momentum if problem.objective.kinked else QuasiNewton
        rule = rule_of(part, first=_FINISH_STEP)
        for step in range(1, finish + 1):
            rule.step(part, tolerance)
            self.tick()
            if step % _LOOK_EVERY:
                continue
            going = part.idle < PATIENCE
            most = int(going.view(texts, -1).sum(dim=1).amax())
            if most == 0:
                break
            if most <= _FEW * len(part) / texts:
                if part is not climb:
                    climb.store(running, part)
                # As many of each text: where fewer go on, some that stand still stay.
                chosen = _largest(going.to(torch.int8), most, texts)
                running, part = running[chosen], part.select(chosen)
                rule.select(chosen)
        if part is not climb:
            climb.store(running, part)
        self.spent += climb.steps.view(len(x), -1).sum(dim=1)
        return climb


def _largest(values: Tensor, count: int, texts: int) -> Int[Tensor, " c"]:
    """The places of the `count` largest values of each text, among all."""
    by_text = values.view(texts, -1)
    first = by_text.shape[1] * torch.arange(texts, device=values.device).unsqueeze(1)
    return (first + by_text.topk(count, dim=1).indices).flatten()


def _length(vectors: Float[Tensor, "*b size"]) -> Float[Tensor, "*b 1"]:
    return torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
