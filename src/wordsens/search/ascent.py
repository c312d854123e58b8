"""Multistart ascent: every word climbs from many starts, its best points are crossed, and the best
few are finished.

An ascent takes steps of falling length along the average of past gradients' directions,

    m <- .8 m + g / ‖g‖,    x <- P(x + eta (1 - t / T) m / ‖m‖),    t = 0, ..., T - 1,

P the projection into the ball, x = Delta / radius, and keeps the highest point it met: steps that
need not gain pass over small hills and kinks. What moves one word far moves most words of a text
far, so a mixture of two good points, the second of this or another word, is a better start than a
random one.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.climb import (
    PATIENCE,
    Climb,
    Momentum,
    QuasiNewton,
    evaluated,
    verify_stationary,
)
from wordsens.search.objective import Ball, Objective, Progress, SearchResult, into_ball, unit
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on

_MOMENTUM = 0.8
_CHILD_STEP, _FINISH_STEP = 0.3, 0.1
"""eta of a child, and of a finalist of a kinked objective."""

_LAST_KINKED, _KINKED_TOLERANCE = 30, 1e-5
"""Steps of a kinked objective in its own precision at most, and the relative gain that counts
there: from kink to kink an ascent gains a little for ever."""

_INNER = 4
"""One of so many random starts lies inside the ball: a maximum may."""

_ALIKE = 0.98
"""Two points of a word whose cosine exceeds this are taken for one hill: the second ranks after all
others."""

_TINY = 1e-3
"""Radii below this share of the typical length are explored in the objective's own precision: in
float32 changes cancel."""

_COPIES = 8
"""About how many numbers an ascent holds for each coordinate of each point."""

_CACHED_NUMBERS = 1 << 19
"""Of the points that climb together on a CPU, where they are several texts'."""

_LOOK_EVERY, _FEW = 5, 0.9
"""After so many steps the host looks which ascents gain no more, and drops them where no more than
this share goes on: a look waits for the device."""


class Points(NamedTuple):
    """Points of w words in units of their radii, word first, and the objective there."""

    x: Float[Tensor, "w ranks blocks size"]
    squared: Float[Tensor, "w ranks"]

    def take(self, ranks: Int[Tensor, "w count"]) -> "Points":
        """The points at these ranks of each word."""
        return Points(_at_ranks(self.x, ranks), self.squared.gather(1, ranks))

    def joined(self, other: "Points") -> "Points":
        return Points(
            torch.cat([self.x, other.x], dim=1), torch.cat([self.squared, other.squared], dim=1)
        )

    def fittest(self, count: int) -> "Points":
        """The best points of each word, best first; those like a better one after all others."""
        by_value = self.take(self.squared.argsort(dim=1, descending=True))
        directions = unit(by_value.x.flatten(start_dim=2))
        copies = (torch.tril(directions @ directions.mT, diagonal=-1) > _ALIKE).any(dim=2)
        return by_value.take(copies.to(torch.int8).argsort(dim=1, stable=True)[:, :count])


def _at_ranks(x: Float[Tensor, "w ranks blocks size"], ranks: Int[Tensor, "w count"]) -> Tensor:
    return x.gather(1, ranks[..., None, None].expand(-1, -1, *x.shape[2:]))


def ascend(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    stages: Stages,
    *,
    blocks: int = 1,
    generators: Sequence[torch.Generator],
    progress: Progress | None = None,
) -> SearchResult:
    """Maximise the objective over the ball of each word, or the `blocks` balls of each group.

    All words climb together, those of one text in groups that fit the objective's memory budget;
    crossing stays within a group. An objective of several texts has as many words of each, and a
    generator for each; its texts are few enough for the budget (`texts_at_once`).
    """
    size = (
        len(words)
        if objective.texts > 1
        else max(1, objective.memory_budget // _bytes_per_word(objective, stages))
    )
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    total, done = stages.rounds() * len(groups), 0

    def tick(steps: int = 1) -> None:
        nonlocal done
        done = min(total, done + steps)
        if progress is not None:
            progress(done, total)

    results = [
        _Ascent(objective, group, radius, blocks, stages, generators, tick).run()
        for group, radius in groups
    ]
    tick(total)
    return SearchResult.joined(results)


def texts_at_once(objective: Objective, words: int, stages: Stages) -> int:
    """How many texts of so many words, one of which has this objective, are searched together: as
    many as fit the memory budget, and on a CPU its cache, past which a batch gains nothing."""
    pairs = words * max(stages.starts, stages.population + stages.children)
    if objective.device.type == "cpu":
        return max(1, _CACHED_NUMBERS // (pairs * objective.coordinates))
    most = objective.memory_budget // max(
        _bytes_per_word(objective, stages) * words, objective.bytes_per_pair()
    )
    return max(1, most)


def _bytes_per_word(objective: Objective, stages: Stages) -> int:
    points = max(stages.starts, stages.population + stages.children)
    return points * objective.coordinates * _COPIES * objective.dtype.itemsize


class _Ascent:
    """The search on w words at once, as many of each text."""

    def __init__(
        self,
        objective: Objective,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        blocks: int,
        stages: Stages,
        generators: Sequence[torch.Generator],
        tick: Callable[[], None],
    ):
        self.objective, self.words, self.radius, self.blocks = objective, words, radius, blocks
        self.stages, self.generators, self.tick = stages, generators, tick
        tiny = float(radius.max()) < _TINY * objective.typical_length
        self.coarse = objective if tiny else objective.coarse()
        self.spent = torch.zeros_like(words)

    def run(self) -> SearchResult:
        """The best point of every word."""
        stages = self.stages
        points = self._climb(self._starts(), stages.steps, stages.first_step, stages.halvings)
        points = self._crossed(points, stages.generations, stages.children)
        leaders = min(stages.leaders, len(self.words) // self.objective.texts // 2)
        if leaders:
            by_text = points.squared.amax(dim=1).unflatten(0, (self.objective.texts, -1))
            chosen = self._numbered(by_text.topk(leaders, dim=1).indices, by_text.shape[1])
            few = _Ascent(
                self.objective,
                self.words[chosen],
                self.radius[chosen],
                self.blocks,
                stages,
                self.generators,
                self.tick,
            )
            led = Points(points.x[chosen], points.squared[chosen])
            led = few._crossed(led, stages.leader_generations, stages.leader_children).fittest(
                stages.finalists
            )
            points = points.fittest(stages.finalists)
            points.x[chosen], points.squared[chosen] = led.x, led.squared
            self.spent[chosen] += few.spent
        best = self._finished(points.fittest(stages.finalists))
        ball, blocks = Ball(self.radius), best.x.unflatten(1, (self.blocks, -1)).transpose(0, 1)
        perturbations = ball.project(
            blocks * self.radius.to(best.x.dtype).view(1, -1, 1)
        ).transpose(0, 1)
        result = SearchResult(
            perturbations.reshape(len(best), *self.objective.shape),
            best.squared,
            self.spent,
            best.idle >= PATIENCE,
        )
        texts = self.objective.texts
        of_texts = zip(
            best.of_texts(),
            ball.radius.chunk(texts),
            result.of_texts(texts),
            self.generators,
            strict=True,
        )
        return SearchResult.joined(
            [
                verify_stationary(climb, Ball(radius), found, generator=stream)
                for climb, radius, found, stream in of_texts
            ]
        )

    def _starts(self) -> Float[Tensor, "w starts blocks size"]:
        """The objective's own starts, the highest where they are many, and random ones for at least
        a quarter."""
        count, informed = self.stages.starts, self.coarse.starts(self.words, self.radius)
        informed = into_ball(
            informed.flatten(start_dim=2).transpose(0, 1).unflatten(2, (self.blocks, -1))
        )
        most = count - count // 4
        if informed.shape[1] > most:
            informed = _at_ranks(informed, self._values(informed).topk(most, dim=1).indices)
        shape = (count - informed.shape[1], self.blocks, self.coarse.coordinates // self.blocks)
        kind = {"dtype": self.coarse.dtype, "device": self.coarse.device}
        random = unit(
            self._drawn(lambda stream, w: gaussian_on(w, *shape, generator=stream, **kind))
        )
        inner = random.shape[1] // _INNER
        random[:, :inner] *= ((torch.arange(inner) + 0.5) / max(1, inner)).to(random).view(-1, 1, 1)
        return torch.cat([informed, random], dim=1)

    def _climb(
        self,
        x: Float[Tensor, "w ranks blocks size"],
        steps: int,
        first: float,
        halvings: tuple[int, ...] = (),
    ) -> Points:
        """The highest point that an ascent from each one meets; after `halvings` steps the lower
        half ends."""
        memory, best = torch.zeros_like(x), Points(x, x.new_full(x.shape[:2], -torch.inf))
        for step in range(steps + 1):
            if step in halvings and x.shape[1] > 1:
                ranks = best.squared.topk((x.shape[1] + 1) // 2, dim=1).indices
                x, memory, best = _at_ranks(x, ranks), _at_ranks(memory, ranks), best.take(ranks)
            squared, slope = self._evaluate(x)
            better = squared > best.squared
            best = Points(
                torch.where(better[..., None, None], x, best.x),
                torch.where(better, squared, best.squared),
            )
            if step < steps:
                memory = _MOMENTUM * memory + unit(slope)
                x = into_ball(x + first * (1 - step / steps) * unit(memory))
                self.tick()
        return best

    def _crossed(self, points: Points, generations: int, children: int) -> Points:
        """The points, and what ascents from mixtures of the best of them meet, generation after
        generation."""
        for _ in range(generations):
            points = points.fittest(self.stages.population)
            points = points.joined(
                self._climb(
                    self._children(points.x, children), self.stages.child_steps, _CHILD_STEP
                )
            )
        return points

    def _children(self, parents: Float[Tensor, "w ranks blocks size"], count: int) -> Tensor:
        """Mixtures of two points, the second in half of them another word's, and of their
        lengths."""
        w, ranks = parents.shape[:2]
        per_text = w // self.objective.texts

        def below(most: int) -> Tensor:
            return self._drawn(
                lambda stream, w: torch.randint(
                    most, (w, count), generator=stream, device=stream.device
                )
            )

        def uniform() -> Tensor:
            return self._drawn(
                lambda stream, w: torch.rand(
                    w, count, generator=stream, device=stream.device, dtype=torch.float64
                )
            )

        word = torch.arange(w, device=parents.device).unsqueeze(1).expand(w, count)
        first, second, elsewhere = (
            below(ranks),
            below(ranks),
            below(per_text) + word // per_text * per_text,
        )
        partner = torch.where(uniform() < 0.5, word, elsewhere)
        share = uniform()[..., None, None].to(parents.dtype)
        mother, father = parents[word, first], parents[partner, second]
        lengths = [
            torch.linalg.vector_norm(parent, dim=-1, keepdim=True) for parent in (mother, father)
        ]
        return unit(share * mother + (1 - share) * father) * (
            share * lengths[0] + (1 - share) * lengths[1]
        )

    def _finished(self, points: Points) -> Climb:
        """Every word's best ascent after the last steps, the end of them in the objective's own
        precision."""
        stages, kinked = self.stages, self.objective.kinked
        if kinked:
            points = points.joined(self._climb(points.x, stages.finish, _FINISH_STEP))
        elif self.coarse is not self.objective:
            noise = 4 * torch.finfo(self.coarse.dtype).eps
            climb = self._as_climb(self.coarse, points.x)
            self._polish(climb, replace(stages, tolerance=max(stages.tolerance, noise)))
            points = points.joined(self._of_climb(climb))
        points = points.take(points.squared.topk(min(2, points.x.shape[1]), dim=1).indices)
        climb = self._as_climb(self.objective, points.x.to(self.objective.dtype))
        if kinked:
            stages = replace(
                stages, finish=min(stages.finish, _LAST_KINKED), tolerance=_KINKED_TOLERANCE
            )
        self._polish(climb, stages)
        ranks = climb.squared.view(len(self.words), -1).argmax(dim=1)
        return climb.select(
            ranks + torch.arange(len(ranks), device=ranks.device) * (len(climb) // len(ranks))
        )

    def _polish(self, climb: Climb, stages: Stages) -> None:
        """Climb until no ascent gains or the steps run out; those that gain no more drop out of the
        batch in time."""
        texts, rule_of = climb.objective.texts, Momentum if self.objective.kinked else QuasiNewton
        running, part = torch.arange(len(climb), device=climb.idle.device), climb
        rule = rule_of(part, first=_FINISH_STEP)
        for step in range(1, stages.finish + 1):
            rule.step(part, stages.tolerance)
            self.tick()
            if step % _LOOK_EVERY:
                continue
            going = (part.idle < PATIENCE).view(texts, -1)
            most = int(going.sum(dim=1).amax())
            if most == 0:
                break
            if most <= _FEW * going.shape[1]:
                if part is not climb:
                    climb.store(running, part)
                # As many of each text: where fewer go on, some that stand still stay.
                chosen = self._numbered(
                    going.to(torch.int8).topk(most, dim=1).indices, going.shape[1]
                )
                running, part = running[chosen], part.select(chosen)
                rule.select(chosen)
        if part is not climb:
            climb.store(running, part)
        self.spent += climb.steps.view(len(self.words), -1).sum(dim=1) + len(climb) // len(
            self.words
        )

    def _as_climb(self, objective: Objective, x: Float[Tensor, "w ranks blocks size"]) -> Climb:
        flat, words, radius = self._flat(x)
        return Climb(objective, words, radius, flat, self.blocks)

    def _of_climb(self, climb: Climb) -> Points:
        shape = (len(self.words), -1)
        return Points(
            climb.x.unflatten(0, shape).unflatten(2, (self.blocks, -1)),
            climb.squared.unflatten(0, shape),
        )

    def _evaluate(
        self, x: Float[Tensor, "w ranks blocks size"]
    ) -> tuple[Float[Tensor, "w ranks"], Tensor]:
        self._spend(x.shape[1])
        squared, slope = evaluated(self.coarse, *self._flat(x))
        return squared.view(x.shape[:2]), slope.view_as(x)

    def _values(self, x: Float[Tensor, "w ranks blocks size"]) -> Float[Tensor, "w ranks"]:
        self._spend(x.shape[1])
        flat, words, radius = self._flat(x)
        moved = (flat * radius.to(x.dtype).unsqueeze(1)).unflatten(1, self.coarse.shape)
        return self.coarse.value(moved, words).nan_to_num(-1.0, torch.inf).view(x.shape[:2])

    def _flat(self, x: Float[Tensor, "w ranks blocks size"]) -> tuple[Tensor, Tensor, Tensor]:
        """The points one after the other, and the word and the radius of each."""
        words, radius = (part.repeat_interleave(x.shape[1]) for part in (self.words, self.radius))
        return x.flatten(end_dim=1).flatten(start_dim=1), words, radius

    def _spend(self, count: int) -> None:
        self.spent += count

    def _numbered(self, of_texts: Int[Tensor, "texts count"], per_text: int) -> Int[Tensor, " c"]:
        """Places among so many of each text as places among all."""
        first = per_text * torch.arange(len(of_texts), device=of_texts.device)
        return (of_texts + first.unsqueeze(1)).flatten()

    def _drawn(self, draw: Callable[[torch.Generator, int], Tensor]) -> Float[Tensor, "w ..."]:
        """What every text's generator gives for its words."""
        per_text = len(self.words) // self.objective.texts
        return torch.cat([draw(stream, per_text) for stream in self.generators]).to(
            self.words.device
        )
